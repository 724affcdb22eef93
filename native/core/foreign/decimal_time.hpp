// Times as text.
#pragma once
#include <cstdint>
#include <string_view>

namespace lanescope::foreign {

// Times are below, durations and negative times nearer to 0: the end of a slice fits, whatever its time counts from.
inline constexpr uint64_t kMostNanoseconds = uint64_t{1} << 62, kMostDuration = uint64_t{1} << 60;

// Microseconds as decimal text, in nanoseconds: halves are rounded away from zero. Returns false if it is not a number, or
// does not fit.
bool nanoseconds_of(std::string_view text, int64_t* out, bool* is_rounded);

}  // namespace lanescope::foreign
