// The task graph of an Ascend run: edges between tasks that have a dense index.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace lanescope::ascend {

// Marks the tasks on a cycle of the graph, and those on a way from one cycle to another, in `found`; the others become
// 0. Edges lead from pred[i] to succ[i], both below found.size(). Time and memory are linear in tasks and edges.
void find_cycles(std::span<const int64_t> pred, std::span<const int64_t> succ, std::span<uint8_t> found);

// The edges that are the first ones of their pair of tasks, in their order; both ends below `tasks`. Time is linear where
// the edges to a task come together, as they do where they are written as tasks are submitted.
void first_edges(std::span<const int64_t> pred, std::span<const int64_t> succ, size_t tasks, std::vector<int64_t>& found);

}  // namespace lanescope::ascend
