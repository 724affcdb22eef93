#include "core/analysis/critical_path/passes.hpp"

#include <algorithm>
#include <limits>

namespace lanescope::critical_path {
namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::min() / 2;

__extension__ typedef __int128 Wide;

int64_t scaled(int64_t value, int64_t num, int64_t den) { return static_cast<int64_t>(Wide{value} * num / den); }

bool is_hard(const Graph& graph, size_t v) { return graph.linked[v] && graph.piece[v] == Piece::work; }

// What the chain costs at least up to a node whose piece is elastic.
int64_t elastic(const Graph& graph, size_t v, Lags lags) {
    if (graph.binding[v] == kChain || lags == Lags::observed) return graph.step(v);
    return lags == Lags::none ? 0 : graph.wait_floor(v);
}

int64_t cost(const Graph& graph, size_t v, uint32_t e, Lags lags) {
    if (graph.binding[v] == static_cast<int32_t>(e) || lags == Lags::observed) return graph.lag(e);
    return lags == Lags::none ? 0 : graph.floor[e];
}

int64_t of_edge(std::span<const int64_t> more, uint32_t e) { return more.empty() ? 0 : more[e]; }

int64_t nominal(const Graph& graph, std::span<const int64_t> steps, std::span<const int64_t> more,
                std::span<const int64_t> time, size_t v) {
    int64_t latest = kNever;
    if (graph.linked[v]) latest = time[v - 1] + (is_hard(graph, v) ? steps[v] : elastic(graph, v, Lags::floors));
    for (uint32_t e = graph.first[v]; e < graph.first[v + 1]; ++e) {
        latest = std::max(latest, time[Graph::at(graph.source[e])] + cost(graph, v, e, Lags::floors) + of_edge(more, e));
    }
    return latest;
}

int64_t hard(const Graph& graph, std::span<const int64_t> steps, std::span<const int64_t> more, std::span<const int64_t> time,
             size_t v, Bound bound) {
    int64_t latest = time[v - 1] + steps[v];
    for (uint32_t e = graph.first[v]; e < graph.first[v + 1]; ++e) {
        latest = std::max(latest, time[Graph::at(graph.source[e])] + (bound == Bound::high ? graph.lag(e) + of_edge(more, e) : 0));
    }
    return latest;
}

// Calls back with the new time and the lag of each candidate: as observed, but for what edges cost more.
template <class Call>
void each_candidate(const Graph& graph, std::span<const int64_t> more, std::span<const int64_t> time, size_t v, Call call) {
    if (graph.linked[v]) call(time[v - 1], graph.step(v));
    for (uint32_t e = graph.first[v]; e < graph.first[v + 1]; ++e) {
        call(time[Graph::at(graph.source[e])], graph.lag(e) + of_edge(more, e));
    }
}

int64_t soft(const Graph& graph, std::span<const int64_t> more, std::span<const int64_t> time, size_t v, Bound bound) {
    // What was not recorded may have bound an elastic piece without edges: it stays where it was, or has no say.
    const bool is_hidden = graph.first[v] == graph.first[v + 1] && graph.step(v) > 0;
    if (bound == Bound::high) {
        int64_t latest = is_hidden ? graph.time[v] : kNever;
        each_candidate(graph, more, time, v, [&](int64_t from, int64_t lag) { latest = std::max(latest, from + lag); });
        return latest;
    }
    int64_t first = kNever, second = kNever;
    each_candidate(graph, more, time, v, [&](int64_t from, int64_t) {
        if (from >= first) {
            second = first;
            first = from;
        } else {
            second = std::max(second, from);
        }
    });
    int64_t least = std::numeric_limits<int64_t>::max();
    each_candidate(graph, more, time, v, [&](int64_t from, int64_t lag) {
        least = std::min(least, std::max(from + lag, from == first ? second : first));
    });
    return is_hidden ? std::min(least, std::max(graph.time[v], first)) : least;
}

}  // namespace

LongVector<int64_t> scaled_steps(const Graph& graph, std::span<const int32_t> share, std::span<const int64_t> num,
                                  std::span<const int64_t> den) {
    LongVector<int64_t> steps(graph.nodes()), done(share.size());
    for (size_t v = 0; v < steps.size(); ++v) {
        steps[v] = graph.step(v);
        if (!is_hard(graph, v) || share.empty()) continue;
        const auto row = Graph::at(graph.owner[v]);
        if (share[row] < 0) continue;
        const auto k = Graph::at(share[row]);
        const int64_t before = done[row];
        done[row] += steps[v];
        steps[v] = scaled(done[row], num[k], den[k]) - scaled(before, num[k], den[k]);
    }
    return steps;
}

LongVector<int64_t> replay(Graph& graph, std::span<const int64_t> steps, Bound bound, std::span<const int64_t> more) {
    LongVector<int64_t> time(graph.nodes());
    for (const int32_t node : graph.order()) {
        const auto v = Graph::at(node);
        if (!graph.linked[v] && graph.first[v] == graph.first[v + 1]) {
            time[v] = graph.time[v];
        } else if (bound == Bound::nominal) {
            time[v] = nominal(graph, steps, more, time, v);
        } else if (is_hard(graph, v)) {
            time[v] = hard(graph, steps, more, time, v, bound);
        } else {
            time[v] = soft(graph, more, time, v, bound);
        }
    }
    return time;
}

LongVector<int64_t> slack(Graph& graph, int32_t sink, Lags lags) {
    const size_t n = graph.nodes();
    LongVector<int64_t> latest(n, kFree);
    if (sink >= 0) {
        latest[Graph::at(sink)] = graph.time[Graph::at(sink)];
    } else if (n > 0) {
        std::ranges::fill(latest, *std::ranges::max_element(graph.time));
    }
    const LongVector<int32_t>& order = graph.order();
    for (auto at = order.rbegin(); at != order.rend(); ++at) {
        const auto v = Graph::at(*at);
        const int64_t own = latest[v];
        if (own == kFree) continue;
        if (graph.linked[v]) {
            const int64_t before = is_hard(graph, v) ? graph.step(v) : elastic(graph, v, lags);
            latest[v - 1] = std::min(latest[v - 1], own - before);
        }
        for (uint32_t e = graph.first[v]; e < graph.first[v + 1]; ++e) {
            int64_t& source = latest[Graph::at(graph.source[e])];
            source = std::min(source, own - cost(graph, v, e, lags));
        }
    }
    for (size_t v = 0; v < n; ++v) {
        if (latest[v] != kFree) latest[v] -= graph.time[v];
    }
    return latest;
}

LongVector<int64_t> own_work(const Graph& graph, size_t rows) {
    LongVector<int64_t> work(rows);
    for (size_t v = 0; v < graph.nodes(); ++v) {
        if (is_hard(graph, v)) work[Graph::at(graph.owner[v])] += graph.step(v);
    }
    return work;
}

}  // namespace lanescope::critical_path
