// The way back from a node to what it waited for, and what of its time each cause took.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "core/analysis/critical_path/graph.hpp"

namespace lanescope::critical_path {

// Where a stretch of the path went. The order is that of the names in Python.
enum class Cause : uint8_t {
    work,
    wait_without_cause,
    latency,
    delay_beyond,
    lane_idle,
    resource,
    unknown,
    no_known_cause,
    after_last_end,
};

// Times in which the state of a lane is not known, disjoint and rising: those of lane i are at first[i] to first[i + 1].
struct Unknown {
    std::span<const int64_t> first;
    std::span<const int64_t> begin;
    std::span<const int64_t> end;
};

struct Window {
    int64_t begin;
    int64_t end;
    int32_t sink;
    int32_t cut;  // the node after the sink, in whose piece the window ends; -1: nothing runs there
};

struct Path {
    std::vector<int64_t> begin, end;  // from the window's end back to its begin
    std::vector<uint8_t> cause;
    std::vector<int32_t> kind;  // of edges; else -1
    std::vector<int32_t> row, from;  // that worked or waited, or began or ended; the row that an edge comes from, else -1
    std::vector<int32_t> node;       // where the part ends
    std::vector<int32_t> steps;      // all nodes of the path
};

// Walk back from the sink to the window's begin. The parts touch, so they fill the window.
//
// `resources`: by kind of edge, whether its time is spent waiting for something taken. `gaps` cut all parts but work, `idle`
// those without a row; `swapped` is a node whose binding is `binding` instead. O(path).
Path walk(const Graph& graph, const Window& window, std::span<const uint8_t> resources,
          const Unknown& gaps, const Unknown& idle, int32_t swapped = -1, int32_t binding = kNothing);

// What would have bound a node without what did: kNothing if nothing else is known.
int32_t second_binding(const Graph& graph, int32_t node);

}  // namespace lanescope::critical_path
