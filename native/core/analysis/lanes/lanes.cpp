#include "core/analysis/lanes/lanes.hpp"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

namespace lanescope::lanes {
namespace {

// Entries of the table of groups for each row, beyond some that cost nothing.
constexpr uint64_t kSparse = 4, kFree = 1 << 16;

bool precedes(const Item& a, const Item& b) {
    if (a.begin != b.begin) return a.begin < b.begin;
    if (a.end != b.end) return a.end > b.end;
    return a.row < b.row;
}

// Merge runs of items, two at a time, until one is left. Where one of two begins after the other there is nothing to do.
void merge_runs(std::span<Item> items, std::span<Item> spare, std::vector<size_t>& starts) {
    while (starts.size() > 2) {
        size_t kept = 0;
        for (size_t i = 0; i + 2 < starts.size(); i += 2) {
            const auto at = [&](size_t place) { return items.begin() + static_cast<ptrdiff_t>(place); };
            const auto first = at(starts[i]), middle = at(starts[i + 1]), last = at(starts[i + 2]);
            if (precedes(*middle, *(middle - 1))) {
                const auto copied = std::copy(first, middle, spare.begin());
                std::merge(spare.begin(), copied, middle, last, first, precedes);
            }
            starts[kept++] = starts[i];
        }
        if (starts.size() % 2 == 0) starts[kept++] = starts[starts.size() - 2];
        starts[kept++] = items.size();
        starts.resize(kept);
    }
}

}  // namespace

bool order(const Intervals& items, std::span<int64_t> out, const Scratch& scratch) {
    const size_t rows = items.group.size();
    if (rows == 0) return true;
    const auto [least, most] = std::minmax_element(items.group.begin(), items.group.end());
    const uint64_t base = static_cast<uint64_t>(*least);
    const uint64_t span = static_cast<uint64_t>(*most) - base;
    if (span >= kSparse * rows + kFree) return false;
    std::vector<size_t> place(span + 2);
    for (const int64_t group : items.group) ++place[static_cast<uint64_t>(group) - base + 1];
    for (size_t i = 1; i < place.size(); ++i) place[i] += place[i - 1];
    for (size_t row = 0; row < rows; ++row) {
        out[place[static_cast<uint64_t>(items.group[row]) - base]++] = static_cast<int64_t>(row);
    }
    // Now each place is where the next group begins.
    std::span<Item> room;
    std::vector<size_t> starts;
    size_t first = 0;
    for (size_t group = 0; group <= span; first = place[group++]) {
        const std::span<int64_t> mine = out.subspan(first, place[group] - first);
        if (mine.size() < 2) continue;
        if (room.size() < 2 * mine.size()) room = scratch(std::max(2 * mine.size(), room.size() / 2 * 3));
        const auto lane = room.first(mine.size());
        starts.assign(1, 0);
        for (size_t i = 0; i < mine.size(); ++i) {
            const auto at = static_cast<size_t>(mine[i]);
            lane[i] = {items.begin[at], items.end.empty() ? 0 : items.end[at], mine[i]};
            if (i > 0 && precedes(lane[i], lane[i - 1])) starts.push_back(i);
        }
        if (starts.size() == 1) continue;
        starts.push_back(lane.size());
        merge_runs(lane, room.subspan(mine.size()), starts);
        for (size_t i = 0; i < mine.size(); ++i) mine[i] = lane[i].row;
    }
    return true;
}

size_t covered(const Intervals& items, std::span<const int64_t> order, const Union& out) {
    size_t found = 0;
    for (const int64_t row : order) {
        const auto at = static_cast<size_t>(row);
        const int64_t group = items.group[at], begin = items.begin[at], end = items.end[at];
        if (end <= begin) continue;
        if (found > 0 && out.group[found - 1] == group && begin <= out.end[found - 1]) {
            out.end[found - 1] = std::max(out.end[found - 1], end);
            continue;
        }
        out.group[found] = group;
        out.begin[found] = begin;
        out.end[found++] = end;
    }
    return found;
}

Leaves leaves(const Intervals& items, std::span<const int64_t> order, size_t lanes) {
    struct Open {
        int64_t row;
        int64_t group;
        int64_t end;
        int64_t cursor;  // what of it comes before is in a piece already
        bool encloses;
    };
    Leaves found;
    for (auto* column : {&found.group, &found.begin, &found.end, &found.owner}) column->reserve(order.size());
    std::vector<Open> open;
    const auto emit = [&](const Open& top, int64_t until) {
        if (top.cursor >= until) return;
        found.group.push_back(top.group);
        found.begin.push_back(top.cursor);
        found.end.push_back(until);
        found.owner.push_back(top.row);
    };
    const auto close = [&] {
        const Open top = open.back();
        emit(top, top.end);
        open.pop_back();
        if (top.encloses) found.encloses.push_back(top.row);
        if (!open.empty()) open.back().cursor = top.end;
    };
    for (const int64_t row : order) {
        const auto at = static_cast<size_t>(row);
        const int64_t group = items.group[at], begin = items.begin[at], end = items.end[at];
        if (static_cast<uint64_t>(group) >= lanes || end <= begin) continue;
        while (!open.empty() && (open.back().group != group || open.back().end <= begin)) close();
        if (!open.empty()) {
            emit(open.back(), begin);
            open.back().encloses = true;
        }
        open.push_back({row, group, end, begin, false});
    }
    while (!open.empty()) close();
    return found;
}

bool clash(const Intervals& items, std::span<const int64_t> order, std::span<const check::Nesting> lanes) {
    std::vector<int64_t> open;  // ends of what runs, the first to end at the back
    int64_t lane = -1;
    for (const int64_t row : order) {
        const auto at = static_cast<size_t>(row);
        const int64_t group = items.group[at], begin = items.begin[at], end = items.end[at];
        if (static_cast<uint64_t>(group) >= lanes.size() || end <= begin) continue;
        const check::Nesting nesting = lanes[static_cast<size_t>(group)];
        if (nesting == check::Nesting::free) continue;
        if (group != lane) {
            open.clear();
            lane = group;
        }
        while (!open.empty() && open.back() <= begin) open.pop_back();
        if (!open.empty() && (nesting == check::Nesting::disjoint || end > open.back())) return true;
        open.push_back(end);
    }
    return false;
}

bool fall(std::span<const int64_t> group, std::span<const std::span<const int64_t>> pieces, std::span<const int64_t> order) {
    std::vector<size_t> begins;
    for (size_t begin = 0; const auto& piece : pieces) {
        begins.push_back(begin);
        begin += piece.size();
    }
    size_t latest = 0;  // mostly the next row is in the same piece
    const auto value = [&](size_t row) {
        if (row - begins[latest] >= pieces[latest].size()) {
            latest = static_cast<size_t>(std::ranges::upper_bound(begins, row) - begins.begin()) - 1;
        }
        return pieces[latest][row - begins[latest]];
    };
    int64_t group_before = 0, value_before = 0;
    for (size_t i = 0; i < order.size(); ++i) {
        const auto row = static_cast<size_t>(order[i]);
        const int64_t mine = value(row);
        if (i != 0 && group[row] == group_before && mine < value_before) return true;
        group_before = group[row];
        value_before = mine;
    }
    return false;
}

bool rise(std::span<const int64_t> group, std::span<const int64_t> begin, size_t lanes) {
    std::vector<int64_t> latest(lanes, std::numeric_limits<int64_t>::min());
    for (size_t i = 0; i < group.size(); ++i) {
        const auto lane = static_cast<uint64_t>(group[i]);
        if (lane >= lanes) continue;
        if (begin[i] < latest[lane]) return false;
        latest[lane] = begin[i];
    }
    return true;
}

}  // namespace lanescope::lanes
