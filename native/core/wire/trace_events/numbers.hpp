// Numbers of JSON as exact integers.
#pragma once
#include <cstdint>

namespace lanescope::trace_events {

enum class Exactness : uint8_t { exact, rounded, unusable };

struct Nanoseconds {
    int64_t value = 0;
    Exactness exactness = Exactness::unusable;  // unusable: no number, or beyond 63 bits
};

// Steps over a number and gives 1000 times its value: microseconds become nanoseconds. Digits behind the third decimal
// round half up. What the number is was decided by its first character; a text is not read here.
Nanoseconds nanoseconds(const char*& at, const char* end);

// Steps over a number; gives whether it is an integer of -2^63 to 2^64 - 1, in two's complement.
bool integer(const char*& at, const char* end, int64_t* out);

// The number in [begin, end) as a float; false for anything else.
bool real(const char* begin, const char* end, double* out);

}  // namespace lanescope::trace_events
