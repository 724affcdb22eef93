// Any rows and causes: every node comes after all that it depends on, unchanged work gives the times of the trace, and the
// parts of a path touch and fill their window.
#include <cstdlib>
#include <vector>

#include "core/analysis/critical_path/passes.hpp"
#include "core/analysis/critical_path/walk.hpp"
#include "record_mutator.hpp"
#include "require.hpp"

LANESCOPE_FUZZ_RECORDS(4, 8)

using lanescope::fuzz::require;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace lanescope::critical_path;
    if (size < 12) return 0;
    const size_t n = std::min<size_t>((size - 4) / 8, 80);
    const std::vector<Nesting> lanes{Nesting::free, Nesting::disjoint, Nesting::nested, static_cast<Nesting>(data[0] % 3)};
    std::vector<int64_t> lane(n), begin(n), end(n), name(n), source, source_time, target, target_time, kind, group;
    std::vector<uint8_t> waits(n);
    for (size_t i = 0; i < n; ++i) {
        const uint8_t* item = data + 4 + 8 * i;
        lane[i] = item[0] % 4, begin[i] = item[1], end[i] = begin[i] + item[2] % 64;
        name[i] = item[3] % 2, waits[i] = item[3] % 8 == 7;
    }
    for (size_t i = 0; i < n; ++i) {
        const uint8_t* item = data + 4 + 8 * i;
        if (item[4] % 4 == 0) continue;
        const size_t from = item[4] % n, to = item[5] % n;
        const auto moment = [&](size_t row, uint8_t where) { return where % 4 ? (where & 1 ? end[row] : begin[row]) : begin[row] + where; };
        source.push_back(static_cast<int64_t>(from)), target.push_back(static_cast<int64_t>(to));
        source_time.push_back(moment(from, item[6])), target_time.push_back(moment(to, item[7]));
        kind.push_back(item[6] % 3), group.push_back(item[7] % 2);
    }
    const std::vector<uint8_t> blocking{0, 1, static_cast<uint8_t>(data[1] & 1)}, resources{0, 1, 0};
    const std::vector<int64_t> floors{data[2] % 8 - 1, -1}, wait_floors{data[2] / 8 % 4 - 1, -1};
    Graph graph = build({lane, begin, end, name, waits}, {source, source_time, target, target_time, kind, group},
                              {lanes, blocking, floors, wait_floors});
    const size_t nodes = graph.nodes();
    require(graph.order().size() == nodes && graph.fate.size() == source.size() && graph.first.size() == nodes + 1);
    std::vector<size_t> place(nodes, nodes);
    for (size_t i = 0; i < nodes; ++i) {
        const auto v = Graph::at(graph.order()[i]);
        require(v < nodes && place[v] == nodes);
        place[v] = i;
    }
    size_t kept = 0;
    for (const uint8_t fate : graph.fate) kept += fate == 0;
    require(kept == graph.source.size());
    for (size_t v = 0; v < nodes; ++v) {
        if (graph.linked[v]) require(v > 0 && place[v - 1] < place[v] && graph.time[v - 1] <= graph.time[v]);
        for (size_t e = graph.first[v]; e < graph.first[v + 1]; ++e) {
            require(graph.target[e] == static_cast<int32_t>(v) && place[Graph::at(graph.source[e])] < place[v]);
            require(graph.lag(e) >= 0 && graph.floor[e] >= 0 && graph.floor[e] <= graph.lag(e));
        }
    }
    const auto steps = scaled_steps(graph, {}, {}, {});
    for (const Bound bound : {Bound::nominal, Bound::low, Bound::high}) require(replay(graph, steps, bound) == graph.time);
    // Work that takes no longer moves no end, at least and at most in order.
    std::vector<int32_t> share(n, 0);
    const int64_t num[] = {data[3] % 9}, den[] = {4};
    const auto scaled = scaled_steps(graph, share, num, den);
    const auto low = replay(graph, scaled, Bound::low), high = replay(graph, scaled, Bound::high);
    for (size_t v = 0; v < nodes; ++v) require(low[v] <= high[v]);
    for (const Lags lags : {Lags::floors, Lags::none, Lags::observed}) {
        for (const int64_t slack_of : slack(graph, -1, lags)) require(slack_of >= 0);
    }
    const auto own = own_work(graph, n);
    for (size_t i = 0; i < n; ++i) require(own[i] >= 0 && own[i] <= end[i] - begin[i]);
    if (nodes == 0) return 0;
    const std::vector<int64_t> first{0, 1, 1, 2, 2}, gap_begin{10, 40}, gap_end{14, 90};
    const Unknown gaps{first, gap_begin, gap_end}, idle{first, gap_begin, gap_end};
    for (const size_t sink : {data[0] % nodes, data[1] % nodes}) {
        const int64_t last = graph.time[sink], from = last - data[3];
        const Path path = walk(graph, {from, last, static_cast<int32_t>(sink), -1}, resources, gaps, idle);
        int64_t at = last;
        for (size_t i = 0; i < path.begin.size(); ++i) {
            require(path.end[i] == at && path.begin[i] < path.end[i]);
            at = path.begin[i];
        }
        require(at == from);
        second_binding(graph, static_cast<int32_t>(sink));
    }
    return 0;
}
