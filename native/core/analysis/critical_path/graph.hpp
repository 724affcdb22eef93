// What a trace shows of causes: begins and ends of rows as nodes, lanes as chains, causes as edges; all times integers.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "core/analysis/check/sweep.hpp"
#include "core/wire/long_vector.hpp"

namespace lanescope::critical_path {

using check::Nesting;

enum class Event : uint8_t { begin, end, point };

// The stretch of a lane between two neighbouring nodes: its owner, the innermost open row, works or waits, or there is none.
enum class Piece : uint8_t { none, work, wait, idle };

// What bound a node: an edge (its index, 0 or more), the node before it on its chain, or nothing that is known.
inline constexpr int32_t kChain = -1, kNothing = -2;

// So many lags of a kind, or waits of a name, must be known before the shortest of them counts as what it costs at least.
inline constexpr size_t kEnough = 20;

struct Rows {
    std::span<const int64_t> lane;
    std::span<const int64_t> begin;
    std::span<const int64_t> end;
    std::span<const int64_t> name;   // of waits: dense codes
    std::span<const uint8_t> waits;  // whether a row waits
};

struct Causes {
    std::span<const int64_t> source;  // row
    std::span<const int64_t> source_time;
    std::span<const int64_t> target;  // row
    std::span<const int64_t> target_time;
    std::span<const int64_t> kind;   // dense; the smaller binds where two arrive together
    std::span<const int64_t> group;  // dense; lags of one group have one floor
};

struct Rules {
    std::span<const Nesting> lanes;      // by lane
    std::span<const uint8_t> blocking;   // by kind: the piece before its target waits, whoever owns it
    std::span<const int64_t> floors;     // by group; below 0: the shortest lag, where enough are known
    std::span<const int64_t> wait_floors;  // by name, likewise; empty: all likewise
};

struct Counts {
    uint64_t rows_crossing = 0;
    uint64_t edges_backward = 0;
    uint64_t edges_cyclic = 0;
    int64_t backward_most = 0;
};

struct Graph {
    // Nodes, chain by chain, in order of time within each.
    LongVector<int64_t> time;
    LongVector<int32_t> row;
    LongVector<Event> event;
    LongVector<uint8_t> linked;  // whether the node before is of the same chain
    LongVector<int32_t> owner;   // row that owns the piece before the node; -1: none
    LongVector<Piece> piece;     // before the node
    LongVector<int32_t> begin_of, end_of;  // node of each row
    // Edges by target, kind and source.
    LongVector<int32_t> source, target, kind, group;
    LongVector<uint32_t> first;   // of each node, its first edge; one more at the end
    LongVector<int32_t> given;    // which of the causes it was
    LongVector<uint8_t> fate;     // of each cause: 0 kept, 1 backward, 2 cyclic, 3 from a node to itself
    LongVector<int64_t> floor;    // of each edge: the least that it costs
    LongVector<int32_t> binding;  // of each node
    std::vector<int64_t> waits_at_least;  // by name
    LongVector<uint8_t> row_waits;
    LongVector<int32_t> row_name, row_lane;
    Counts counts;

    // Nodes so that each comes after all that it depends on. The first call sorts them, unless cycles needed it before.
    const LongVector<int32_t>& order();

    size_t nodes() const { return time.size(); }
    int64_t step(size_t v) const { return linked[v] ? time[v] - time[v - 1] : 0; }
    int64_t lag(size_t e) const { return time[at(target[e])] - time[at(source[e])]; }
    bool is_whole_wait(size_t v) const;
    int64_t wait_floor(size_t v) const;
    int64_t needless_wait(size_t v) const;
    static size_t at(int32_t i) { return static_cast<size_t>(i); }

  private:
    friend void place_in_order(Graph& graph);
    LongVector<int32_t> order_;
};

// Build all of it. Rows and lanes that causes name exist. O((n + e) log n).
Graph build(const Rows& rows, const Causes& causes, const Rules& rules);

// The parts of it: nodes and their pieces; edges, without those on cycles of one moment; what bound each node.
void place_nodes(Graph& graph, const Rows& rows, const Causes& causes, const Rules& rules);
void place_edges(Graph& graph, const Rows& rows, const Causes& causes, const Rules& rules);
void place_in_order(Graph& graph);
void bind(Graph& graph, const Rules& rules);

}  // namespace lanescope::critical_path
