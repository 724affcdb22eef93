#include "core/trace/row_packing/pack.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>
#include <utility>

namespace lanescope::layout {
namespace {

struct Item {
    int64_t begin;
    int64_t end;
    int64_t index;
};

// The order of a nested lane, and that of any other; as types, so that sorting takes no call for each comparison.
struct OuterFirst {
    bool operator()(const Item& a, const Item& b) const {
        if (a.begin != b.begin) return a.begin < b.begin;
        if (a.end != b.end) return a.end > b.end;
        return a.index < b.index;
    }
};

struct EmptyFirst {
    bool operator()(const Item& a, const Item& b) const {
        if (a.begin != b.begin) return a.begin < b.begin;
        const bool a_lasts = a.end != a.begin;
        const bool b_lasts = b.end != b.begin;
        if (a_lasts != b_lasts) return b_lasts;
        return a.index < b.index;
    }
};

// Rows whose intervals share no time; the lowest free one is taken. O(log rows) an interval.
class FlatRows {
public:
    explicit FlatRows(int32_t first) : next_(first) {}

    int32_t take(const Item& item) {
        while (!busy_.empty() && busy_.top().first <= item.begin) {
            free_.push(busy_.top().second);
            busy_.pop();
        }
        int32_t row = next_;
        if (free_.empty()) {
            ++next_;
        } else {
            row = free_.top();
            free_.pop();
        }
        busy_.emplace(item.end, row);
        return row;
    }

private:
    template <class T>
    using MinHeap = std::priority_queue<T, std::vector<T>, std::greater<>>;
    MinHeap<std::pair<int64_t, int32_t>> busy_;
    MinHeap<int32_t> free_;
    int32_t next_;
};

// Rows that hold stacks; an interval that fits on none of them goes to flat rows behind them.
class StackedRows {
public:
    int32_t take(const Item& item) {
        for (int32_t row = 0; row < kNestedRows; ++row) {
            auto& open = open_[row];
            while (!open.empty() && open.back() <= item.begin) open.pop_back();
            if (open.empty() || (item.end <= open.back() && open.size() < static_cast<size_t>(kMaxDepth))) {
                open.push_back(item.end);
                return row;
            }
        }
        return flat_.take(item);
    }

private:
    std::vector<int64_t> open_[kNestedRows];
    FlatRows flat_{kNestedRows};
};

// One pass: count the intervals of each lane, refuse what cannot be placed, and see which lanes come flat and in order.
struct LaneStats {
    std::vector<int64_t> start;  // [lanes + 1]
    std::vector<uint8_t> flat;   // [lanes]
};

PackResult survey(const Intervals& items, std::span<const uint8_t> nested, LaneStats& out) {
    struct RowEnd {
        int64_t begin = std::numeric_limits<int64_t>::min();
        int64_t end = std::numeric_limits<int64_t>::min();
        int64_t count = 0;
    };
    const size_t lanes = nested.size();
    std::vector<RowEnd> last(lanes);
    out.flat.assign(lanes, 1);
    for (size_t i = 0; i < items.track.size(); ++i) {
        const auto lane = static_cast<size_t>(items.track[i]);
        if (lane >= lanes) return {Status::bad_track, i};
        const int64_t begin = items.begin[i];
        int64_t end = kForever;
        if (items.known.empty() || items.known[i] != 0) {
            if (items.length[i] < 0 || __builtin_add_overflow(begin, items.length[i], &end) || end == kForever) {
                return {Status::bad_time, i};
            }
        } else if (begin == kForever) {
            return {Status::bad_time, i};
        }
        RowEnd& seen = last[lane];
        // On a nested lane the longer of two equal begins is the outer one, even when the other has no length.
        const bool outside = (begin == seen.begin) & (end > seen.end) & (nested[lane] != 0);
        if ((begin < seen.end) | outside) out.flat[lane] = 0;
        seen = {begin, end, seen.count + 1};
    }
    out.start.resize(lanes + 1);
    for (size_t lane = 0; lane < lanes; ++lane) out.start[lane + 1] = out.start[lane] + last[lane].count;
    return {};
}

// Bring the intervals of a lane into drawing order. Most lanes come in order of their begins, so that only those which
// begin together are left to sort.
template <class Before>
void sort_lane(const Before before, const Drawing& lane, std::vector<Item>& scratch) {
    const size_t count = lane.order.size();
    const auto sort = [&](size_t from, size_t to) {
        const auto item = [&](size_t k) { return Item{lane.begin[k], lane.end[k], lane.order[k]}; };
        size_t k = from + 1;
        while (k < to && !before(item(k), item(k - 1))) ++k;
        if (k == to) return;
        // A lane is often a few lists that rise, one behind the other: those are merged.
        scratch.clear();
        size_t middle = 0;
        int runs = 1;
        for (k = from; k < to; ++k) {
            if (k > from && before(item(k), scratch.back()) && ++runs == 2) middle = k - from;
            scratch.push_back(item(k));
        }
        if (runs == 2) std::inplace_merge(scratch.begin(), scratch.begin() + static_cast<ptrdiff_t>(middle), scratch.end(), before);
        else std::sort(scratch.begin(), scratch.end(), before);
        for (k = from; k < to; ++k) {
            const Item& sorted = scratch[k - from];
            lane.begin[k] = sorted.begin;
            lane.end[k] = sorted.end;
            lane.order[k] = sorted.index;
        }
    };
    if (!std::is_sorted(lane.begin.begin(), lane.begin.end())) return sort(0, count);
    for (size_t from = 0; from < count;) {
        size_t to = from + 1;
        while (to < count && lane.begin[to] == lane.begin[from]) ++to;
        if (to - from > 1) sort(from, to);
        from = to;
    }
}

// Return how many intervals from the first on fit into one stack.
size_t one_stack(const Drawing& lane) {
    int64_t open[kMaxDepth + 1];  // ends, from 1; 0 is a floor that never ends
    open[0] = kForever;
    size_t depth = 0;
    size_t k = 0;
    for (; k < lane.order.size(); ++k) {
        while (open[depth] <= lane.begin[k]) --depth;
        if (lane.end[k] > open[depth] || depth == static_cast<size_t>(kMaxDepth)) break;
        open[++depth] = lane.end[k];
    }
    return k;
}

// Place one lane whose intervals overlap or came out of order. The outputs hold its intervals in input order.
// `sizes` becomes the number of intervals on each row.
void place_lane(bool nested, const Drawing& lane, std::span<int32_t> row, std::vector<Item>& scratch,
                std::vector<int64_t>& sizes) {
    if (nested) sort_lane(OuterFirst{}, lane, scratch);
    else sort_lane(EmptyFirst{}, lane, scratch);
    const size_t count = lane.order.size();
    const size_t fitting = nested ? one_stack(lane) : 0;
    sizes.assign(1, static_cast<int64_t>(count));
    if (fitting == count) return;  // all on row 0, as the caller has filled it
    StackedRows stacked;
    FlatRows flat(0);
    sizes.clear();
    for (size_t k = 0; k < count; ++k) {
        const Item item{lane.begin[k], lane.end[k], lane.order[k]};
        const int32_t taken = nested ? stacked.take(item) : flat.take(item);
        row[static_cast<size_t>(item.index)] = taken;
        if (static_cast<size_t>(taken) >= sizes.size()) sizes.resize(static_cast<size_t>(taken) + 1);
        ++sizes[static_cast<size_t>(taken)];
    }
    if (sizes.size() == 1) return;
    std::vector<int64_t> cursor(sizes.size());
    for (size_t r = 1; r < sizes.size(); ++r) cursor[r] = cursor[r - 1] + sizes[r - 1];
    scratch.clear();
    for (size_t k = 0; k < count; ++k) scratch.push_back({lane.begin[k], lane.end[k], lane.order[k]});
    for (const Item& item : scratch) {
        const auto taken = static_cast<size_t>(row[static_cast<size_t>(item.index)]);
        const auto at = static_cast<size_t>(cursor[taken]++);
        lane.order[at] = item.index;
        lane.begin[at] = item.begin;
        lane.end[at] = item.end;
    }
}

}  // namespace

PackResult place(const Intervals& items, std::span<const uint8_t> nested, const Drawing& out,
              std::vector<int64_t>& row_start) {
    LaneStats seen;
    if (const PackResult outcome = survey(items, nested, seen); outcome.status != Status::ok) return outcome;

    std::vector<int64_t> cursor(seen.start.begin(), seen.start.end() - 1);
    for (size_t i = 0; i < items.track.size(); ++i) {
        const auto at = static_cast<size_t>(cursor[static_cast<size_t>(items.track[i])]++);
        out.order[at] = static_cast<int64_t>(i);
        out.begin[at] = items.begin[i];
        out.end[at] = items.end(i);
    }
    std::fill(out.row.begin(), out.row.end(), 0);

    row_start.assign(1, 0);
    std::vector<Item> scratch;
    std::vector<int64_t> sizes;
    for (size_t lane = 0; lane < nested.size(); ++lane) {
        const auto first = static_cast<size_t>(seen.start[lane]);
        const auto count = static_cast<size_t>(seen.start[lane + 1]) - first;
        if (seen.flat[lane] != 0) {
            out.rows[lane] = count > 0;
            if (count > 0) row_start.push_back(seen.start[lane + 1]);
            continue;
        }
        const Drawing part{out.order.subspan(first, count), {}, out.begin.subspan(first, count),
                           out.end.subspan(first, count), {}};
        place_lane(nested[lane] != 0, part, out.row, scratch, sizes);
        out.rows[lane] = static_cast<int32_t>(sizes.size());
        for (const int64_t size : sizes) row_start.push_back(row_start.back() + size);
    }
    return {};
}

InTurn lane_after_lane(const Intervals& items, const Runs& runs, int64_t base, std::span<const uint8_t> nested,
                       std::span<int32_t> rows, std::span<int64_t> order, std::vector<int64_t>& row_start) {
    if (!items.known.empty()) return InTurn::no;
    auto found = InTurn::as_they_are;
    const size_t count = items.begin.size();
    int64_t open[kMaxDepth + 1];  // ends of the intervals around the next one, from 1; 0 is a floor that never ends
    open[0] = kForever;
    std::vector<Item> together;
    size_t least_lane = 0;
    size_t i = 0;
    for (size_t run = 0; run < runs.lane.size(); ++run) {
        if (runs.count[run] == 0) continue;
        const auto lane = static_cast<size_t>(runs.lane[run]);
        if (lane >= nested.size() || lane < least_lane || static_cast<uint64_t>(runs.count[run]) > count - i) return InTurn::no;
        least_lane = lane + 1;
        const size_t last = i + static_cast<size_t>(runs.count[run]);
        const size_t most = nested[lane] != 0 ? static_cast<size_t>(kMaxDepth) : 1;
        size_t depth = 0;
        const auto fits = [&](int64_t begin, int64_t end) {
            while (open[depth] <= begin) --depth;
            if ((end > open[depth]) | (depth == most)) return false;
            open[++depth] = end;
            return true;
        };
        int64_t last_begin = std::numeric_limits<int64_t>::min(), last_end = last_begin;
        size_t first = i, depth_there = 0;  // of those that begin together, and before them
        for (; i < last; ++i) {
            const int64_t begin = items.begin[i];
            int64_t end;
            if ((items.length[i] < 0) | __builtin_add_overflow(begin, items.length[i], &end) | (end == kForever)) return InTurn::no;
            if (begin != last_begin) {
                if (begin < last_begin) return InTurn::no;
                while (open[depth] <= begin) --depth;
                first = i;
                depth_there = depth;
            } else if (end > last_end) [[unlikely]] {  // an outer one comes late: those of this moment are brought into order
                if (nested[lane] == 0) return InTurn::no;
                together.clear();
                for (i = first; i < last && items.begin[i] == begin; ++i) {
                    if ((items.length[i] < 0) | __builtin_add_overflow(begin, items.length[i], &end) | (end == kForever)) return InTurn::no;
                    together.push_back({begin, end, static_cast<int64_t>(i)});
                }
                std::sort(together.begin(), together.end(), OuterFirst{});
                if (found == InTurn::as_they_are) std::iota(order.begin(), order.end(), base);
                found = InTurn::moved;
                depth = depth_there;
                for (size_t k = first; k < i; ++k) {
                    order[k] = base + together[k - first].index;
                    if (!fits(begin, together[k - first].end)) return InTurn::no;
                }
                last_end = together.back().end;
                --i;
                continue;
            }
            if (!fits(begin, end)) return InTurn::no;
            last_begin = begin;
            last_end = end;
        }
        rows[lane] = 1;
        row_start.push_back(base + static_cast<int64_t>(i));
    }
    return i == count ? found : InTurn::no;
}

void depths(std::span<const int64_t> begin, std::span<const int64_t> end, std::span<const int64_t> order,
            std::span<const int64_t> row_start, std::span<int32_t> depth) {
    std::vector<int64_t> open;
    for (size_t r = 0; r + 1 < row_start.size(); ++r) {
        open.clear();
        for (auto k = static_cast<size_t>(row_start[r]); k < static_cast<size_t>(row_start[r + 1]); ++k) {
            while (!open.empty() && open.back() <= begin[k]) open.pop_back();
            depth[static_cast<size_t>(order[k])] = static_cast<int32_t>(open.size());
            open.push_back(end[k]);
        }
    }
}

}  // namespace lanescope::layout
