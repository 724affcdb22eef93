// Sums over time: what runs together, what fills the time of lanes, and values by group.
#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "core/analysis/lanes/lanes.hpp"

namespace lanescope::lanes {
namespace {

constexpr int kKeys = 64;

// Sums by set of keys, of one unit at a time.
class Sums {
public:
    Sums() : slots_(64) {}

    void add(uint64_t keys, uint64_t time) {
        if (keys != recent_) place(keys);
        uint64_t& sum = slots_[at_].time;
        sum = time > kMost - sum ? kMost : sum + time;
    }

    // Append the sums, the smallest set first, and forget them.
    void finish(int64_t unit, Together& found) {
        std::sort(used_.begin(), used_.end(), [&](size_t a, size_t b) { return slots_[a].keys < slots_[b].keys; });
        for (const size_t at : used_) {
            found.unit.push_back(unit);
            found.keys.push_back(slots_[at].keys);
            found.time.push_back(static_cast<int64_t>(slots_[at].time));
            slots_[at] = {};
        }
        used_.clear();
        recent_ = 0;
    }

private:
    static constexpr uint64_t kMost = std::numeric_limits<int64_t>::max();

    struct Slot {
        uint64_t keys = 0;  // no set is empty
        uint64_t time = 0;
    };

    void place(uint64_t keys) {
        if (2 * used_.size() >= slots_.size()) grow();
        at_ = seek(keys);
        if (slots_[at_].keys == 0) {
            slots_[at_].keys = keys;
            used_.push_back(at_);
        }
        recent_ = keys;
    }

    size_t seek(uint64_t keys) const {
        const size_t mask = slots_.size() - 1;
        size_t at = static_cast<size_t>((keys * 0x9E3779B97F4A7C15u) >> 32) & mask;
        while (slots_[at].keys != 0 && slots_[at].keys != keys) at = (at + 1) & mask;
        return at;
    }

    void grow() {
        std::vector<Slot> old(2 * slots_.size());
        old.swap(slots_);
        for (size_t& at : used_) {
            const Slot slot = old[at];
            at = seek(slot.keys);
            slots_[at] = slot;
        }
    }

    std::vector<Slot> slots_;
    std::vector<size_t> used_;
    uint64_t recent_ = 0;  // the set that was added to last, and its place
    size_t at_ = 0;
};

// Call ``emit(lane, begin, end, state, row)`` for the stretches of all lanes in order.
template <class Emit>
void each_stretch(const Known& known, size_t lanes, int64_t low, int64_t high, Emit emit) {
    const Intervals &time = known.time, &marked = known.marked;
    size_t at = 0, mark = 0;
    for (size_t n = 0; n < lanes; ++n) {
        const auto lane = static_cast<int64_t>(n);
        const auto rest = [&](int64_t begin, int64_t end) {
            while (begin < end) {
                while (mark < marked.group.size() &&
                       (marked.group[mark] < lane || (marked.group[mark] == lane && marked.end[mark] <= begin))) {
                    ++mark;
                }
                const bool is_near = mark < marked.group.size() && marked.group[mark] == lane && marked.begin[mark] < end;
                const bool is_inside = is_near && marked.begin[mark] <= begin;
                const int64_t until = is_inside ? std::min(end, marked.end[mark]) : is_near ? marked.begin[mark] : end;
                emit(lane, begin, until, is_inside ? known.inside : known.outside, int64_t{-1});
                begin = until;
            }
        };
        int64_t cursor = low;
        for (; at < time.group.size() && time.group[at] <= lane; ++at) {
            rest(cursor, time.begin[at]);
            emit(lane, time.begin[at], time.end[at], known.state[at], known.row[at]);
            cursor = std::max(cursor, time.end[at]);
        }
        rest(cursor, high);
    }
}

}  // namespace

Together together(const Intervals& items, std::span<const int64_t> order) {
    Together found;
    Sums sums;
    std::array<size_t, kKeys> running{};
    using Ending = std::pair<int64_t, int>;  // end and key
    std::vector<Ending> ends;                // a heap, the first to end on top
    uint64_t keys = 0;
    int64_t cursor = 0;
    const auto pass = [&](int64_t until) {
        if (keys != 0 && until > cursor) sums.add(keys, static_cast<uint64_t>(until) - static_cast<uint64_t>(cursor));
        cursor = until;
    };
    const auto close = [&] {
        const auto [end, key] = ends.front();
        pass(end);
        std::pop_heap(ends.begin(), ends.end(), std::greater<>());
        ends.pop_back();
        if (--running[static_cast<size_t>(key)] == 0) keys &= ~(uint64_t{1} << key);
    };
    int64_t unit = -1;
    for (const int64_t row : order) {
        const auto at = static_cast<size_t>(row);
        const int64_t begin = items.begin[at], end = items.end[at];
        if (end <= begin) continue;
        if (items.group[at] / kKeys != unit) {
            while (!ends.empty()) close();
            sums.finish(unit, found);
            unit = items.group[at] / kKeys;
        }
        while (!ends.empty() && ends.front().first <= begin) close();
        pass(begin);
        const int key = static_cast<int>(items.group[at] % kKeys);
        if (running[static_cast<size_t>(key)]++ == 0) keys |= uint64_t{1} << key;
        ends.emplace_back(end, key);
        std::push_heap(ends.begin(), ends.end(), std::greater<>());
    }
    while (!ends.empty()) close();
    sums.finish(unit, found);
    return found;
}

Filled fill(const Known& known, size_t lanes, int64_t low, int64_t high) {
    size_t count = 0;
    each_stretch(known, lanes, low, high, [&](int64_t, int64_t, int64_t, uint8_t, int64_t) { ++count; });
    Filled found;
    found.lane.reserve(count);
    found.begin.reserve(count);
    found.end.reserve(count);
    found.state.reserve(count);
    found.row.reserve(count);
    each_stretch(known, lanes, low, high, [&](int64_t lane, int64_t begin, int64_t end, uint8_t state, int64_t row) {
        found.lane.push_back(lane);
        found.begin.push_back(begin);
        found.end.push_back(end);
        found.state.push_back(state);
        found.row.push_back(row);
    });
    return found;
}

Hull hull(std::span<const int64_t> begin, std::span<const int64_t> length, std::span<const uint8_t> known) {
    constexpr int64_t highest = std::numeric_limits<int64_t>::max();
    Hull found{0, highest, std::numeric_limits<int64_t>::min()};
    for (size_t i = 0; i < begin.size(); ++i) {
        const bool is_closed = !length.empty() && (known.empty() || known[i] != 0);
        const int64_t room = highest - std::max<int64_t>(begin[i], 0);
        const int64_t time = is_closed ? std::clamp<int64_t>(length[i], 0, room) : 0;
        found.closed += is_closed;
        found.first = std::min(found.first, begin[i]);
        found.last = std::max(found.last, begin[i] + time);
    }
    return found;
}

void known_ends(std::span<const int64_t> begin, const Nullable& length, const Nullable& seen, std::span<int64_t> end) {
    constexpr int64_t most = std::numeric_limits<int64_t>::max();
    for (size_t i = 0; i < begin.size(); ++i) {
        if (length.has(i)) {
            const int64_t room = most - std::max<int64_t>(begin[i], 0);
            end[i] = begin[i] + std::clamp<int64_t>(length.values[i], 0, room);
        } else {
            end[i] = seen.has(i) ? std::max(seen.values[i], begin[i]) : begin[i];
        }
    }
}

bool add_up(std::span<const int64_t> group, std::span<const int64_t> value, std::span<int64_t> sums) {
    for (size_t i = 0; i < group.size(); ++i) {
        const auto at = static_cast<uint64_t>(group[i]);
        if (at >= sums.size()) return false;
        sums[at] = static_cast<int64_t>(static_cast<uint64_t>(sums[at]) + static_cast<uint64_t>(value[i]));
    }
    return true;
}

}  // namespace lanescope::lanes
