// What a change would do: times of all nodes after it, and how much longer a row may take before the end moves.
#pragma once
#include <cstdint>
#include <span>

#include "core/analysis/critical_path/graph.hpp"

namespace lanescope::critical_path {

// What every cause but the binding one costs: its floor; nothing; as much as it took.
enum class Lags : uint8_t { floors, none, observed };

enum class Bound : uint8_t { nominal, low, high };

// Lengths of the pieces before nodes. The work of a row of `share[row]` k takes num[k] / den[k] of its time, rounded down for
// all pieces of the row together; share -1 leaves it as it is. Empty: nothing changes.
LongVector<int64_t> scaled_steps(const Graph& graph, std::span<const int32_t> share, std::span<const int64_t> num,
                                  std::span<const int64_t> den);

// The time of each node when pieces of work have these lengths, lanes and their orders stay and one recorded cause is tight:
// at least, at most, or if all others keep their floors. Unchanged lengths give the times of the trace in all three.
// `more`: by edge, what it costs beyond what it did, not below minus its floor; empty: nothing.
LongVector<int64_t> replay(Graph& graph, std::span<const int64_t> steps, Bound bound, std::span<const int64_t> more = {});

// How much later each node may be before the sink is (-1: before any node is later than the last); kFree: never.
inline constexpr int64_t kFree = int64_t{1} << 62;
LongVector<int64_t> slack(Graph& graph, int32_t sink, Lags lags);

// The work of each row in its own pieces.
LongVector<int64_t> own_work(const Graph& graph, size_t rows);

}  // namespace lanescope::critical_path
