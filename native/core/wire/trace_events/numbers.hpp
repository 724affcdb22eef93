// Numbers of JSON as exact integers.
#pragma once
#include <cstdint>
#include <string_view>

namespace lanescope::trace_events {

// Times are at most this many nanoseconds, about 146 years; durations, and times before zero, at most 36 years.
inline constexpr int64_t kMostTime = int64_t{1} << 62, kMostDuration = int64_t{1} << 60;

enum class Exactness : uint8_t { exact, rounded, unusable };

struct Nanoseconds {
    int64_t value = 0;
    Exactness exactness = Exactness::unusable;  // unusable: no number, or beyond 2^62
};

// 1000 times a decimal number: microseconds become nanoseconds. Digits behind the third decimal round half up.
Nanoseconds nanoseconds(std::string_view text);

// Whether a text is an integer of -2^63 to 2^64 - 1, given in two's complement.
bool integer(std::string_view text, int64_t* out);

// The finite number that a text is; false for anything else.
bool real(std::string_view text, double* out);

// A hexadecimal number of at most 64 bits, with or without 0x before it.
bool hexadecimal(std::string_view text, uint64_t* out);

}  // namespace lanescope::trace_events
