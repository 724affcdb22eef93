// Follows a table of transitions that its caller fills in while it goes: the inner loop of path reconstruction.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace lanescope::aie {

// What walk() is fed: rows of execution mode, in the order of FLOW_KINDS of devices/aie/layout.py.
enum class Row : uint8_t { start, restart, new_pc, taken, not_taken, loop, stop };

// Symbols of frames. The caller knows them, too.
inline constexpr int32_t kNotTaken = 0;
inline constexpr int32_t kTaken = 1;
inline constexpr int32_t kAddress = 2;             // + address
inline constexpr int32_t kCount = 1 << 15;         // the register is set to the count
inline constexpr int32_t kWrappedCount = kCount + 1;  // the register is set to what it is at least
inline constexpr int32_t kSmallCount = 1 << 16;    // + a count that is too small for the register
inline constexpr int64_t kLeastCount = 8;
inline constexpr int32_t kRegister = 1 << 22;      // + the register: no frame, the situation at this count
inline constexpr int64_t kMostRegister = 1 << 20;
inline constexpr int64_t kIsWrapped = 1 << 28;     // of a count: the frame had no room for more

struct Transition {
    int32_t entry;  // its number, for the caller
    int32_t next;   // state after it; negative: nothing follows
    int64_t shift;  // added to the register
    int64_t least;  // the least register that it holds for
};

// Why walk() came back.
enum class StopReason : int32_t { done, full, missing, dead, small, odd };

struct Position {
    int64_t row = 0;     // the next row
    int64_t taken = 0;   // how often that row has been taken already
    int32_t state = 0;
    int64_t reg = 0;
};

class Transitions {
public:
    // A count that is wrapped is `wrap` at least, and larger by what the frame says.
    explicit Transitions(int64_t wrap = kIsWrapped);
    void clear();
    void add(int32_t state, int32_t symbol, const Transition& transition);

    // Take symbols from `state` on while there are transitions for them; return how many, `state` goes along.
    size_t follow(int32_t& state, std::span<const int32_t> symbols, std::span<int32_t> entries) const;

    // The same for rows, each `count` times; writes number and register of each transition.
    StopReason walk(Position& at, std::span<const uint8_t> kind, std::span<const int64_t> value,
              std::span<const int64_t> count, std::span<int32_t> entries, std::span<int64_t> registers,
              size_t& steps) const;

    // The symbol of a row; kCount and kWrappedCount set `reg`. Negative: there is none.
    int32_t symbol_of(uint8_t kind, int64_t value, int64_t& reg) const;

private:
    struct Slot {
        uint64_t key;
        Transition transition;
    };
    const Transition* find(int32_t state, int32_t symbol) const {
        const uint64_t key = key_of(state, symbol);
        for (size_t i = hash(key) & mask_;; i = (i + 1) & mask_) {
            if (slots_[i].key == key) return &slots_[i].transition;
            if (slots_[i].key == kFree) return nullptr;
        }
    }
    static constexpr uint64_t kFree = ~uint64_t{0};
    static uint64_t key_of(int32_t state, int32_t symbol) {
        return static_cast<uint64_t>(static_cast<uint32_t>(state)) << 32 | static_cast<uint32_t>(symbol);
    }
    static size_t hash(uint64_t key) {
        key *= 0x9E3779B97F4A7C15ull;
        return static_cast<size_t>(key ^ (key >> 29));
    }
    void put(uint64_t key, const Transition& transition);

    int64_t wrap_;
    std::vector<Slot> slots_;
    size_t mask_ = 0;
    size_t used_ = 0;
};

}  // namespace lanescope::aie
