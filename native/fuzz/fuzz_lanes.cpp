// Any intervals of any groups: order, covered time, leaves and clashes are those of plain loops.
#include <cstdlib>
#include <numeric>
#include <set>
#include <vector>

#include "core/analysis/lanes/lanes.hpp"
#include "record_mutator.hpp"
#include "require.hpp"

LANESCOPE_FUZZ_RECORDS(1, 3)

using lanescope::fuzz::require;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace lanescope::lanes;
    using lanescope::check::Nesting;
    if (size < 1) return 0;
    const size_t n = std::min<size_t>((size - 1) / 3, 120);
    const bool has_far_groups = data[0] % 16 == 3;
    std::vector<int64_t> group(n), begin(n), end(n);
    for (size_t i = 0; i < n; ++i) {
        const uint8_t* item = data + 1 + 3 * i;
        group[i] = item[0] % 5 - 1 + (has_far_groups && item[0] > 200 ? int64_t{1} << 40 : 0);
        begin[i] = item[1] % 64;
        end[i] = begin[i] + item[2] % 24 - (item[2] == 255 ? 20 : 0);
    }
    const Intervals items{group, begin, end};
    std::vector<int64_t> found(n), expected(n);
    std::iota(expected.begin(), expected.end(), 0);
    const auto value = [](const std::vector<int64_t>& column, int64_t row) { return column[static_cast<size_t>(row)]; };
    std::stable_sort(expected.begin(), expected.end(), [&](int64_t a, int64_t b) {
        if (value(group, a) != value(group, b)) return value(group, a) < value(group, b);
        if (value(begin, a) != value(begin, b)) return value(begin, a) < value(begin, b);
        return value(end, a) > value(end, b);
    });
    if (!order(items, found)) {
        require(has_far_groups);
        return 0;
    }
    require(found == expected);

    // Moments that are covered, one by one.
    const auto moments = [](const auto& groups, const auto& begins, const auto& ends) {
        std::set<std::pair<int64_t, int64_t>> all;
        for (size_t i = 0; i < groups.size(); ++i) {
            for (int64_t time = begins[i]; time < ends[i]; ++time) all.insert({groups[i], time});
        }
        return all;
    };
    const auto all = moments(group, begin, end);
    const Union sum = covered(items, found);
    require(moments(sum.group, sum.begin, sum.end) == all);
    for (size_t i = 0; i < sum.group.size(); ++i) {
        require(sum.begin[i] < sum.end[i]);
        require(i == 0 || sum.group[i - 1] < sum.group[i] || sum.end[i - 1] < sum.begin[i]);
    }

    const Nesting promised[] = {Nesting::free, Nesting::disjoint, Nesting::nested};
    bool clashes = false, falls = false, rises = true, is_nested = true;
    for (size_t i = 0; i < n; ++i) {
        for (size_t j = 0; j < n; ++j) {
            if (group[i] != group[j] || i == j) continue;
            if (j < i && group[i] >= 0 && group[i] < 3) rises = rises && begin[i] >= begin[j];
            if (end[i] <= begin[i] || end[j] <= begin[j]) continue;
            const bool shares = begin[i] < end[j] && begin[j] < end[i], crosses = shares && begin[i] < begin[j] && end[i] < end[j];
            is_nested = is_nested && !crosses;
            if (group[i] >= 0 && group[i] < 3) {
                clashes = clashes || (group[i] == 1 && shares) || (group[i] == 2 && crosses);
            }
        }
    }
    for (size_t i = 1; i < n; ++i) {
        const int64_t a = found[i - 1], b = found[i];
        falls = falls || (value(group, a) == value(group, b) && value(end, b) < value(end, a));
    }
    require(clash(items, found, promised) == clashes);
    require(fall(group, end, found) == falls && rise(group, begin, 3) == rises);

    if (!is_nested) return 0;
    std::vector<int64_t> sorted_group, sorted_begin, sorted_end;
    for (const int64_t row : found) {
        if (value(end, row) <= value(begin, row)) continue;
        sorted_group.push_back(value(group, row));
        sorted_begin.push_back(value(begin, row));
        sorted_end.push_back(value(end, row));
    }
    const Leaves leaf = leaves({sorted_group, sorted_begin, sorted_end});
    require(moments(leaf.group, leaf.begin, leaf.end) == all);
    size_t time = 0;
    for (size_t i = 0; i < leaf.group.size(); ++i) {
        require(leaf.begin[i] < leaf.end[i]);
        time += static_cast<size_t>(leaf.end[i] - leaf.begin[i]);
        const auto owner = static_cast<size_t>(leaf.owner[i]);
        require(sorted_group[owner] == leaf.group[i] && sorted_begin[owner] <= leaf.begin[i] && leaf.end[i] <= sorted_end[owner]);
        // The owner is the innermost: the last in that order that holds it.
        for (size_t j = owner + 1; j < sorted_group.size(); ++j) {
            require(sorted_group[j] != leaf.group[i] || sorted_begin[j] > leaf.begin[i] || sorted_end[j] < leaf.end[i]);
        }
    }
    require(time == all.size());
    return 0;
}
