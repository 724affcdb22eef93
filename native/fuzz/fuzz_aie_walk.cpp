// Any table and any rows: each step is a transition that was added, in its place, and no output is overrun.
#include <array>
#include <cstdlib>
#include <map>
#include <utility>
#include <vector>

#include "core/devices/aie/path_walk.hpp"

namespace {

using namespace lanescope::aie;

// Values of the input in order; zeros behind its end.
class Input {
public:
    explicit Input(std::span<const uint8_t> data) : data_(data) {}
    bool is_empty() const { return data_.empty(); }
    uint8_t byte() {
        if (data_.empty()) return 0;
        const uint8_t value = data_.front();
        data_ = data_.subspan(1);
        return value;
    }

private:
    std::span<const uint8_t> data_;
};

constexpr std::array<int32_t, 8> kSymbols{kNotTaken, kTaken, kAddress + 5, kCount, kWrappedCount, kSmallCount + 3, kRegister + 2, kRegister + 9};
constexpr size_t kRoom = 64;

void expect(bool is_true) {
    if (!is_true) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    Input input({data, size});
    Transitions table(int64_t{1} << (input.byte() % 29));
    std::map<std::pair<int32_t, int32_t>, Transition> known;
    int32_t entry = 0;
    for (int left = input.byte(); left > 0 && !input.is_empty(); --left) {
        const uint8_t what = input.byte(), value = input.byte();
        const std::pair<int32_t, int32_t> key{what & 7, kSymbols[what >> 3 & 7]};
        const Transition transition{entry++, (value & 15) - 1, -(value >> 4 & 3), value >> 6};
        table.add(key.first, key.second, transition);
        known[key] = transition;
    }
    std::vector<uint8_t> kind;
    std::vector<int64_t> value, count;
    while (!input.is_empty()) {
        const uint8_t what = input.byte();
        kind.push_back(what & 7);
        count.push_back(what >> 3 & 3);
        value.push_back((what & 32) != 0 ? 5 : int64_t{input.byte()} << (what >> 6) * 8 | (what >> 6 == 3 ? kIsWrapped : 0));
    }

    // In pieces of a few steps, as its caller does when its arrays are full.
    std::array<int32_t, kRoom> entries;
    std::array<int64_t, kRoom> registers;
    Position at;
    std::vector<int32_t> taken;
    for (size_t turns = 0; turns <= 16 * kind.size() + 64; ++turns) {
        const size_t room = 1 + turns % kRoom;
        size_t steps = 0;
        int32_t state = at.state;
        const StopReason why = table.walk(at, kind, value, count, std::span(entries).first(room), std::span(registers).first(room), steps);
        expect(steps <= room && at.row >= 0 && static_cast<size_t>(at.row) <= kind.size());
        for (size_t i = 0; i < steps; ++i) {
            bool is_known = false;
            for (const int32_t symbol : kSymbols) {
                const auto found = known.find({state, symbol});
                if (found == known.end() || found->second.entry != entries[i] || found->second.next < 0) continue;
                is_known = true;
                state = found->second.next;
                break;
            }
            expect(is_known);
            taken.push_back(entries[i]);
        }
        expect(state == at.state);
        if (why != StopReason::full) break;
    }

    // Symbols alone, to the first that is missing.
    std::vector<int32_t> symbols;
    for (const uint8_t row : kind) symbols.push_back(kSymbols[row]);
    std::vector<int32_t> followed(symbols.size());
    int32_t state = 0, slow = 0;
    const size_t done = table.follow(state, symbols, followed);
    for (size_t i = 0; i < symbols.size(); ++i) {
        const auto found = known.find({slow, symbols[i]});
        if (found == known.end() || found->second.next < 0) {
            expect(i == done);
            break;
        }
        expect(i < done && followed[i] == found->second.entry);
        slow = found->second.next;
    }
    expect(slow == state);
    return 0;
}
