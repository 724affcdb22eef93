#include "core/analysis/critical_path/walk.hpp"

#include <algorithm>
#include <limits>
#include <tuple>

namespace lanescope::critical_path {
namespace {

class Parts {
  public:
    Parts(Path& path, const Graph& graph, int64_t begin, const Unknown& gaps, const Unknown& idle)
        : path_(path), lane_(graph.row_lane), begin_(begin), gaps_(gaps), idle_(idle) {}

    // A part from `from` to `to`, cut at the window's begin and, unless it is work, where the lane is not known.
    void add(int64_t from, int64_t to, Cause cause, int32_t kind, int32_t row, int32_t source, int32_t lane_row, int32_t node) {
        from = std::max(from, begin_);
        if (from >= to) return;
        const Unknown& unknown = cause == Cause::lane_idle ? idle_ : gaps_;
        if (cause == Cause::work || lane_row < 0) {
            put(from, to, cause, kind, row, source, node);
            return;
        }
        const auto lane = static_cast<size_t>(lane_[static_cast<size_t>(lane_row)]);
        const auto first = static_cast<size_t>(unknown.first[lane]), last = static_cast<size_t>(unknown.first[lane + 1]);
        // The last that begins before the part ends, and those before it that reach into the part.
        auto k = static_cast<size_t>(
            std::lower_bound(unknown.begin.begin() + static_cast<ptrdiff_t>(first), unknown.begin.begin() + static_cast<ptrdiff_t>(last), to) -
            unknown.begin.begin());
        while (k > first && unknown.end[k - 1] > from) {
            --k;
            const int64_t low = std::max(from, unknown.begin[k]), high = std::min(to, unknown.end[k]);
            put(high, to, cause, kind, row, source, node);
            put(low, high, Cause::unknown, -1, row, -1, node);
            to = low;
        }
        put(from, to, cause, kind, row, source, node);
    }

    void put(int64_t from, int64_t to, Cause cause, int32_t kind, int32_t row, int32_t source, int32_t node) {
        if (from >= to) return;
        path_.begin.push_back(from);
        path_.end.push_back(to);
        path_.cause.push_back(static_cast<uint8_t>(cause));
        path_.kind.push_back(kind);
        path_.row.push_back(row);
        path_.from.push_back(source);
        path_.node.push_back(node);
    }

  private:
    Path& path_;
    std::span<const int32_t> lane_;
    int64_t begin_;
    const Unknown& gaps_;
    const Unknown& idle_;
};

// The part that is the piece before a node.
void add_piece(Parts& parts, const Graph& graph, int32_t v, int64_t from, int64_t to) {
    const auto at = static_cast<size_t>(v);
    const int32_t owner = graph.owner[at], own = graph.row[at];
    switch (graph.piece[at]) {
        case Piece::work:
            parts.add(from, to, Cause::work, -1, owner, -1, own, v);
            break;
        case Piece::wait:
            parts.add(from, to, Cause::wait_without_cause, -1, owner, -1, own, v);
            break;
        default:
            parts.add(from, to, Cause::lane_idle, -1, own, -1, own, v);
    }
}

}  // namespace

Path walk(const Graph& graph, const Window& window, std::span<const uint8_t> resources,
          const Unknown& gaps, const Unknown& idle, int32_t swapped, int32_t binding) {
    Path path;
    Parts parts(path, graph, window.begin, gaps, idle);
    const auto time = [&](int32_t v) { return graph.time[static_cast<size_t>(v)]; };
    int32_t v = window.sink;
    if (window.cut >= 0) {
        add_piece(parts, graph, window.cut, time(v), window.end);
    } else {
        parts.add(time(v), window.end, Cause::after_last_end, -1, graph.row[static_cast<size_t>(v)], -1, -1, v);
    }
    path.steps.push_back(v);
    while (time(v) > window.begin) {
        const auto at = static_cast<size_t>(v);
        const int32_t bound = v == swapped ? binding : graph.binding[at];
        const int32_t own = graph.row[at];
        if (bound == kNothing) {
            parts.add(window.begin, time(v), Cause::no_known_cause, -1, own, -1, own, v);
            break;
        }
        if (bound == kChain) {
            add_piece(parts, graph, v, time(v - 1), time(v));
            v -= 1;
        } else {
            const auto e = static_cast<size_t>(bound);
            const int32_t source = graph.source[e], kind = graph.kind[e], from = graph.row[static_cast<size_t>(source)];
            if (resources[static_cast<size_t>(kind)]) {
                parts.add(time(source), time(v), Cause::resource, kind, own, from, own, v);
            } else {
                const int64_t least = time(source) + graph.floor[e];
                parts.add(least, time(v), Cause::delay_beyond, kind, own, from, own, v);
                parts.add(time(source), std::min(least, time(v)), Cause::latency, kind, own, from, own, v);
            }
            v = source;
        }
        path.steps.push_back(v);
    }
    return path;
}

int32_t second_binding(const Graph& graph, int32_t node) {
    const auto v = static_cast<size_t>(node);
    const int32_t bound = graph.binding[v];
    int32_t best = kNothing;
    int64_t arrival = std::numeric_limits<int64_t>::min(), source = arrival;
    if (graph.piece[v] == Piece::work) return kNothing;  // work is bound by what it is
    if (graph.linked[v] && bound != kChain) {
        best = kChain;
        source = graph.time[v - 1];
        arrival = source + graph.wait_floor(v);
    }
    for (uint32_t e = graph.first[v]; e < graph.first[v + 1]; ++e) {
        if (static_cast<int32_t>(e) == bound) continue;
        const int64_t from = graph.time[Graph::at(graph.source[e])], arrives = from + graph.floor[e];
        if (std::tuple{arrives, from} > std::tuple{arrival, source} || (best == kChain && arrives == arrival && from == source)) {
            best = static_cast<int32_t>(e);
            arrival = arrives;
            source = from;
        }
    }
    return best;
}

}  // namespace lanescope::critical_path
