// Straight clocks: lines under upper limits and over lower ones.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace lanescope::align {

// Limits by moment, rising without repeats; moments and limits are below 2^60 in size.
struct Limits {
    std::span<const int64_t> at;
    std::span<const int64_t> most;

    size_t size() const { return at.size(); }
};

// The corners of the lower hull of limits, indices in order. O(n).
std::vector<int64_t> lower_hull(const Limits& limits);

// A slope between 0 and 2^62, as a fraction.
struct Rate {
    int64_t numerator;
    int64_t denominator;  // above 0
};

// Stretches of time in each of which one line satisfies all limits.
struct Segments {
    std::vector<int64_t> begin;  // first moment with a limit
    std::vector<int64_t> end;    // last one
};

// Time cut where no line of a slope of at most ``rate`` satisfies all limits: each segment is the longest that one does
// from where it begins. ``below`` are limits of the lines with their sign turned. Segments with limits of one side only
// are left out, as are moments whose own limits contradict each other. O(n).
Segments straight_segments(const Limits& above, const Limits& below, Rate rate);

}  // namespace lanescope::align
