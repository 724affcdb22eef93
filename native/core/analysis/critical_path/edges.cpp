#include <algorithm>
#include <numeric>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/analysis/critical_path/graph.hpp"

namespace lanescope::critical_path {
namespace {

// Few chains are merged: that reads memory from one end to the other, which a radix sort of many does not.
constexpr size_t kFewRuns = 64;

// Where runs of indices begin whose times do not fall, and the end of the last one; nothing where those are many.
std::vector<size_t> few_runs(std::span<const int64_t> time) {
    std::vector<size_t> starts{0};
    for (size_t v = 1; v < time.size(); ++v) {
        if (time[v] >= time[v - 1]) continue;
        if (starts.size() == kFewRuns) return {};
        starts.push_back(v);
    }
    starts.push_back(time.size());
    return starts;
}

// Merge neighbouring runs, two at a time, until one is left.
void merge_runs(std::span<const int64_t> time, std::vector<size_t> starts, LongVector<int32_t>& order) {
    const auto is_earlier = [&](int32_t a, int32_t b) { return time[Graph::at(a)] < time[Graph::at(b)]; };
    LongVector<int32_t> other(starts.size() > 2 ? order.size() : 0);
    for (; starts.size() > 2; order.swap(other)) {
        std::vector<size_t> merged;
        for (size_t i = 0; i + 1 < starts.size(); i += 2) {
            const size_t middle = starts[i + 1], last = starts[std::min(i + 2, starts.size() - 1)];
            const int32_t* const from = order.data();
            std::merge(from + starts[i], from + middle, from + middle, from + last, other.data() + starts[i], is_earlier);
            merged.push_back(starts[i]);
        }
        merged.push_back(order.size());
        starts = std::move(merged);
    }
}

// A radix sort of 11 bits at a time.
void sort_by_digits(std::span<const int64_t> time, LongVector<int32_t>& order) {
    const auto [least, most] = std::minmax_element(time.begin(), time.end());
    const auto base = static_cast<uint64_t>(*least);
    const uint64_t span = static_cast<uint64_t>(*most) - base;
    constexpr int kBits = 11;
    LongVector<int32_t> other(order.size());
    for (int shift = 0; shift < 64 && (span >> shift) != 0; shift += kBits) {
        const auto digit = [&](int32_t i) {
            return ((static_cast<uint64_t>(time[Graph::at(i)]) - base) >> shift) & ((1U << kBits) - 1);
        };
        std::vector<size_t> place((1U << kBits) + 1);
        for (const int32_t i : order) ++place[digit(i) + 1];
        for (size_t d = 1; d < place.size(); ++d) place[d] += place[d - 1];
        for (const int32_t i : order) other[place[digit(i)]++] = i;
        order.swap(other);
    }
}

// Sort indices by their times, those of one time as they are.
void sort_by_time(std::span<const int64_t> time, LongVector<int32_t>& order) {
    order.resize(time.size());
    std::iota(order.begin(), order.end(), 0);
    if (time.empty()) return;
    if (auto starts = few_runs(time); !starts.empty()) {
        merge_runs(time, std::move(starts), order);
    } else {
        sort_by_digits(time, order);
    }
}

// Nodes within rows, by row and time.
class Points {
  public:
    explicit Points(const Graph& graph) : graph_(graph) {
        for (size_t v = 0; v < graph.nodes(); ++v) {
            if (graph.event[v] == Event::point) nodes_.push_back(static_cast<int32_t>(v));
        }
        std::ranges::sort(nodes_, {}, [&](int32_t v) { return key(v); });
    }

    int32_t at(int64_t row, int64_t time) const {
        return *std::ranges::lower_bound(nodes_, std::pair{row, time}, {}, [&](int32_t v) { return key(v); });
    }

  private:
    std::pair<int64_t, int64_t> key(int32_t v) const {
        return {graph_.row[Graph::at(v)], graph_.time[Graph::at(v)]};
    }

    const Graph& graph_;
    LongVector<int32_t> nodes_;
};

using Arcs = std::vector<std::vector<size_t>>;

// Which nodes are on cycles with each other: those of one number.
std::vector<size_t> strong_components(const Arcs& next) {
    const size_t n = next.size();
    Arcs before(n);
    for (size_t i = 0; i < n; ++i) {
        for (const size_t j : next[i]) before[j].push_back(i);
    }
    std::vector<uint8_t> is_seen(n);
    std::vector<size_t> finished;
    std::vector<std::pair<size_t, size_t>> open;  // a node, and the next of its arcs
    for (size_t root = 0; root < n; ++root) {
        if (is_seen[root]) continue;
        is_seen[root] = 1;
        open.emplace_back(root, 0);
        while (!open.empty()) {
            auto& [i, arc] = open.back();
            if (arc == next[i].size()) {
                finished.push_back(i);
                open.pop_back();
                continue;
            }
            const size_t j = next[i][arc++];
            if (is_seen[j]) continue;
            is_seen[j] = 1;
            open.emplace_back(j, 0);
        }
    }
    std::vector<size_t> component(n, n), todo;
    for (auto root = finished.rbegin(); root != finished.rend(); ++root) {
        if (component[*root] != n) continue;
        component[*root] = *root;
        todo.assign(1, *root);
        while (!todo.empty()) {
            const size_t i = todo.back();
            todo.pop_back();
            for (const size_t j : before[i]) {
                if (component[j] != n) continue;
                component[j] = *root;
                todo.push_back(j);
            }
        }
    }
    return component;
}

// Nodes of one time, and the edges between them.
class Plateau {
  public:
    Plateau(const Graph& graph, std::span<int32_t> nodes, std::vector<uint32_t> edges)
        : graph_(graph), nodes_(nodes), edges_(std::move(edges)) {
        for (size_t i = 0; i < nodes_.size(); ++i) place_[nodes_[i]] = i;
    }

    // Order the nodes so that edges run forward; those on cycles go.
    void sort(LongVector<uint8_t>& is_dropped) {
        if (try_sort()) return;
        const std::vector<size_t> component = strong_components(arcs());
        std::erase_if(edges_, [&](uint32_t e) {
            const bool goes = component[place_[graph_.source[e]]] == component[place_[graph_.target[e]]];
            if (goes) is_dropped[e] = 1;
            return goes;
        });
        try_sort();  // chains have no cycles of their own
    }

  private:
    Arcs arcs() {
        Arcs next(nodes_.size());
        for (size_t i = 0; i < nodes_.size(); ++i) {
            if (!graph_.linked[static_cast<size_t>(nodes_[i])]) continue;
            const auto before = place_.find(nodes_[i] - 1);
            if (before != place_.end()) next[before->second].push_back(i);
        }
        for (const uint32_t e : edges_) next[place_[graph_.source[e]]].push_back(place_[graph_.target[e]]);
        return next;
    }

    bool try_sort() {
        const size_t n = nodes_.size();
        const Arcs next = arcs();
        std::vector<size_t> missing(n), ready;
        for (const auto& after : next) {
            for (const size_t i : after) ++missing[i];
        }
        for (size_t i = 0; i < n; ++i) {
            if (missing[i] == 0) ready.push_back(i);
        }
        for (size_t k = 0; k < ready.size(); ++k) {
            for (const size_t i : next[ready[k]]) {
                if (--missing[i] == 0) ready.push_back(i);
            }
        }
        if (ready.size() < n) return false;
        std::vector<int32_t> sequence;
        for (const size_t i : ready) sequence.push_back(nodes_[i]);
        std::ranges::copy(sequence, nodes_.begin());
        return true;
    }

    const Graph& graph_;
    std::span<int32_t> nodes_;
    std::vector<uint32_t> edges_;
    std::unordered_map<int32_t, size_t> place_;
};

void index_edges(Graph& graph) {
    graph.first.assign(graph.nodes() + 1, 0);
    for (const int32_t v : graph.target) ++graph.first[static_cast<size_t>(v) + 1];
    for (size_t v = 1; v < graph.first.size(); ++v) graph.first[v] += graph.first[v - 1];
}

void keep_edges(Graph& graph, const LongVector<uint8_t>& is_dropped) {
    size_t kept = 0;
    for (size_t e = 0; e < is_dropped.size(); ++e) {
        if (is_dropped[e]) {
            graph.fate[static_cast<size_t>(graph.given[e])] = 2;
            ++graph.counts.edges_cyclic;
            continue;
        }
        for (auto* column : {&graph.source, &graph.target, &graph.kind, &graph.group, &graph.given}) {
            (*column)[kept] = (*column)[e];
        }
        ++kept;
    }
    for (auto* column : {&graph.source, &graph.target, &graph.kind, &graph.group, &graph.given}) column->resize(kept);
}

}  // namespace

void place_edges(Graph& graph, const Rows& rows, const Causes& causes, const Rules& rules) {
    const size_t count = causes.source.size();
    graph.fate.assign(count, 0);
    struct Edge {
        int32_t target, kind, source, group, given;
        auto operator<=>(const Edge&) const = default;
    };
    const Points points(graph);
    LongVector<Edge> edges;
    edges.reserve(count);
    for (size_t i = 0; i < count; ++i) {
        const auto u = static_cast<size_t>(causes.source[i]), v = static_cast<size_t>(causes.target[i]);
        if (causes.source_time[i] > causes.target_time[i]) {
            graph.fate[i] = 1;
            ++graph.counts.edges_backward;
            graph.counts.backward_most = std::max(graph.counts.backward_most, causes.source_time[i] - causes.target_time[i]);
            continue;
        }
        const int32_t source = causes.source_time[i] == rows.end[u]     ? graph.end_of[u]
                               : causes.source_time[i] == rows.begin[u] ? graph.begin_of[u]
                                                                        : points.at(causes.source[i], causes.source_time[i]);
        const bool at_begin = causes.target_time[i] == rows.begin[v];
        const bool at_end = causes.target_time[i] == rows.end[v];
        const int32_t target = at_begin && !(at_end && rows.waits[v]) ? graph.begin_of[v]
                               : at_end                               ? graph.end_of[v]
                                                                      : points.at(causes.target[i], causes.target_time[i]);
        if (source == target) {
            graph.fate[i] = 3;
            continue;
        }
        edges.push_back({target, static_cast<int32_t>(causes.kind[i]), source, static_cast<int32_t>(causes.group[i]),
                         static_cast<int32_t>(i)});
    }
    std::ranges::sort(edges);
    for (auto* column : {&graph.source, &graph.target, &graph.kind, &graph.group, &graph.given}) column->reserve(edges.size());
    for (const Edge& edge : edges) {
        graph.source.push_back(edge.source);
        graph.target.push_back(edge.target);
        graph.kind.push_back(edge.kind);
        graph.group.push_back(edge.group);
        graph.given.push_back(edge.given);
        Piece& piece = graph.piece[static_cast<size_t>(edge.target)];
        if (rules.blocking[static_cast<size_t>(edge.kind)] && piece == Piece::work) piece = Piece::wait;
    }
}

const LongVector<int32_t>& Graph::order() {
    if (order_.size() < nodes()) sort_by_time(time, order_);
    return order_;
}

void place_in_order(Graph& graph) {
    const size_t n = graph.nodes();
    // Nodes of one time come by id: only edges without lag that run against ids need more.
    std::vector<int64_t> bad;
    LongVector<std::pair<int64_t, uint32_t>> level;
    for (uint32_t e = 0; e < graph.source.size(); ++e) {
        if (graph.lag(e) != 0) continue;
        const int64_t time = graph.time[static_cast<size_t>(graph.source[e])];
        level.emplace_back(time, e);
        if (graph.source[e] > graph.target[e]) bad.push_back(time);
    }
    std::ranges::sort(bad);
    bad.erase(std::unique(bad.begin(), bad.end()), bad.end());
    LongVector<uint8_t> is_dropped(bad.empty() ? 0 : graph.source.size());
    if (!bad.empty()) {
        std::ranges::sort(level);
        graph.order();
    }
    LongVector<int32_t>& order = graph.order_;
    size_t l = 0;
    for (const int64_t time : bad) {
        const auto earlier = [&](int32_t v, int64_t t) { return graph.time[static_cast<size_t>(v)] < t; };
        const auto from = static_cast<size_t>(std::lower_bound(order.begin(), order.end(), time, earlier) - order.begin());
        size_t to = from;
        while (to < n && graph.time[static_cast<size_t>(order[to])] == time) ++to;
        while (level[l].first < time) ++l;
        std::vector<uint32_t> edges;
        for (; l < level.size() && level[l].first == time; ++l) edges.push_back(level[l].second);
        Plateau(graph, std::span(order).subspan(from, to - from), std::move(edges)).sort(is_dropped);
    }
    if (!bad.empty()) keep_edges(graph, is_dropped);
    index_edges(graph);
}

}  // namespace lanescope::critical_path
