// Begins and ends of slices, and the slices around points of time.
#pragma once
#include <cstdint>
#include <span>

namespace lanescope::foreign {

// Pairs begins with ends by a stack for each lane. An end with a name closes the innermost open begin of that name, one
// without (-1) the innermost open begin; what was begun inside stays open, and may be closed later.
//   lane, name: int32 [n], records of a lane in the order of time; lanes are below `lanes`.
//   is_end: uint8 [n].
//   partner: int64 [n], the other record of each pair, -1 without one.
//   crosses: uint8 [n], 1 for pairs that end while something is open that began inside of them.
// Returns false if a lane is out of range.
bool match_stacks(std::span<const int32_t> lane, std::span<const int32_t> name, std::span<const uint8_t> is_end, size_t lanes,
                  std::span<int64_t> partner, std::span<uint8_t> crosses);

// The slices that points of time lie in.
//   lane, begin, end: of slices, by lane, begin, and falling end; what is open ends at the largest int64.
//   point_lane, point: by lane and time.
//   inside: the innermost slice that has begun and not ended at each point, -1: none.
//   next: the first slice of the lane that begins there or later, -1: none.
void slices_around(std::span<const int64_t> lane, std::span<const int64_t> begin, std::span<const int64_t> end,
                   std::span<const int64_t> point_lane, std::span<const int64_t> point, std::span<int64_t> inside,
                   std::span<int64_t> next);

}  // namespace lanescope::foreign
