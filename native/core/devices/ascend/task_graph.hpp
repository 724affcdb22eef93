// The task graph of an Ascend run: edges between tasks that have a dense index.
#pragma once
#include <cstdint>
#include <span>

namespace lanescope::ascend {

// Marks the tasks on a cycle of the graph, and those on a way from one cycle to another, in `found`; the others become
// 0. Edges lead from pred[i] to succ[i], both below found.size(). Time and memory are linear in tasks and edges.
void find_cycles(std::span<const int64_t> pred, std::span<const int64_t> succ, std::span<uint8_t> found);

}  // namespace lanescope::ascend
