// Graphs of causes: numpy arrays in, a graph that keeps itself, numpy arrays out.
#include <nanobind/nanobind.h>

#include <limits>
#include <vector>

#include "bind/arrays.hpp"
#include "core/analysis/critical_path/passes.hpp"
#include "core/analysis/critical_path/walk.hpp"
#include "bind/module.hpp"

namespace nb = nanobind;
using namespace nb::literals;
namespace path = lanescope::critical_path;

using lanescope::LongVector;
using lanescope::bind::Array;
using lanescope::bind::span_of;
using lanescope::bind::to_numpy;

namespace {

using Ints = Array<const int64_t>;
using Codes = Array<const int32_t>;
using Bytes = Array<const uint8_t>;

constexpr int64_t kFar = int64_t{1} << 60;  // sums of two times, and lengths, have room

void require(bool holds, const char* what) {
    if (!holds) throw nb::value_error(what);
}

void require_below(const Ints& values, size_t n, const char* what) {
    for (size_t i = 0; i < values.size(); ++i) require(static_cast<uint64_t>(values.data()[i]) < n, what);
}

void require_times(const Ints& values) {
    for (size_t i = 0; i < values.size(); ++i) require(values.data()[i] > -kFar && values.data()[i] < kFar, "time too far away");
}

path::Graph build(const Ints& lane, const Ints& begin, const Ints& end, const Ints& name, const Bytes& waits, const Ints& source,
                  const Ints& source_time, const Ints& target, const Ints& target_time, const Ints& kind, const Ints& group,
                  const Bytes& nesting, const Bytes& blocking, const Ints& floors, const Ints& wait_floors) {
    const size_t n = lane.size(), edges = source.size();
    require(begin.size() == n && end.size() == n && name.size() == n && waits.size() == n, "columns of different lengths");
    require(source_time.size() == edges && target.size() == edges && target_time.size() == edges && kind.size() == edges &&
                group.size() == edges,
            "columns of different lengths");
    require(2 * (n + edges) < static_cast<size_t>(std::numeric_limits<int32_t>::max()), "too many rows");
    require_below(lane, nesting.size(), "no such lane");
    require_below(name, wait_floors.size(), "no such name");
    require_below(source, n, "no such row");
    require_below(target, n, "no such row");
    require_below(kind, blocking.size(), "no such kind");
    require_below(group, floors.size(), "no such group");
    for (const Ints* times : {&begin, &end, &source_time, &target_time}) require_times(*times);
    for (size_t i = 0; i < n; ++i) require(begin.data()[i] <= end.data()[i], "a row ends before it begins");
    std::vector<path::Nesting> lanes(nesting.size());
    for (size_t i = 0; i < lanes.size(); ++i) {
        require(nesting.data()[i] <= 2, "no such nesting");
        lanes[i] = static_cast<path::Nesting>(nesting.data()[i]);
    }
    nb::gil_scoped_release release;
    return path::build({span_of(lane), span_of(begin), span_of(end), span_of(name), span_of(waits)},
                       {span_of(source), span_of(source_time), span_of(target), span_of(target_time), span_of(kind), span_of(group)},
                       {lanes, span_of(blocking), span_of(floors), span_of(wait_floors)});
}

std::vector<int64_t> copy(const std::vector<int64_t>& values) { return values; }

// A column as the graph has it, which lives as long as the array does.
template <class T>
nb::ndarray<nb::numpy, const T, nb::ndim<1>> shown(const nb::object& owner, const LongVector<T>& values) {
    return {values.data(), {values.size()}, owner};
}

template <class Enum>
nb::ndarray<nb::numpy, const uint8_t, nb::ndim<1>> codes(const nb::object& owner, const LongVector<Enum>& values) {
    static_assert(sizeof(Enum) == 1);
    return {reinterpret_cast<const uint8_t*>(values.data()), {values.size()}, owner};
}

const path::Graph& graph_of(const nb::object& self) { return nb::cast<const path::Graph&>(self); }

nb::dict nodes(const nb::object& self) {
    const path::Graph& graph = graph_of(self);
    nb::dict found;
    found["time"] = shown(self, graph.time);
    found["row"] = shown(self, graph.row);
    found["event"] = codes(self, graph.event);
    found["linked"] = shown(self, graph.linked);
    found["owner"] = shown(self, graph.owner);
    found["piece"] = codes(self, graph.piece);
    found["binding"] = shown(self, graph.binding);
    return found;
}

nb::dict edges(const nb::object& self) {
    const path::Graph& graph = graph_of(self);
    nb::dict found;
    found["source"] = shown(self, graph.source);
    found["target"] = shown(self, graph.target);
    found["kind"] = shown(self, graph.kind);
    found["given"] = shown(self, graph.given);
    found["floor"] = shown(self, graph.floor);
    found["fate"] = shown(self, graph.fate);
    return found;
}

path::Unknown unknown(const Ints& first, const Ints& begin, const Ints& end, size_t lanes) {
    require(begin.size() == end.size() && first.size() == lanes + 1, "columns of different lengths");
    for (size_t i = 0; i < first.size(); ++i) {
        require(static_cast<uint64_t>(first.data()[i]) <= begin.size() && (i == 0 || first.data()[i] >= first.data()[i - 1]),
                "no such time");
    }
    return {span_of(first), span_of(begin), span_of(end)};
}

size_t lanes_of(const path::Graph& graph) {
    int32_t most = -1;
    for (const int32_t lane : graph.row_lane) most = std::max(most, lane);
    return static_cast<size_t>(most + 1);
}

void require_node(const path::Graph& graph, int32_t node) {
    require(node >= 0 && static_cast<size_t>(node) < graph.nodes(), "no such node");
}

nb::tuple walk(const path::Graph& self, int64_t begin, int64_t end, int32_t sink, int32_t cut, const Bytes& resources,
               const Ints& gap_first, const Ints& gap_begin, const Ints& gap_end, const Ints& idle_first, const Ints& idle_begin,
               const Ints& idle_end, int32_t swapped, int32_t binding) {
    require_node(self, sink);
    if (cut >= 0) require_node(self, cut);
    for (const int32_t kind : self.kind) require(static_cast<size_t>(kind) < resources.size(), "no such kind");
    if (swapped >= 0) {
        require_node(self, swapped);
        const auto v = static_cast<size_t>(swapped);
        require(binding == path::kNothing || (binding == path::kChain && self.linked[v]) ||
                    (binding >= 0 && static_cast<size_t>(binding) < self.source.size() &&
                     self.target[static_cast<size_t>(binding)] == swapped),
                "no such cause");
    }
    const size_t lanes = lanes_of(self);
    require(gap_first.size() >= lanes + 1 && idle_first.size() >= lanes + 1, "columns of different lengths");
    const path::Unknown gaps = unknown(gap_first, gap_begin, gap_end, gap_first.size() - 1);
    const path::Unknown idle = unknown(idle_first, idle_begin, idle_end, idle_first.size() - 1);
    path::Path found;
    {
        nb::gil_scoped_release release;
        found = path::walk(self, {begin, end, sink, cut}, span_of(resources), gaps, idle, swapped, binding);
    }
    return nb::make_tuple(to_numpy(std::move(found.begin)), to_numpy(std::move(found.end)), to_numpy(std::move(found.cause)),
                          to_numpy(std::move(found.kind)), to_numpy(std::move(found.row)), to_numpy(std::move(found.from)),
                          to_numpy(std::move(found.node)), to_numpy(std::move(found.steps)));
}

LongVector<int64_t> replay(path::Graph& self, const Codes& share, const Ints& num, const Ints& den, uint8_t bound,
                            const Ints& more) {
    require(bound <= 2, "no such bound");
    require(share.size() == 0 || share.size() == self.begin_of.size(), "columns of different lengths");
    require(num.size() == den.size(), "columns of different lengths");
    for (size_t i = 0; i < num.size(); ++i) {
        require(den.data()[i] > 0 && num.data()[i] >= 0 && num.data()[i] / 1024 <= den.data()[i], "no such share");
    }
    for (size_t i = 0; i < share.size(); ++i) {
        require(share.data()[i] >= -1 && (share.data()[i] < 0 || static_cast<size_t>(share.data()[i]) < num.size()), "no such share");
    }
    require(more.size() == 0 || more.size() == self.source.size(), "columns of different lengths");
    for (size_t e = 0; e < more.size(); ++e) {
        require(more.data()[e] >= -self.floor[e] && more.data()[e] < path::kFree, "no such lag");
    }
    self.order();  // made once: not by two threads at a time
    nb::gil_scoped_release release;
    const LongVector<int64_t> steps = path::scaled_steps(self, span_of(share), span_of(num), span_of(den));
    return path::replay(self, steps, static_cast<path::Bound>(bound), span_of(more));
}

LongVector<int64_t> slack(path::Graph& self, int32_t sink, uint8_t lags) {
    require(lags <= 2, "no such lags");
    if (sink >= 0) require_node(self, sink);
    self.order();
    nb::gil_scoped_release release;
    return path::slack(self, sink, static_cast<path::Lags>(lags));
}

}  // namespace

void lanescope::bind::critical_path(nb::module_& m) {
    nb::class_<path::Graph>(m, "CauseGraph", "Begins and ends of rows as nodes, lanes as chains, causes as edges.")
        .def(
            "__init__",
            [](path::Graph* self, const Ints& lane, const Ints& begin, const Ints& end, const Ints& name, const Bytes& waits,
               const Ints& source, const Ints& source_time, const Ints& target, const Ints& target_time, const Ints& kind,
               const Ints& group, const Bytes& nesting, const Bytes& blocking, const Ints& floors, const Ints& wait_floors) {
                new (self) path::Graph(build(lane, begin, end, name, waits, source, source_time, target, target_time, kind, group,
                                             nesting, blocking, floors, wait_floors));
            },
            "lane"_a.noconvert(), "begin"_a.noconvert(), "end"_a.noconvert(), "name"_a.noconvert(), "waits"_a.noconvert(),
            "source"_a.noconvert(), "source_time"_a.noconvert(), "target"_a.noconvert(), "target_time"_a.noconvert(),
            "kind"_a.noconvert(), "group"_a.noconvert(), "nesting"_a.noconvert(), "blocking"_a.noconvert(),
            "floors"_a.noconvert(), "wait_floors"_a.noconvert())
        .def("nodes", &nodes, "Return columns of the nodes by name; linked: whether the node before is of its chain; owner: -1 where there is none.")
        .def("edges", &edges, "Return columns of the edges by name, and the fate of each cause given: 0 kept, 1 backward, 2 cyclic, "
                              "3 from a node to itself.")
        .def("counts",
             [](const path::Graph& self) {
                 return nb::make_tuple(self.counts.rows_crossing, self.counts.edges_backward, self.counts.backward_most,
                                       self.counts.edges_cyclic);
             },
             "Return how many rows cross others, edges run backward, by how much at most, and edges lie on cycles.")
        .def("begin_of", [](const nb::object& self) { return shown(self, graph_of(self).begin_of); }, "Return the first node of each row.")
        .def("end_of", [](const nb::object& self) { return shown(self, graph_of(self).end_of); }, "Return the last node of each row.")
        .def("times", [](const nb::object& self) { return shown(self, graph_of(self).time); }, "Return the time of each node.")
        .def("wait_floors", [](const path::Graph& self) { return to_numpy(copy(self.waits_at_least)); },
             "Return what waits of each name cost at least.")
        .def("walk", &walk, "begin"_a, "end"_a, "sink"_a, "cut"_a, "resources"_a.noconvert(), "gap_first"_a.noconvert(),
             "gap_begin"_a.noconvert(), "gap_end"_a.noconvert(), "idle_first"_a.noconvert(), "idle_begin"_a.noconvert(),
             "idle_end"_a.noconvert(), "swapped"_a = -1, "binding"_a = path::kNothing,
             "Walk back from a node. Return begin, end, cause, kind, row, source row and node of each part, the last first, and the "
             "nodes of the path.")
        .def("second_binding",
             [](const path::Graph& self, int32_t node) {
                 require_node(self, node);
                 return path::second_binding(self, node);
             },
             "node"_a, "Return what would have bound a node without what did: an edge, -1 the chain, -2 nothing.")
        .def("replay",
             [](path::Graph& self, const Codes& share, const Ints& num, const Ints& den, uint8_t bound, const Ints& more) {
                 return to_numpy(replay(self, share, num, den, bound, more));
             },
             "share"_a.noconvert(), "num"_a.noconvert(), "den"_a.noconvert(), "bound"_a, "more"_a.noconvert(),
             "Return the time of each node when the work of each row takes num[share] / den[share] of its time (-1: as it was), and "
             "each edge costs that much more (empty: none does): 0 nominal, 1 at least, 2 at most.")
        .def("slack",
             [](path::Graph& self, int32_t sink, uint8_t lags) { return to_numpy(slack(self, sink, lags)); }, "sink"_a,
             "lags"_a, "Return how much later each node may be; 2^62: nothing depends on it. Lags: 0 floors, 1 none, 2 as observed.")
        .def("own_work",
             [](const path::Graph& self) { return to_numpy(path::own_work(self, self.begin_of.size())); },
             "Return the work of each row in its own pieces.");
}
