#include "core/foreign/decimal_time.hpp"

#include <algorithm>
#include <charconv>
#include <string>

#include "core/foreign/json_text.hpp"

namespace lanescope::foreign {

bool nanoseconds_of(std::string_view text, int64_t* out, bool* is_rounded) {
    size_t at = 0;
    const bool is_negative = at < text.size() && text[at] == '-';
    if (is_negative || (at < text.size() && text[at] == '+')) ++at;
    std::string digits;
    int64_t scale = 3;  // of the last digit, as a power of ten of nanoseconds
    bool has_digits = false, has_point = false;
    for (; at < text.size() && (is_digit(text[at]) || (text[at] == '.' && !has_point)); ++at) {
        if (text[at] == '.') {
            has_point = true;
            continue;
        }
        has_digits = true;
        if (has_point) --scale;
        if (text[at] != '0' || !digits.empty()) digits += text[at];
    }
    if (!has_digits) return false;
    if (at < text.size() && (text[at] | 0x20) == 'e') {
        ++at;
        if (at < text.size() && text[at] == '+') ++at;
        int64_t exponent = 0;
        const auto read = std::from_chars(text.data() + at, text.data() + text.size(), exponent);
        if (read.ec == std::errc::result_out_of_range) {
            exponent = text[at] == '-' ? -1'000'000'000 : 1'000'000'000;
        } else if (read.ec != std::errc()) {
            return false;
        }
        at = static_cast<size_t>(read.ptr - text.data());
        scale += std::clamp<int64_t>(exponent, -1'000'000'000, 1'000'000'000);
    }
    if (at != text.size()) return false;
    *out = 0;
    if (digits.empty()) return true;
    const auto count = static_cast<int64_t>(digits.size());
    if (count + scale > 19) return false;
    const int64_t kept = std::clamp<int64_t>(count + scale, 0, count);
    uint64_t value = 0;
    for (int64_t i = 0; i < kept; ++i) value = value * 10 + static_cast<uint64_t>(digits[static_cast<size_t>(i)] - '0');
    for (int64_t i = 0; i < scale; ++i) value *= 10;
    if (scale < 0) {
        const bool is_whole = std::all_of(digits.begin() + kept, digits.end(), [](char c) { return c == '0'; });
        if (!is_whole) *is_rounded = true;
        if (count + scale >= 0 && digits[static_cast<size_t>(kept)] >= '5') ++value;
    }
    if (value > kMostNanoseconds) return false;
    *out = is_negative ? -static_cast<int64_t>(value) : static_cast<int64_t>(value);
    return true;
}

}  // namespace lanescope::foreign
