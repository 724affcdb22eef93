#include "core/devices/aie/path_walk.hpp"

#include <algorithm>

namespace lanescope::aie {

namespace {

constexpr size_t kFirstSlots = 1024;
constexpr int64_t kAddressMask = 0x3FFF;

}  // namespace

Transitions::Transitions(int64_t wrap) : wrap_(wrap) { clear(); }

void Transitions::clear() {
    slots_.assign(kFirstSlots, Slot{kFree, {}});
    mask_ = kFirstSlots - 1;
    used_ = 0;
}

void Transitions::put(uint64_t key, const Transition& transition) {
    size_t i = hash(key) & mask_;
    while (slots_[i].key != kFree && slots_[i].key != key) i = (i + 1) & mask_;
    used_ += slots_[i].key == kFree;
    slots_[i] = {key, transition};
}

void Transitions::add(int32_t state, int32_t symbol, const Transition& transition) {
    if (2 * (used_ + 1) > slots_.size()) {
        std::vector<Slot> old(slots_.size() * 2, Slot{kFree, {}});
        old.swap(slots_);
        mask_ = slots_.size() - 1;
        used_ = 0;
        for (const Slot& slot : old) {
            if (slot.key != kFree) put(slot.key, slot.transition);
        }
    }
    put(key_of(state, symbol), transition);
}

size_t Transitions::follow(int32_t& state, std::span<const int32_t> symbols, std::span<int32_t> entries) const {
    const size_t most = std::min(symbols.size(), entries.size());
    for (size_t i = 0; i < most; ++i) {
        const Transition* found = find(state, symbols[i]);
        if (found == nullptr || found->next < 0) return i;
        entries[i] = found->entry;
        state = found->next;
    }
    return most;
}

int32_t Transitions::symbol_of(uint8_t kind, int64_t value, int64_t& reg) const {
    switch (static_cast<Row>(kind)) {
        case Row::taken: return kTaken;
        case Row::not_taken: return kNotTaken;
        case Row::new_pc: return kAddress + static_cast<int32_t>(value & kAddressMask);
        case Row::loop: {
            const int64_t count = value & (kIsWrapped - 1);
            if (value & kIsWrapped) {
                reg = count + wrap_;
                return kWrappedCount;
            }
            if (count < kLeastCount) return kSmallCount + static_cast<int32_t>(count);
            reg = count;
            return kCount;
        }
        default: return -1;
    }
}

StopReason Transitions::walk(Position& at, std::span<const uint8_t> kind, std::span<const int64_t> value,
                       std::span<const int64_t> count, std::span<int32_t> entries, std::span<int64_t> registers,
                       size_t& steps) const {
    const size_t rows = kind.size();
    const size_t room = std::min(entries.size(), registers.size());
    while (static_cast<size_t>(at.row) < rows) {
        const auto row = static_cast<size_t>(at.row);
        int64_t reg = at.reg;
        const int32_t symbol = symbol_of(kind[row], value[row], reg);
        if (symbol < 0) return StopReason::odd;
        while (at.taken < count[row]) {
            if (steps == room) return StopReason::full;
            const Transition* found = find(at.state, symbol);
            if (found == nullptr) return StopReason::missing;
            if (found->next < 0) return StopReason::dead;
            // Only a frame of its own sets the register; every other goes on with what is there.
            const int64_t now = symbol == kCount || symbol == kWrappedCount ? reg : at.reg;
            if (now < found->least) {
                if (symbol == kCount || symbol == kWrappedCount || at.reg < 0 || at.reg >= kMostRegister) {
                    return StopReason::small;
                }
                const Transition* exact = find(at.state, kRegister + static_cast<int32_t>(at.reg));
                if (exact == nullptr) return StopReason::small;
                entries[steps] = exact->entry;
                registers[steps++] = at.reg;
                at.state = exact->next;
                continue;
            }
            entries[steps] = found->entry;
            registers[steps++] = now;
            at.state = found->next;
            at.reg = now + found->shift;
            ++at.taken;
        }
        at.taken = 0;
        ++at.row;
    }
    return StopReason::done;
}

}  // namespace lanescope::aie
