#include <algorithm>
#include <tuple>

#include "core/analysis/critical_path/graph.hpp"
#include "core/analysis/lanes/lanes.hpp"

namespace lanescope::critical_path {
namespace {

struct Point {
    int64_t time;
    int64_t row;
    auto operator<=>(const Point&) const = default;
};

// Times within rows at which causes leave or arrive.
LongVector<Point> points_of(const Rows& rows, const Causes& causes) {
    LongVector<Point> found;
    const auto add = [&](int64_t row, int64_t time) {
        const auto r = static_cast<size_t>(row);
        if (time != rows.begin[r] && time != rows.end[r]) found.push_back({time, row});
    };
    for (size_t i = 0; i < causes.source.size(); ++i) {
        add(causes.source[i], causes.source_time[i]);
        add(causes.target[i], causes.target_time[i]);
    }
    return found;
}

class Chains {
  public:
    Chains(Graph& graph, const Rows& rows) : graph_(graph), rows_(rows) {}

    void begin_chain() {
        open_.clear();
        is_first_ = true;
    }

    void add(Event event, int64_t row, int64_t time) {
        const auto node = static_cast<int32_t>(graph_.time.size());
        const auto r = static_cast<size_t>(row);
        const int64_t owner = open_.empty() ? -1 : open_.back();
        graph_.time.push_back(time);
        graph_.row.push_back(static_cast<int32_t>(row));
        graph_.event.push_back(event);
        graph_.linked.push_back(!is_first_);
        graph_.owner.push_back(is_first_ ? -1 : static_cast<int32_t>(owner));
        graph_.piece.push_back(is_first_                                        ? Piece::none
                               : owner < 0                                     ? Piece::idle
                               : rows_.waits[static_cast<size_t>(owner)] != 0 ? Piece::wait
                                                                               : Piece::work);
        is_first_ = false;
        if (event == Event::begin) {
            graph_.begin_of[r] = node;
            open_.push_back(row);
        } else if (event == Event::end) {
            graph_.end_of[r] = node;
            const auto place = std::find(open_.rbegin(), open_.rend(), row);
            if (place != open_.rend()) open_.erase(std::next(place).base());
        }
    }

    // Rows that nest, by begin, longer first, id; and the points on them, by time and row.
    void nest(std::span<const int64_t> mine, std::span<const Point> points, bool is_nested) {
        begin_chain();
        size_t p = 0;
        std::vector<int64_t> stack;
        const auto points_before = [&](int64_t time, bool inclusive) {
            while (p < points.size() && (points[p].time < time || (inclusive && points[p].time == time))) {
                add(Event::point, points[p].row, points[p].time);
                ++p;
            }
        };
        const auto close_until = [&](int64_t time) {
            while (!stack.empty() && end(stack.back()) <= time) {
                points_before(end(stack.back()), false);
                add(Event::end, stack.back(), end(stack.back()));
                stack.pop_back();
            }
        };
        for (size_t i = 0; i < mine.size();) {
            const int64_t now = begin(mine[i]);
            size_t last = i;
            while (last < mine.size() && begin(mine[last]) == now) ++last;
            close_until(now);
            points_before(now, true);
            // Rows without length come last here; on a disjoint lane nothing can lie in the row that begins.
            const auto empty = [&] {
                for (size_t k = i; k < last; ++k) {
                    if (end(mine[k]) != now) continue;
                    add(Event::begin, mine[k], now);
                    add(Event::end, mine[k], now);
                }
            };
            if (!is_nested) empty();
            for (size_t k = i; k < last && end(mine[k]) != now; ++k) {
                add(Event::begin, mine[k], now);
                stack.push_back(mine[k]);
            }
            if (is_nested) empty();
            i = last;
        }
        while (!stack.empty()) close_until(end(stack.back()));
        for (; p < points.size(); ++p) add(Event::point, points[p].row, points[p].time);
    }

    // A row that is a chain of its own, and the points on it.
    void alone(int64_t row, std::span<const Point> points) {
        begin_chain();
        const int64_t from = begin(row), to = end(row);
        size_t p = 0;
        if (from == to) {
            for (; p < points.size() && points[p].time <= from; ++p) add(Event::point, row, points[p].time);
            add(Event::begin, row, from);
            add(Event::end, row, to);
        } else {
            for (; p < points.size() && points[p].time < from; ++p) add(Event::point, row, points[p].time);
            add(Event::begin, row, from);
            for (; p < points.size() && points[p].time < to; ++p) add(Event::point, row, points[p].time);
            add(Event::end, row, to);
        }
        for (; p < points.size(); ++p) add(Event::point, row, points[p].time);
    }

  private:
    int64_t begin(int64_t row) const { return rows_.begin[static_cast<size_t>(row)]; }
    int64_t end(int64_t row) const { return rows_.end[static_cast<size_t>(row)]; }

    Graph& graph_;
    const Rows& rows_;
    std::vector<int64_t> open_;
    bool is_first_ = true;
};

}  // namespace

void place_nodes(Graph& graph, const Rows& rows, const Causes& causes, const Rules& rules) {
    const size_t n = rows.lane.size();
    const auto lane_of = [&](int64_t row) { return rows.lane[static_cast<size_t>(row)]; };
    LongVector<int64_t> order(n);
    LongVector<lanes::Item> items;
    const auto room = [&](size_t count) {
        items.resize(count);
        return std::span(items);
    };
    lanes::order({rows.lane, rows.begin, rows.end}, order, room);  // lanes are ids of tracks: never too far apart
    // A row that reaches out of an open one without nesting has a chain of its own, as each row of a free lane.
    LongVector<uint8_t> is_alone(n);
    std::vector<int64_t> ends;
    for (size_t i = 0; i < n; ++i) {
        const auto r = static_cast<size_t>(order[i]);
        if (rules.lanes[static_cast<size_t>(rows.lane[r])] == Nesting::free) {
            is_alone[r] = 1;
            continue;
        }
        if (i == 0 || lane_of(order[i]) != lane_of(order[i - 1])) ends.clear();
        while (!ends.empty() && ends.back() <= rows.begin[r]) ends.pop_back();
        if (!ends.empty() && rows.end[r] > ends.back()) {
            is_alone[r] = 1;
            ++graph.counts.rows_crossing;
            continue;
        }
        ends.push_back(rows.end[r]);
    }
    LongVector<Point> points = points_of(rows, causes);
    const auto chain_of = [&](int64_t row) {
        return std::pair{is_alone[static_cast<size_t>(row)], is_alone[static_cast<size_t>(row)] ? row : lane_of(row)};
    };
    std::ranges::sort(points, [&](const Point& a, const Point& b) {
        return std::tuple{chain_of(a.row), a.time, a.row} < std::tuple{chain_of(b.row), b.time, b.row};
    });
    points.erase(std::unique(points.begin(), points.end()), points.end());
    const size_t count = 2 * n + points.size();
    for (auto* column : {&graph.row, &graph.owner}) column->reserve(count);
    graph.time.reserve(count);
    graph.event.reserve(count);
    graph.linked.reserve(count);
    graph.piece.reserve(count);
    graph.begin_of.assign(n, 0);
    graph.end_of.assign(n, 0);
    Chains chains(graph, rows);
    size_t p = 0;
    const auto points_on = [&](std::pair<uint8_t, int64_t> chain) {
        const size_t from = p;
        while (p < points.size() && chain_of(points[p].row) == chain) ++p;
        return std::span<const Point>(points).subspan(from, p - from);
    };
    LongVector<int64_t> mine;
    for (size_t i = 0; i < n;) {
        const int64_t lane = lane_of(order[i]);
        mine.clear();
        for (; i < n && lane_of(order[i]) == lane; ++i) {
            if (!is_alone[static_cast<size_t>(order[i])]) mine.push_back(order[i]);
        }
        if (mine.empty()) continue;
        chains.nest(mine, points_on({0, lane}), rules.lanes[static_cast<size_t>(lane)] == Nesting::nested);
    }
    for (size_t r = 0; r < n; ++r) {
        if (is_alone[r]) chains.alone(static_cast<int64_t>(r), points_on({1, static_cast<int64_t>(r)}));
    }
}

}  // namespace lanescope::critical_path
