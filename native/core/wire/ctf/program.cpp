#include "core/wire/ctf/program.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <unordered_map>
#include <utility>

namespace lanescope::ctf {

namespace {

constexpr size_t dense_ids = 1 << 16;

uint64_t masked(uint64_t value, unsigned size) { return size == 64 ? value : value & ((uint64_t{1} << size) - 1); }

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

struct Machine {
    Bits bits;
    const Program& program;
    std::vector<uint64_t> slots;
    uint64_t clock = 0;
    std::array<uint64_t, static_cast<size_t>(Meaning::count)> meanings{};
    uint32_t known = 0;

    Machine(std::span<const uint8_t> data, const Program& of) : bits{data.data(), data.size()}, program(of), slots(of.slots) {}

    bool has(Meaning meaning) const { return known >> static_cast<unsigned>(meaning) & 1; }
    uint64_t operator[](Meaning meaning) const { return meanings[static_cast<size_t>(meaning)]; }

    // A clock whose value comes in fewer bits than it has: it has wrapped where it would stand back.
    void move_clock(uint64_t value, unsigned size) {
        const uint64_t mask = masked(~uint64_t{0}, size);
        uint64_t moved = (clock & ~mask) | (value & mask);
        if (size < 64 && moved < clock) moved += mask + 1;
        clock = moved;
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
        for (const Step* now = steps + step;; ++now) {
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
                    if (now->flags & flag_signed && value >> (now->size - 1)) value |= ~masked(~uint64_t{0}, now->size);
                    if (now->slot >= 0) slots[static_cast<size_t>(now->slot)] = value;
                    if (now->meaning >= 0) {
                        meanings[static_cast<size_t>(now->meaning)] = masked(value, now->size);
                        known |= 1u << now->meaning;
                    }
                    if (now->flags & flag_clock) move_clock(value, now->size);
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

constexpr auto no_leaves = [](int32_t, uint64_t, uint64_t) {};

// Rows of events by their numbers.
struct Lookup {
    std::vector<uint32_t> dense;
    std::vector<std::pair<uint64_t, uint32_t>> sparse;

    Lookup(const Trace& trace, const StreamEntry& stream) {
        for (uint64_t i = 0; i < stream.events; ++i) {
            const auto row = static_cast<uint32_t>(stream.first_event + i);
            const uint64_t id = trace.events[row].id;
            if (id >= dense_ids) {
                sparse.emplace_back(id, row);
                continue;
            }
            if (dense.size() <= id) dense.resize(id + 1, UINT32_MAX);
            dense[id] = row;
        }
        std::sort(sparse.begin(), sparse.end());
    }

    uint32_t row(uint64_t id) const {
        if (id < dense.size()) return dense[id];
        const auto found = std::lower_bound(sparse.begin(), sparse.end(), std::pair{id, uint32_t{0}});
        return found != sparse.end() && found->first == id ? found->second : UINT32_MAX;
    }
};

struct Walker {
    std::span<const uint8_t> data;
    const Trace& trace;
    Machine machine;
    std::vector<Lookup> lookups;
    std::vector<uint64_t> carried;
    std::unordered_multimap<uint64_t, uint32_t> rows;  // of `Walked::carried`, by a hash of the values
    std::array<uint32_t, 256> lately;                  // of them by the last bits of the hash, the one that came last
    Walked out;

    Walker(std::span<const uint8_t> bytes, const Trace& of) : data(bytes), trace(of), machine(bytes, of.program) {
        for (const StreamEntry& stream : trace.streams) lookups.emplace_back(trace, stream);
        carried.assign(trace.carried, absent_value);
        lately.fill(UINT32_MAX);
    }

    void keep(int32_t leaf, uint64_t value) {
        if (static_cast<size_t>(leaf) < carried.size()) carried[static_cast<size_t>(leaf)] = value;
    }

    // The row of what the next event carries: there are few, and mostly it is one that came lately.
    uint32_t context() {
        const size_t count = carried.size();
        const auto is_row = [&](uint32_t row) {
            const uint64_t* values = out.carried.data() + count * row;
            for (size_t i = 0; i < count; ++i) {
                if (values[i] != carried[i]) return false;
            }
            return true;
        };
        if (!out.contexts.empty() && is_row(out.contexts.back())) return out.contexts.back();
        uint64_t hash = 0;
        for (const uint64_t value : carried) hash = (hash ^ value) * 0x9E3779B97F4A7C15u, hash ^= hash >> 29;
        uint32_t& last = lately[hash % lately.size()];
        if (last != UINT32_MAX && is_row(last)) return last;
        auto [found, end] = rows.equal_range(hash);
        while (found != end && !is_row(found->second)) ++found;
        if (found != end) return last = found->second;
        const auto row = static_cast<uint32_t>(out.carried.size() / count);
        rows.emplace(hash, row);
        out.carried.insert(out.carried.end(), carried.begin(), carried.end());
        return last = row;
    }

    // All columns of events have the room of the first.
    void grow() {
        out.kinds.grow();
        out.times.grow(out.kinds.room());
        out.places.grow(out.kinds.room());
        if (!carried.empty()) out.contexts.grow(out.kinds.room());
    }

    // Returns where the next packet may begin; the end if nothing says so.
    size_t next_packet(size_t from) const {
        if (trace.magic.empty()) return data.size();
        const auto found = std::search(data.begin() + static_cast<std::ptrdiff_t>(std::min(from, data.size())), data.end(),
                                       std::boyer_moore_horspool_searcher(trace.magic.begin(), trace.magic.end()));
        return static_cast<size_t>(found - data.begin());
    }

    void leave(size_t begin, size_t end) {
        if (begin == end) return;
        const auto bytes = data.subspan(begin, end - begin);
        if (std::all_of(bytes.begin(), bytes.end(), [](uint8_t byte) { return byte == 0; })) {
            out.padding += bytes.size();
        } else {
            out.lost += bytes.size();
            out.losses.push_back({begin, bytes.size()});
        }
    }

    uint64_t magic_value() const {
        uint64_t little = 0, big = 0;
        for (size_t i = 0; i < 4; ++i) {
            little |= uint64_t{trace.magic[i]} << (8 * i);
            big = big << 8 | trace.magic[i];
        }
        return little == 0xC1FC1FC1 ? little : big;
    }

    // Reads header and context of the packet at byte `at`; false if it is none.
    bool begin(size_t at, TracePacket& packet, uint64_t& place) {
        const uint64_t all = 8 * uint64_t{data.size()}, first = 8 * uint64_t{at};
        machine.known = 0;
        // A tag or length that the packet itself never wrote is 0, wherever reading began.
        std::fill(machine.slots.begin(), machine.slots.end(), 0);
        machine.meanings = {};
        place = first;
        carried.assign(trace.carried, absent_value);
        const auto carry = [&](int32_t leaf, uint64_t value, uint64_t) { keep(leaf, value); };
        if (!machine.run(trace.header, place, all, first, carry)) return false;
        if (machine.has(Meaning::magic) && machine[Meaning::magic] != 0xC1FC1FC1) return false;
        if (machine.has(Meaning::uuid) && trace.uuid.size() == 16 &&
            std::memcmp(data.data() + machine[Meaning::uuid], trace.uuid.data(), 16) != 0) {
            return false;
        }
        size_t row = 0;
        if (machine.has(Meaning::stream)) {
            while (row < trace.streams.size() && trace.streams[row].id != machine[Meaning::stream]) ++row;
        }
        if (row >= trace.streams.size()) return false;
        packet = {};
        packet.context = place;
        if (!machine.run(trace.streams[row].context, place, all, first, carry)) return false;
        const uint64_t rest = all - first;
        const bool has_size = machine.has(Meaning::size), has_content = machine.has(Meaning::content);
        packet.offset = at;
        packet.size = has_size ? machine[Meaning::size] : has_content ? machine[Meaning::content] : rest;
        packet.content = has_content ? machine[Meaning::content] : packet.size;
        // A size of 0 is that of a packet whose writer died before it closed it.
        if (packet.size == 0 && has_size) packet.size = packet.content = rest, packet.cut = 1;
        if (packet.content > packet.size || packet.content < place - first || packet.size % 8 != 0 || packet.size == 0) return false;
        packet.begin = machine.clock;
        packet.end = machine.has(Meaning::end) ? machine[Meaning::end] : machine.clock;
        packet.discarded = machine[Meaning::discarded];
        packet.sequence = machine[Meaning::sequence];
        packet.instance = machine[Meaning::instance];
        packet.known = machine.known;
        packet.stream = row;
        return true;
    }

    // Reads one packet; returns the byte behind it, 0 if there is none.
    size_t packet(size_t at) {
        TracePacket packet{};
        uint64_t place = 0;
        const uint64_t clock = machine.clock;
        if (!begin(at, packet, place)) {
            machine.clock = clock;
            return 0;
        }
        const uint64_t first = 8 * uint64_t{at}, rest = 8 * uint64_t{data.size()} - first;
        size_t end = at + packet.size / 8;
        if (packet.size > rest) {
            // Either the file is cut, or the size is wrong and another packet stands behind.
            packet.cut = 1;
            end = next_packet((place + 7) / 8);
            packet.content = std::min(packet.content, 8 * uint64_t{end - at});
        }
        packet.first_event = out.kinds.size();
        const StreamEntry& stream = trace.streams[packet.stream];
        const Lookup& lookup = lookups[packet.stream];
        const uint64_t limit = first + packet.content;
        const uint64_t only = stream.events > 0 ? trace.events[stream.first_event].id : UINT64_MAX;
        const auto carry = [&](int32_t leaf, uint64_t value, uint64_t) { keep(leaf, value); };
        while (place < limit) {
            const uint64_t start = place;
            machine.known &= ~(1u << static_cast<unsigned>(Meaning::id));
            bool is_read = machine.run(stream.header, place, limit, first, no_leaves);
            if (is_read) {
                const uint32_t row = lookup.row(machine.has(Meaning::id) ? machine[Meaning::id] : only);
                const uint64_t time = machine.clock;
                packet.unknown = row == UINT32_MAX;
                is_read = row != UINT32_MAX && machine.run(trace.events[row].step, place, limit, first, carry) && place > start;
                if (is_read) {
                    if (out.kinds.is_full()) [[unlikely]] grow();
                    if (!carried.empty()) out.contexts.push_within(context());
                    out.kinds.push_within(row);
                    out.times.push_within(time);
                    out.places.push_within(start);
                }
            }
            if (!is_read) {
                // A packet that was never closed ends in zeros.
                packet.lost = limit - start;
                place = start;
                break;
            }
        }
        packet.events = out.kinds.size() - packet.first_event;
        const size_t content = at + (packet.content + 7) / 8, read = at + static_cast<size_t>((place - first + 7) / 8);
        if (packet.lost != 0 && packet.cut != 0) {
            const bool is_filler = std::all_of(data.begin() + static_cast<std::ptrdiff_t>(read),
                                               data.begin() + static_cast<std::ptrdiff_t>(content), [](uint8_t byte) { return byte == 0; });
            if (is_filler) packet.lost = packet.unknown = 0, packet.content = place - first;
        }
        const size_t used = packet.lost != 0 ? content : at + (packet.content + 7) / 8;
        out.decoded += read - at;
        out.lost += packet.lost != 0 ? content - read : 0;
        out.padding += end - std::max(used, read);
        out.packets.push_back(packet);
        return end;
    }

    void run(Window& window) {
        // As many as there are where events are small; memory that is not filled costs none.
        const size_t rest = data.size() - std::min<size_t>(window.begin, data.size());
        out.kinds.expect(static_cast<size_t>(std::min<uint64_t>({rest / 24, uint64_t{1} << 24, window.most})));
        size_t at = window.begin;
        machine.clock = window.clock;
        while (at < data.size() && out.kinds.size() < window.most) {
            const size_t end = packet(at);
            if (end == 0) {
                const size_t next = next_packet(at + 1);
                leave(at, next);
                at = next;
            } else {
                at = end;
            }
        }
        window.begin = at;
        window.clock = machine.clock;
    }
};

}  // namespace

Walked walk_trace(std::span<const uint8_t> data, const Trace& trace, Window& window) {
    Walker walker(data, trace);
    walker.run(window);
    return std::move(walker.out);
}

struct LeafReader::State {
    struct Kept {
        size_t leaf;
        uint64_t value, extent;
    };

    State(std::span<const uint8_t> data, Extraction of, size_t leaves)
        : wanted(std::move(of)), machine(data, wanted.program), values(leaves), extents(leaves), limit(8 * uint64_t{data.size()}) {}

    void begin_packet(uint64_t begin) {
        packet = begin;
        of_packet.clear();
        std::fill(machine.slots.begin(), machine.slots.end(), 0);
        uint64_t at = begin;
        is_packet_read = at <= limit && machine.run(wanted.packet, at, limit, begin, [&](int32_t leaf, uint64_t value, uint64_t extent) {
            if (static_cast<size_t>(leaf) < values.size()) of_packet.push_back({static_cast<size_t>(leaf), value, extent});
        });
    }

    Extraction wanted;
    Machine machine;
    std::vector<uint64_t> values, extents;
    std::vector<Kept> of_packet;
    uint64_t limit;
    uint64_t packet = UINT64_MAX;
    bool is_packet_read = false;
};

LeafReader::LeafReader(std::span<const uint8_t> data, Extraction wanted, size_t leaves)
    : state_(std::make_unique<State>(data, std::move(wanted), leaves)) {}
LeafReader::LeafReader(LeafReader&&) noexcept = default;
LeafReader::~LeafReader() = default;

bool LeafReader::read(uint64_t place, uint64_t begin) {
    State& state = *state_;
    std::fill(state.extents.begin(), state.extents.end(), 0);
    if (begin != state.packet) state.begin_packet(begin);
    if (!state.is_packet_read || place > state.limit || begin > place) return false;
    for (const State::Kept& kept : state.of_packet) {
        state.values[kept.leaf] = kept.value;
        state.extents[kept.leaf] = kept.extent;
    }
    return state.machine.run(state.wanted.event, place, state.limit, begin, [&](int32_t leaf, uint64_t value, uint64_t extent) {
        if (static_cast<size_t>(leaf) >= state.values.size()) return;
        state.values[static_cast<size_t>(leaf)] = value;
        state.extents[static_cast<size_t>(leaf)] = extent;
    });
}

std::span<const uint64_t> LeafReader::values() const { return state_->values; }
std::span<const uint64_t> LeafReader::extents() const { return state_->extents; }

bool leaf_columns(std::span<const uint8_t> data, const Extraction& wanted, std::span<const uint64_t> places,
                  std::span<const uint64_t> begins, size_t leaves, std::span<uint64_t> columns) {
    LeafReader reader(data, wanted, leaves);
    const size_t count = places.size();
    bool all = true;
    for (size_t i = 0; i < count; ++i) {
        all = reader.read(places[i], begins[i]) && all;
        for (size_t leaf = 0; leaf < leaves; ++leaf) {
            const uint64_t extent = reader.extents()[leaf];
            columns[2 * leaf * count + i] = extent != 0 ? reader.values()[leaf] : 0;
            columns[(2 * leaf + 1) * count + i] = extent;
        }
    }
    return all;
}

}  // namespace lanescope::ctf
