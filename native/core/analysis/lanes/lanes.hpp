// Intervals of many lanes: their order, the time they cover, and whether they clash.
#pragma once
#include <cstdint>
#include <functional>
#include <span>

#include "core/analysis/check/sweep.hpp"
#include "core/wire/long_vector.hpp"

namespace lanescope::lanes {

struct Intervals {
    std::span<const int64_t> group;
    std::span<const int64_t> begin;
    std::span<const int64_t> end;  // empty: all are alike
};

// What is sorted.
struct Item {
    int64_t begin;
    int64_t end;
    int64_t row;
};
// Returns room for so many items, in place of what it returned before.
using Scratch = std::function<std::span<Item>(size_t)>;

// Order rows by group, begin, end from the longest, and row. False: the groups are too many for a table.
//
// Rows of a group mostly come as a few runs that are in order; those are merged. O(n log runs).
bool order(const Intervals& items, std::span<int64_t> out, const Scratch& scratch);

// The time covered in each group by intervals in that order, disjoint and not touching. Empty intervals cover nothing.
// Outputs have room for as many as there are intervals; returns how many were filled.
struct Union {
    std::span<int64_t> group;
    std::span<int64_t> begin;
    std::span<int64_t> end;
};
size_t covered(const Intervals& items, std::span<const int64_t> order, const Union& out);

// The time of each interval without that of those nested in it, in the order of groups and time; none is empty.
struct Leaves {
    LongVector<int64_t> group;
    LongVector<int64_t> begin;
    LongVector<int64_t> end;
    LongVector<int64_t> owner;     // row of the interval
    LongVector<int64_t> encloses;  // intervals that another one is nested in, each once
};

// Intervals in that order, of which two of a group share no time or one holds the other. Those of groups below 0 or from
// ``lanes`` on, and empty ones, are left out. O(n).
Leaves leaves(const Intervals& items, std::span<const int64_t> order, size_t lanes);

// Whether intervals of a disjoint lane share time, or those of a nested one cross. Groups without a lane promise nothing.
bool clash(const Intervals& items, std::span<const int64_t> order, std::span<const check::Nesting> lanes);

// Whether a value falls from one row of a group to the next, in an order that keeps groups together.
bool fall(std::span<const int64_t> group, std::span<const std::span<const int64_t>> pieces, std::span<const int64_t> order);

// Whether begins do not fall within any lane; groups without a lane are left out.
bool rise(std::span<const int64_t> group, std::span<const int64_t> begin, size_t lanes);

// How long which keys of each unit run at the same time, by unit and set of keys; at most the largest number.
struct Together {
    LongVector<int64_t> unit;
    LongVector<uint64_t> keys;  // a bit for each that runs
    LongVector<int64_t> time;
};

// The group of an interval is 64 times its unit, plus its key; none is negative. The order is by unit and begin. A key
// that several intervals of a unit have at a time runs once. O(n log of how many run at a time).
Together together(const Intervals& items, std::span<const int64_t> order);

// Stretches that fill the time of each lane between two moments.
struct Filled {
    LongVector<int64_t> lane;
    LongVector<int64_t> begin;
    LongVector<int64_t> end;
    LongVector<uint8_t> state;
    LongVector<int64_t> row;  // -1 where nothing is known
};

// What is known of lanes, and the rest of their time: within ``marked`` one state, outside another one.
struct Known {
    Intervals time;  // by lane and begin, disjoint, between the two moments
    std::span<const uint8_t> state;
    std::span<const int64_t> row;
    Intervals marked;  // by lane and begin, disjoint, none empty
    uint8_t inside;
    uint8_t outside;
};

// The stretches of lanes 0 to ``lanes`` - 1 from ``low`` to ``high``, none of the rest empty. O(n).
Filled fill(const Known& known, size_t lanes, int64_t low, int64_t high);

// The timestamps of intervals: their begins, and the ends of those of known length.
struct Hull {
    int64_t closed;  // number of ends
    int64_t first;   // the highest number where there are no intervals
    int64_t last;
};

// The first and the last timestamp. Lengths are at least 0, and nothing ends beyond 63 bits.
//
// length: empty: none is known. known: empty: all are.
Hull hull(std::span<const int64_t> begin, std::span<const int64_t> length, std::span<const uint8_t> known);

// Values that may be unknown. values: empty: none is known. known: empty: all are.
struct Nullable {
    std::span<const int64_t> values;
    std::span<const uint8_t> known;

    bool has(size_t i) const { return !values.empty() && (known.empty() || known[i] != 0); }
};

// Up to when each interval is known to last: its end; without a length, the time at which it was last seen, or its begin.
// None is negative, and none ends beyond 63 bits.
void known_ends(std::span<const int64_t> begin, const Nullable& length, const Nullable& seen, std::span<int64_t> end);

// Add each value to the sum of its group, as the machine adds. False: a group has no sum, and some sums are changed.
bool add_up(std::span<const int64_t> group, std::span<const int64_t> value, std::span<int64_t> sums);

}  // namespace lanescope::lanes
