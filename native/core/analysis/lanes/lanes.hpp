// Intervals of many lanes: their order, the time they cover, and whether they clash.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "core/analysis/check/sweep.hpp"

namespace lanescope::lanes {

struct Intervals {
    std::span<const int64_t> group;
    std::span<const int64_t> begin;
    std::span<const int64_t> end;  // empty: all are alike
};

// Order rows by group, begin, end from the longest, and row. False: the groups are too many for a table.
//
// Rows of a group mostly come as a few runs that are in order; those are merged. O(n log runs).
bool order(const Intervals& items, std::span<int64_t> out);

// The time covered in each group by intervals in that order, disjoint and not touching. Empty intervals cover nothing.
struct Union {
    std::vector<int64_t> group;
    std::vector<int64_t> begin;
    std::vector<int64_t> end;
};
Union covered(const Intervals& items, std::span<const int64_t> order);

// The time of each interval without that of those nested in it, in the order of groups and time; none is empty.
struct Leaves {
    std::vector<int64_t> group;
    std::vector<int64_t> begin;
    std::vector<int64_t> end;
    std::vector<int64_t> owner;     // which interval
    std::vector<int64_t> encloses;  // intervals that another one is nested in, each once
};

// Intervals in that order, none empty, of which two of a group share no time or one holds the other. O(n).
Leaves leaves(const Intervals& sorted);

// Whether intervals of a disjoint lane share time, or those of a nested one cross. Groups without a lane promise nothing.
bool clash(const Intervals& items, std::span<const int64_t> order, std::span<const check::Nesting> lanes);

// Whether a value falls from one row of a group to the next, in an order that keeps groups together.
bool fall(std::span<const int64_t> group, std::span<const int64_t> value, std::span<const int64_t> order);

// Whether begins do not fall within any lane; groups without a lane are left out.
bool rise(std::span<const int64_t> group, std::span<const int64_t> begin, size_t lanes);

}  // namespace lanescope::lanes
