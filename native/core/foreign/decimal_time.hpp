// Times as text.
#pragma once
#include <cstdint>
#include <string_view>

namespace lanescope::foreign {

// Differences of two times fit.
inline constexpr uint64_t kMostNanoseconds = uint64_t{1} << 62;

// Microseconds as decimal text, in nanoseconds: halves are rounded away from zero. Returns false if it is not a number, or
// does not fit.
bool nanoseconds_of(std::string_view text, int64_t* out, bool* is_rounded);

}  // namespace lanescope::foreign
