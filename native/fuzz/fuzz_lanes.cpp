// Any intervals of any groups: order, covered time, what fills lanes and runs together, leaves and clashes are those of
// plain loops.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <limits>
#include <map>
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
    std::vector<Item> room;
    const auto scratch = [&](size_t count) {
        room.assign(count, {});
        return std::span(room);
    };
    if (!order(items, found, scratch)) {
        require(has_far_groups);
        return 0;
    }
    require(found == expected);

    // Moments that are covered, one by one.
    using Columns = std::array<std::vector<int64_t>, 3>;
    const auto moments = [](const auto& groups, const auto& begins, const auto& ends) {
        std::set<std::pair<int64_t, int64_t>> all;
        for (size_t i = 0; i < groups.size(); ++i) {
            for (int64_t time = begins[i]; time < ends[i]; ++time) all.insert({groups[i], time});
        }
        return all;
    };
    const auto all = moments(group, begin, end);
    const auto united = [&](const std::vector<int64_t>& rows, Columns& out) {
        for (auto& column : out) column.resize(rows.size());
        const size_t count = covered(items, rows, {out[0], out[1], out[2]});
        return Union{std::span(out[0]).first(count), std::span(out[1]).first(count), std::span(out[2]).first(count)};
    };
    Columns of_all, of_half;
    const Union sum = united(found, of_all);
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
    const std::span<const int64_t> ends(end);
    const std::span<const int64_t> pieces[] = {ends.first(n / 3), ends.subspan(n / 3, n / 2 - n / 3), ends.subspan(n / 2)};
    require(fall(group, pieces, found) == falls && rise(group, begin, 3) == rises);

    // Sets of keys that run, moment by moment.
    std::vector<int64_t> keyed(n);
    for (size_t i = 0; i < n; ++i) keyed[i] = (group[i] + 1) / 2 * 64 + (data[1 + 3 * i] % 7) * 9;
    std::vector<int64_t> unit(n), by_unit(n);
    for (size_t i = 0; i < n; ++i) unit[i] = keyed[i] / 64;
    if (order({unit, begin, {}}, by_unit, scratch)) {
        std::map<std::pair<int64_t, uint64_t>, int64_t> times;
        for (const int64_t each : std::set<int64_t>(unit.begin(), unit.end())) {
            for (int64_t time = -20; time < 90; ++time) {
                uint64_t keys = 0;
                for (size_t i = 0; i < n; ++i) {
                    if (unit[i] == each && begin[i] <= time && time < end[i]) keys |= uint64_t{1} << (keyed[i] % 64);
                }
                if (keys != 0) ++times[{each, keys}];
            }
        }
        const Together shared = together({keyed, begin, end}, by_unit);
        require(shared.unit.size() == times.size());
        size_t at = 0;
        for (const auto& [key, time] : times) {
            require(shared.unit[at] == key.first && shared.keys[at] == key.second && shared.time[at] == time);
            ++at;
        }
    }

    // What is covered of four lanes, and the rest, partly marked by the intervals of the first half.
    Intervals known{sum.group, sum.begin, sum.end};
    const auto own = [](int64_t lane) { return lane >= 0 && lane < 4; };
    const auto first = static_cast<size_t>(std::find_if(sum.group.begin(), sum.group.end(), own) - sum.group.begin());
    const auto count = static_cast<size_t>(std::count_if(sum.group.begin(), sum.group.end(), own));
    for (auto* column : {&known.group, &known.begin, &known.end}) *column = column->subspan(first, count);
    const std::vector<uint8_t> state(count, 1);
    std::vector<int64_t> row(count);
    std::iota(row.begin(), row.end(), 0);
    std::vector<int64_t> half;
    for (const int64_t each : found) {
        if (static_cast<size_t>(each) < n / 2) half.push_back(each);
    }
    const Union mark = united(half, of_half);
    const Filled whole = fill({known, state, row, {mark.group, mark.begin, mark.end}, 2, 3}, 4, -30, 100);
    const auto marked = moments(mark.group, mark.begin, mark.end);
    int64_t lane = 0, cursor = -30;
    for (size_t i = 0; i < whole.lane.size(); ++i) {
        if (whole.lane[i] != lane) {
            require(cursor == 100 && whole.lane[i] == ++lane);
            cursor = -30;
        }
        require(whole.begin[i] == cursor && whole.end[i] > cursor);
        for (; cursor < whole.end[i]; ++cursor) {
            const bool is_known = all.contains({lane, cursor}), is_marked = marked.contains({lane, cursor});
            require(whole.state[i] == (is_known ? 1 : is_marked ? 2 : 3) && (whole.row[i] >= 0) == is_known);
        }
    }
    require(lane == 3 && cursor == 100);

    std::vector<uint8_t> closed(n);
    Hull plain{0, std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min()};
    for (size_t i = 0; i < n; ++i) {
        closed[i] = group[i] % 2 == 0;
        plain.closed += closed[i];
        plain.first = std::min(plain.first, begin[i]);
        plain.last = std::max(plain.last, begin[i]);
        const __int128 stop = __int128{begin[i]} + std::max<int64_t>(end[i], 0);
        const __int128 room = std::numeric_limits<int64_t>::max();
        if (closed[i] != 0) plain.last = std::max(plain.last, static_cast<int64_t>(std::min(stop, room)));
    }
    const Hull seen = hull(begin, end, closed);
    require(seen.closed == plain.closed && seen.first == plain.first && seen.last == plain.last);

    // Up to when intervals are known to last: with and without lengths, and times at which they were last seen.
    std::vector<int64_t> last(n);
    const std::vector<int64_t> none;
    const std::vector<uint8_t> all_known;
    for (const bool has_lengths : {false, true}) {
        for (const bool has_seen : {false, true}) {
            const Nullable length{has_lengths ? std::span<const int64_t>(end) : none, closed};
            const Nullable last_seen{has_seen ? std::span<const int64_t>(end) : none, all_known};
            known_ends(begin, length, last_seen, last);
            for (size_t i = 0; i < n; ++i) {
                __int128 stop = begin[i];
                if (has_lengths && closed[i] != 0) stop += std::max<int64_t>(end[i], 0);
                else if (has_seen) stop = std::max(stop, __int128{end[i]});
                require(last[i] == static_cast<int64_t>(std::min<__int128>(stop, std::numeric_limits<int64_t>::max())));
            }
        }
    }

    std::vector<int64_t> sums(4), added(4);
    bool is_in = true;
    for (size_t i = 0; i < n; ++i) is_in = is_in && own(group[i]);
    require(add_up(group, end, sums) == is_in);
    for (size_t i = 0; i < n; ++i) {
        if (own(group[i])) added[static_cast<size_t>(group[i])] += end[i];
    }
    require(!is_in || sums == added);

    if (!is_nested) return 0;
    const int64_t lanes = 5;
    std::set<std::pair<int64_t, int64_t>> there;
    for (const auto& moment : all) {
        if (moment.first >= 0 && moment.first < lanes) there.insert(moment);
    }
    const Leaves leaf = leaves(items, found, lanes);
    require(moments(leaf.group, leaf.begin, leaf.end) == there);
    size_t time = 0;
    std::vector<size_t> place(n);
    for (size_t i = 0; i < n; ++i) place[static_cast<size_t>(found[i])] = i;
    for (size_t i = 0; i < leaf.group.size(); ++i) {
        require(leaf.begin[i] < leaf.end[i]);
        time += static_cast<size_t>(leaf.end[i] - leaf.begin[i]);
        const auto owner = static_cast<size_t>(leaf.owner[i]);
        require(group[owner] == leaf.group[i] && begin[owner] <= leaf.begin[i] && leaf.end[i] <= end[owner]);
        // The owner is the innermost: the last in that order that holds it.
        for (size_t j = place[owner] + 1; j < n; ++j) {
            const auto other = static_cast<size_t>(found[j]);
            require(group[other] != leaf.group[i] || begin[other] > leaf.begin[i] || end[other] < leaf.end[i]);
        }
    }
    require(time == there.size());
    return 0;
}
