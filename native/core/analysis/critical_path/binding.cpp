#include <algorithm>
#include <limits>
#include <tuple>

#include "core/analysis/critical_path/graph.hpp"

namespace lanescope::critical_path {

// Whether the piece before a node is all of a row that waits: nothing happened in it.
bool Graph::is_whole_wait(size_t v) const {
    return piece[v] == Piece::wait && event[v] == Event::end && owner[v] == row[v] && row_waits[at(row[v])] != 0 &&
           event[v - 1] == Event::begin;
}

// How long a wait took that had nothing to wait for; the largest number where what it waited for came after its begin.
int64_t Graph::needless_wait(size_t v) const {
    for (uint32_t e = first[v]; e < first[v + 1]; ++e) {
        if (time[at(source[e])] > time[v - 1]) return std::numeric_limits<int64_t>::max();
    }
    return step(v);
}

int64_t Graph::wait_floor(size_t v) const {
    if (!is_whole_wait(v)) return 0;
    return std::min(waits_at_least[static_cast<size_t>(row_name[at(row[v])])], step(v));
}

namespace {

// The least of the values of each group, where there are enough; or what was given.
class Floors {
  public:
    explicit Floors(std::span<const int64_t> given) : given_(given), least_(given.size(), std::numeric_limits<int64_t>::max()), count_(given.size()) {}

    void add(size_t group, int64_t value) {
        least_[group] = std::min(least_[group], value);
        ++count_[group];
    }
    int64_t of(size_t group) const {
        if (given_[group] >= 0) return given_[group];
        return count_[group] >= kEnough && least_[group] != std::numeric_limits<int64_t>::max() ? least_[group] : 0;
    }

  private:
    std::span<const int64_t> given_;
    std::vector<int64_t> least_;
    std::vector<size_t> count_;
};

}  // namespace

void bind(Graph& graph, const Rules& rules) {
    const size_t n = graph.nodes(), edges = graph.source.size();
    Floors lags(rules.floors), waits(rules.wait_floors);
    for (size_t e = 0; e < edges; ++e) lags.add(static_cast<size_t>(graph.group[e]), graph.lag(e));
    for (size_t v = 0; v < n; ++v) {
        if (graph.is_whole_wait(v)) waits.add(static_cast<size_t>(graph.row_name[Graph::at(graph.row[v])]), graph.needless_wait(v));
    }
    graph.waits_at_least.resize(rules.wait_floors.size());
    for (size_t name = 0; name < graph.waits_at_least.size(); ++name) graph.waits_at_least[name] = waits.of(name);
    graph.floor.resize(edges);
    for (size_t e = 0; e < edges; ++e) graph.floor[e] = std::min(lags.of(static_cast<size_t>(graph.group[e])), graph.lag(e));
    graph.binding.assign(n, kNothing);
    for (size_t v = 0; v < n; ++v) {
        // Latest arrival; ties: latest source; an edge before the chain; kind; source. Edges lie in that order already.
        int64_t arrival = std::numeric_limits<int64_t>::min(), source = arrival;
        if (graph.linked[v]) {
            graph.binding[v] = kChain;
            source = graph.time[v - 1];
            arrival = source + graph.wait_floor(v);
        }
        if (graph.piece[v] == Piece::work) continue;
        bool is_edge = false;
        for (uint32_t e = graph.first[v]; e < graph.first[v + 1]; ++e) {
            const int64_t from = graph.time[Graph::at(graph.source[e])], arrives = from + graph.floor[e];
            const bool better = std::tuple{arrives, from} > std::tuple{arrival, source} ||
                                (!is_edge && arrives == arrival && from == source);
            if (!better) continue;
            graph.binding[v] = static_cast<int32_t>(e);
            arrival = arrives;
            source = from;
            is_edge = true;
        }
    }
}

Graph build(const Rows& rows, const Causes& causes, const Rules& rules) {
    Graph graph;
    graph.row_waits.assign(rows.waits.begin(), rows.waits.end());
    graph.row_name.assign(rows.name.begin(), rows.name.end());
    graph.row_lane.assign(rows.lane.begin(), rows.lane.end());
    place_nodes(graph, rows, causes, rules);
    place_edges(graph, rows, causes, rules);
    place_in_order(graph);
    bind(graph, rules);
    return graph;
}

}  // namespace lanescope::critical_path
