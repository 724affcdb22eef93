#include "core/devices/ascend/joins.hpp"

#include <algorithm>
#include <limits>
#include <tuple>

namespace lanescope::ascend {

bool extremes(std::span<const int64_t> task, std::span<const int64_t> value, bool largest, std::span<int64_t> best,
              std::span<int64_t> row) {
    std::fill(best.begin(), best.end(), largest ? 0 : std::numeric_limits<int64_t>::max());
    std::fill(row.begin(), row.end(), -1);
    for (size_t i = 0; i < task.size(); ++i) {
        const auto at = static_cast<uint64_t>(task[i]);
        if (at >= best.size()) return false;
        const bool is_better = largest ? value[i] > best[at] : value[i] < best[at];
        if (!is_better && (row[at] >= 0 || value[i] != best[at])) continue;
        best[at] = value[i];
        row[at] = static_cast<int64_t>(i);
    }
    for (size_t at = 0; at < best.size(); ++at) {
        if (row[at] < 0) best[at] = 0;
    }
    return true;
}

void last_of_lane(std::span<const int64_t> lane, std::span<const int64_t> value, std::span<const int64_t> wanted_lane,
                  std::span<const int64_t> wanted, std::span<int64_t> found) {
    struct Range {
        int64_t lane;
        size_t first, last;
        size_t hint;  // where the last wanted value of the lane went
    };
    std::vector<Range> ranges;
    for (size_t i = 0; i < lane.size(); ++i) {
        if (i == 0 || lane[i] != lane[i - 1]) ranges.push_back({lane[i], i, i, i});
        ranges.back().last = i + 1;
    }
    const auto is_before = [](const Range& range, int64_t number) { return range.lane < number; };
    Range* range = nullptr;
    for (size_t i = 0; i < wanted.size(); ++i) {
        found[i] = -1;
        if (range == nullptr || range->lane != wanted_lane[i]) {
            const auto at = std::lower_bound(ranges.begin(), ranges.end(), wanted_lane[i], is_before);
            if (at == ranges.end() || at->lane != wanted_lane[i]) continue;
            range = &*at;
        }
        // Places below `low` do not exceed it, those from `high` on do: by steps that double, from where the last one went.
        size_t low = range->first;
        size_t high = range->last;
        size_t step = 1;
        if (range->hint == low || value[range->hint - 1] <= wanted[i]) {
            low = range->hint;
            while (low + step < high && value[low + step - 1] <= wanted[i]) {
                low += step;
                step *= 2;
            }
            high = std::min(high, low + step);
        } else {
            high = range->hint;
            while (high - low > step && value[high - step] > wanted[i]) {
                high -= step;
                step *= 2;
            }
            if (high - low > step) low = high - step;
        }
        const int64_t* const values = value.data();
        range->hint = static_cast<size_t>(std::upper_bound(values + low, values + high, wanted[i]) - values);
        if (range->hint > range->first) found[i] = static_cast<int64_t>(range->hint) - 1;
    }
}

bool first_of_pairs(std::span<const int64_t> key, std::span<const int64_t> other, std::span<const int64_t> stamp,
                    uint64_t keys, std::vector<int64_t>& found) {
    const auto counts = [&](size_t i) { return key[i] >= 0 && other[i] >= 0 && stamp[i] > 0; };
    std::vector<uint64_t> start(keys + 1, 0);
    for (size_t i = 0; i < key.size(); ++i) {
        if (!counts(i)) continue;
        if (static_cast<uint64_t>(key[i]) >= keys) return false;
        ++start[static_cast<uint64_t>(key[i]) + 1];
    }
    for (size_t i = 1; i <= keys; ++i) start[i] += start[i - 1];
    found.resize(start[keys]);
    // Afterwards start[k] is where the rows of key k end.
    for (size_t i = 0; i < key.size(); ++i) {
        if (counts(i)) found[start[static_cast<uint64_t>(key[i])]++] = static_cast<int64_t>(i);
    }
    const auto order = [&](int64_t row) {
        const auto i = static_cast<size_t>(row);
        return std::tuple(other[i], stamp[i], row);
    };
    size_t kept = 0;
    size_t begin = 0;
    for (size_t k = 0; k < keys; ++k) {
        const size_t end = start[k];
        if (end - begin > 1) {
            std::sort(found.begin() + static_cast<ptrdiff_t>(begin), found.begin() + static_cast<ptrdiff_t>(end),
                      [&](int64_t a, int64_t b) { return order(a) < order(b); });
        }
        for (size_t i = begin; i < end; ++i) {
            const bool is_first = i == begin || other[static_cast<size_t>(found[i])] != other[static_cast<size_t>(found[kept - 1])];
            if (is_first) found[kept++] = found[i];
        }
        begin = end;
    }
    found.resize(kept);
    return true;
}

}  // namespace lanescope::ascend
