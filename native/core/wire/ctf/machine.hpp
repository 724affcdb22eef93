// What goes through the steps of a program. Included where that is done, so that it is one with what takes the values.
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "core/wire/ctf/program.hpp"

namespace lanescope::ctf {

template <class T>
inline uint64_t load(const uint8_t* at) {
    T value;
    std::memcpy(&value, at, sizeof value);
    return value;
}

inline uint64_t masked(uint64_t value, unsigned size) { return size == 64 ? value : value & ((uint64_t{1} << size) - 1); }

struct Bits {
    const uint8_t* data;
    uint64_t bytes;

    uint64_t little(uint64_t at, unsigned size) const {
        const uint64_t byte = at >> 3;
        const unsigned shift = at & 7;
        uint64_t low = 0;
        if (byte + 8 <= bytes) {
            std::memcpy(&low, data + byte, 8);
        } else {
            std::memcpy(&low, data + byte, bytes - byte);
        }
        uint64_t value = low >> shift;
        if (shift + size > 64) value |= uint64_t{data[byte + 8]} << (64 - shift);
        return masked(value, size);
    }

    uint64_t big(uint64_t at, unsigned size) const {
        const uint64_t byte = at >> 3;
        const unsigned shift = at & 7, used = (shift + size + 7) >> 3;
        uint64_t high = 0;
        for (unsigned i = 0; i < std::min(used, 8u); ++i) high = high << 8 | data[byte + i];
        if (used <= 8) return masked(high >> (8 * used - shift - size), size);
        const unsigned rest = 72 - shift - size;
        return masked(high << (8 - rest) | data[byte + 8] >> rest, size);
    }
};

// Steps one behind the other that always take the same bytes: those of whole bytes, little-endian. They are done at once
// where they begin with a byte, as most of them do.
struct Block {
    struct Field {
        int32_t slot, leaf;
        uint32_t offset;  // bytes
        uint8_t size;     // bits
        uint8_t flags;
        int8_t meaning;
    };
    uint64_t size;  // bits
    size_t next;    // the step behind it
    std::vector<Field> fields;
};

inline constexpr uint64_t largest_block = 1 << 20;  // bits

// The block that begins at a step; its size is 0 if there is none.
inline Block block_at(const std::vector<Step>& steps, size_t at) {
    Block made{};
    size_t count = 0;
    for (; at + count < steps.size(); ++count) {
        const Step& step = steps[at + count];
        if (step.op == Op::align ? step.arg > 8 : step.op == Op::skip ? step.arg % 8 != 0 : step.op != Op::integer) break;
        const uint64_t size = step.op == Op::skip ? step.arg : step.op == Op::integer ? step.size : 0;
        if (size > largest_block - made.size) break;
        if (step.op == Op::integer) {
            if (step.size < 8 || !std::has_single_bit(step.size) || (step.flags & flag_big) != 0) break;
            const auto offset = static_cast<uint32_t>(made.size / 8);
            made.fields.push_back({step.slot, step.leaf, offset, step.size, step.flags, step.meaning});
        }
        made.size += size;
    }
    made.next = at + count;
    return made;
}

struct Machine {
    Bits bits;
    const Program& program;
    std::vector<uint64_t> slots;
    std::vector<Block> blocks;
    std::vector<uint32_t> block_of;  // by step: the block that begins there, plus 1
    uint64_t clock = 0;
    std::array<uint64_t, static_cast<size_t>(Meaning::count)> meanings{};
    uint32_t known = 0;

    Machine(std::span<const uint8_t> data, const Program& of)
        : bits{data.data(), data.size()}, program(of), slots(of.slots), block_of(of.steps.size()) {
        const auto is_plain = [](Op op) { return op == Op::align || op == Op::integer || op == Op::skip; };
        for (size_t i = 0; i < of.steps.size(); ++i) {
            if (i > 0 && is_plain(of.steps[i - 1].op)) continue;
            Block made = block_at(of.steps, i);
            if (made.next < i + 2 || made.size == 0) continue;
            blocks.push_back(std::move(made));
            block_of[i] = static_cast<uint32_t>(blocks.size());
        }
    }

    bool has(Meaning meaning) const { return known >> static_cast<unsigned>(meaning) & 1; }
    uint64_t operator[](Meaning meaning) const { return meanings[static_cast<size_t>(meaning)]; }

    // A clock whose value comes in fewer bits than it has: it has wrapped where it would stand back.
    void move_clock(uint64_t value, unsigned size) {
        const uint64_t mask = masked(~uint64_t{0}, size);
        uint64_t moved = (clock & ~mask) | (value & mask);
        if (size < 64 && moved < clock) moved += mask + 1;
        clock = moved;
    }

    // What an integer means besides its value.
    void note(int32_t slot, int8_t meaning, uint8_t flags, unsigned size, uint64_t value) {
        if (slot >= 0) slots[static_cast<size_t>(slot)] = value;
        if (meaning >= 0) {
            meanings[static_cast<size_t>(meaning)] = masked(value, size);
            known |= 1u << meaning;
        }
        if (flags & flag_clock) move_clock(value, size);
    }

    static uint64_t extended(uint64_t value, unsigned size) {
        return value >> (size - 1) ? value | ~masked(~uint64_t{0}, size) : value;
    }

    // The block that begins at a step; null if there is none.
    const Block* block(size_t step) const { return block_of[step] == 0 ? nullptr : &blocks[block_of[step] - 1]; }

    template <class Leaves>
    void run_block(const Block& block, uint64_t place, Leaves&& leaves) {
        const uint8_t* const from = bits.data + (place >> 3);
        for (const Block::Field& field : block.fields) {
            uint64_t value = 0;
            switch (field.size) {
                case 8: value = from[field.offset]; break;
                case 16: value = load<uint16_t>(from + field.offset); break;
                case 32: value = load<uint32_t>(from + field.offset); break;
                default: value = load<uint64_t>(from + field.offset); break;
            }
            if (field.flags & flag_signed) value = extended(value, field.size);
            note(field.slot, field.meaning, field.flags, field.size, value);
            if (field.leaf >= 0) leaves(field.leaf, value, 1);
        }
    }

    // Executes from `step` on; `at` is moved on. False where the bits end, or hold what no description allows.
    template <class Leaves>
    bool run(uint64_t step, uint64_t& at, uint64_t limit, uint64_t begin, Leaves&& leaves) {
        struct Loop {
            uint64_t left, at;
        };
        Loop loops[deepest_loop];
        size_t depth = 0;
        uint64_t place = at;
        const Step* const steps = program.steps.data();
        // Done, and the step behind it; or the same step where it has to be gone through.
        const auto after_block = [&](size_t from) {
            const Block* const made = block(from);
            if (made == nullptr || ((place | begin) & 7) != 0 || limit - place < made->size) return from;
            run_block(*made, place, leaves);
            place += made->size;
            return made->next;
        };
        for (const Step* now = steps + after_block(step);; ++now) {
            switch (now->op) {
                case Op::end: at = place; return true;
                case Op::align: {
                    const uint64_t gap = (begin - place) & (now->arg - 1);
                    if (limit - place < gap) return false;
                    place += gap;
                    break;
                }
                case Op::skip:
                    if (limit - place < now->arg) return false;
                    place += now->arg;
                    break;
                case Op::integer: {
                    if (limit - place < now->size) return false;
                    uint64_t value = now->flags & flag_big ? bits.big(place, now->size) : bits.little(place, now->size);
                    if (now->flags & flag_signed) value = extended(value, now->size);
                    note(now->slot, now->meaning, now->flags, now->size, value);
                    if (now->leaf >= 0) leaves(now->leaf, value, 1);
                    place += now->size;
                    break;
                }
                case Op::text: {
                    const uint8_t* from = bits.data + (place >> 3);
                    const void* zero = place < limit ? std::memchr(from, 0, (limit - place) >> 3) : nullptr;
                    if (zero == nullptr) return false;
                    const auto length = static_cast<uint64_t>(static_cast<const uint8_t*>(zero) - from);
                    if (now->leaf >= 0) leaves(now->leaf, place >> 3, length + 1);
                    place += 8 * (length + 1);
                    break;
                }
                case Op::array: {
                    const uint64_t count = now->flags & flag_counted ? slots[static_cast<size_t>(now->slot)] : now->arg;
                    if (count > (limit - place) / now->size) return false;
                    if (now->meaning >= 0) {
                        meanings[static_cast<size_t>(now->meaning)] = place >> 3;
                        if (now->size == 8 && count == 16 && place % 8 == 0) known |= 1u << now->meaning;
                    }
                    if (now->leaf >= 0) leaves(now->leaf, place, count + 1);
                    place += count * now->size;
                    now = steps + after_block(static_cast<size_t>(now - steps) + 1) - 1;
                    break;
                }
                case Op::loop: {
                    const uint64_t count = now->flags & flag_counted ? slots[static_cast<size_t>(now->slot)] : now->arg;
                    if (now->leaf >= 0) leaves(now->leaf, place, count + 1);
                    if (count == 0) {
                        now = steps + now->target - 1;
                    } else if (depth == deepest_loop) {
                        return false;
                    } else {
                        loops[depth++] = {count - 1, place};
                    }
                    break;
                }
                case Op::again: {
                    if (depth == 0) return false;
                    Loop& loop = loops[depth - 1];
                    // Elements without bits are all alike: more of them lead nowhere.
                    if (loop.left == 0 || loop.at == place) {
                        --depth;
                    } else {
                        --loop.left;
                        loop.at = place;
                        now = steps + now->arg - 1;
                    }
                    break;
                }
                case Op::choice: {
                    const uint64_t value = slots[static_cast<size_t>(now->slot)];
                    // Shifted by half of the range, signed numbers compare like others.
                    const uint64_t half = now->flags & flag_signed ? uint64_t{1} << 63 : 0;
                    const Choice* found = program.choices.data() + now->arg;
                    const Choice* const end = found + now->choices;
                    while (found != end && ((value ^ half) < (found->first ^ half) || (value ^ half) > (found->last ^ half))) ++found;
                    if (found == end) return false;
                    now = steps + found->target - 1;
                    break;
                }
                case Op::jump: now = steps + now->arg - 1; break;
            }
        }
    }
};

}  // namespace lanescope::ctf
