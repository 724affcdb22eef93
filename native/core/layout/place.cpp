#include "core/layout/place.hpp"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

namespace lanescope::layout {
namespace {

struct Item {
    int64_t begin;
    int64_t end;
    int64_t index;
};

bool outer_first(const Item& a, const Item& b) {
    if (a.begin != b.begin) return a.begin < b.begin;
    if (a.end != b.end) return a.end > b.end;
    return a.index < b.index;
}

bool empty_first(const Item& a, const Item& b) {
    if (a.begin != b.begin) return a.begin < b.begin;
    const bool a_lasts = a.end != a.begin;
    const bool b_lasts = b.end != b.begin;
    if (a_lasts != b_lasts) return b_lasts;
    return a.index < b.index;
}

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
struct Survey {
    std::vector<int64_t> start;  // [lanes + 1]
    std::vector<uint8_t> flat;   // [lanes]
    bool all_flat = true;
};

Outcome survey(const Intervals& items, std::span<const uint8_t> nested, Survey& out) {
    struct Last {
        int64_t begin = std::numeric_limits<int64_t>::min();
        int64_t end = std::numeric_limits<int64_t>::min();
        int64_t count = 0;
    };
    const size_t lanes = nested.size();
    std::vector<Last> last(lanes);
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
        Last& seen = last[lane];
        // On a nested lane the longer of two equal begins is the outer one, even when the other has no length.
        const bool outside = (begin == seen.begin) & (end > seen.end) & (nested[lane] != 0);
        if ((begin < seen.end) | outside) {
            out.flat[lane] = 0;
            out.all_flat = false;
        }
        seen = {begin, end, seen.count + 1};
    }
    out.start.resize(lanes + 1);
    for (size_t lane = 0; lane < lanes; ++lane) out.start[lane + 1] = out.start[lane] + last[lane].count;
    return {};
}

// Place one lane whose intervals overlap or came out of order. `order` holds its intervals in input order.
// Appends the size of each row to `sizes`.
void place_lane(const Intervals& items, bool nested, std::span<int64_t> order, std::span<int32_t> row,
                std::vector<Item>& scratch, std::vector<int64_t>& sizes) {
    scratch.clear();
    for (const int64_t index : order) {
        const auto i = static_cast<size_t>(index);
        scratch.push_back({items.begin[i], items.end(i), index});
    }
    const auto before = nested ? outer_first : empty_first;
    if (!std::is_sorted(scratch.begin(), scratch.end(), before)) std::sort(scratch.begin(), scratch.end(), before);

    StackedRows stacked;
    FlatRows flat(0);
    sizes.clear();
    for (const Item& item : scratch) {
        const int32_t taken = nested ? stacked.take(item) : flat.take(item);
        row[static_cast<size_t>(item.index)] = taken;
        if (static_cast<size_t>(taken) >= sizes.size()) sizes.resize(static_cast<size_t>(taken) + 1);
        ++sizes[static_cast<size_t>(taken)];
    }
    std::vector<int64_t> cursor(sizes.size());
    for (size_t r = 1; r < sizes.size(); ++r) cursor[r] = cursor[r - 1] + sizes[r - 1];
    for (const Item& item : scratch) {
        const auto taken = static_cast<size_t>(row[static_cast<size_t>(item.index)]);
        order[static_cast<size_t>(cursor[taken]++)] = item.index;
    }
}

}  // namespace

Outcome place(const Intervals& items, std::span<const uint8_t> nested, std::span<int64_t> order, std::span<int32_t> row,
              std::span<int32_t> rows, std::vector<int64_t>& row_start) {
    Survey seen;
    if (const Outcome outcome = survey(items, nested, seen); outcome.status != Status::ok) return outcome;

    std::vector<int64_t> cursor(seen.start.begin(), seen.start.end() - 1);
    for (size_t i = 0; i < items.track.size(); ++i) {
        order[static_cast<size_t>(cursor[static_cast<size_t>(items.track[i])]++)] = static_cast<int64_t>(i);
    }
    std::fill(row.begin(), row.end(), 0);

    row_start.assign(1, 0);
    std::vector<Item> scratch;
    std::vector<int64_t> sizes;
    for (size_t lane = 0; lane < nested.size(); ++lane) {
        const int64_t first = seen.start[lane];
        const int64_t count = seen.start[lane + 1] - first;
        if (seen.flat[lane] != 0) {
            rows[lane] = count > 0;
            if (count > 0) row_start.push_back(first + count);
            continue;
        }
        place_lane(items, nested[lane] != 0, order.subspan(static_cast<size_t>(first), static_cast<size_t>(count)), row,
                   scratch, sizes);
        rows[lane] = static_cast<int32_t>(sizes.size());
        for (const int64_t size : sizes) row_start.push_back(row_start.back() + size);
    }
    return {};
}

void depths(const Intervals& items, std::span<const int64_t> order, std::span<const int64_t> row_start,
            std::span<int32_t> depth) {
    std::vector<int64_t> open;
    for (size_t r = 0; r + 1 < row_start.size(); ++r) {
        open.clear();
        for (auto k = static_cast<size_t>(row_start[r]); k < static_cast<size_t>(row_start[r + 1]); ++k) {
            const auto i = static_cast<size_t>(order[k]);
            while (!open.empty() && open.back() <= items.begin[i]) open.pop_back();
            depth[i] = static_cast<int32_t>(open.size());
            open.push_back(items.end(i));
        }
    }
}

}  // namespace lanescope::layout
