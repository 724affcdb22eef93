#include "core/wire/trace_events/numbers.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <string_view>

namespace lanescope::trace_events {

namespace {

constexpr int64_t kMost = INT64_MAX / 2;  // sums of two of them fit
constexpr int kDecimals = 3;
constexpr int kFewDigits = 15;
// Beyond it a number is zero or too large, whatever its digits.
constexpr int64_t kMostExponent = 100000;

bool is_digit(char c) { return static_cast<unsigned char>(c - '0') < 10; }

struct Decimal {
    bool is_negative = false;
    const char* digits = nullptr;  // with at most one point in them
    const char* digits_end = nullptr;
    int64_t exponent = 0;
};

// Any number, however long, by its digits.
Nanoseconds scaled(const Decimal& number) {
    const std::string_view text{number.digits, static_cast<size_t>(number.digits_end - number.digits)};
    const size_t point = std::min(text.find('.'), text.size());
    // Digits before this place of `text` (the point not counted) are whole nanoseconds.
    const int64_t whole = static_cast<int64_t>(point) + number.exponent + kDecimals;
    uint64_t value = 0;
    int64_t place = 0;
    int first_behind = 0;
    bool is_more = false;
    for (const char c : text) {
        if (c == '.') continue;
        const auto digit = static_cast<unsigned>(c - '0');
        if (place < whole) {
            if (value > kMost / 10) return {};
            value = value * 10 + digit;
        } else if (place == whole) {
            first_behind = static_cast<int>(digit);
        } else {
            is_more |= digit != 0;
        }
        ++place;
    }
    for (; place < whole && value != 0; ++place) {
        if (value > kMost / 10) return {};
        value *= 10;
    }
    // Half up: of a negative number the half goes towards zero.
    const bool is_up = first_behind > 5 || (first_behind == 5 && (is_more || !number.is_negative));
    value += is_up;
    if (value > static_cast<uint64_t>(kMost)) return {};
    const auto magnitude = static_cast<int64_t>(value);
    return {number.is_negative ? -magnitude : magnitude,
            first_behind != 0 || is_more ? Exactness::rounded : Exactness::exact};
}

}  // namespace

Nanoseconds nanoseconds(const char*& at, const char* end) {
    const char* p = at;
    const bool is_negative = p < end && *p == '-';
    p += is_negative;
    const char* const digits = p;
    int64_t value = 0;
    while (p < end && is_digit(*p)) {
        if (p - digits < kFewDigits) value = value * 10 + (*p - '0');
        ++p;
    }
    const ptrdiff_t before = p - digits;
    ptrdiff_t behind = 0;
    if (before != 0 && p < end && *p == '.') {
        const char* const point = p++;
        while (p < end && is_digit(*p)) {
            if (p - point <= kDecimals) value = value * 10 + (*p - '0');
            ++p;
        }
        behind = p - point - 1;
        // What is not all there yet is not a fault.
        if (behind == 0 && p < end) p = point;
    }
    const char* const digits_end = p;
    int64_t exponent = 0;
    const bool has_exponent = before != 0 && p < end && (*p == 'e' || *p == 'E');
    if (has_exponent) {
        ++p;
        const bool is_small = p < end && *p == '-';
        if (p < end && (*p == '-' || *p == '+')) ++p;
        const char* const first = p;
        for (; p < end && is_digit(*p); ++p) exponent = std::min(exponent * 10 + (*p - '0'), kMostExponent);
        if (p == first) {
            at = p;
            return {};
        }
        if (is_small) exponent = -exponent;
    }
    at = p;
    if (before == 0) return {};
    if (!has_exponent && before <= kFewDigits && behind <= kDecimals) {
        for (ptrdiff_t i = behind; i < kDecimals; ++i) value *= 10;
        return {is_negative ? -value : value, Exactness::exact};
    }
    return scaled({is_negative, digits, digits_end, exponent});
}

bool integer(const char*& at, const char* end, int64_t* out) {
    const char* p = at;
    const bool is_negative = p < end && *p == '-';
    p += is_negative;
    const char* const digits = p;
    uint64_t value = 0;
    bool fits = true;
    for (; p < end && is_digit(*p); ++p) {
        const auto digit = static_cast<uint64_t>(*p - '0');
        if (value > (UINT64_MAX - digit) / 10) fits = false;
        value = value * 10 + digit;
    }
    const bool is_whole = p != digits && !(p < end && (*p == '.' || *p == 'e' || *p == 'E'));
    if (p != digits) {
        while (p < end && (is_digit(*p) || *p == '.' || *p == 'e' || *p == 'E' || *p == '+' || *p == '-')) ++p;
    }
    at = p;
    if (!is_whole || !fits || (is_negative && value > uint64_t{1} << 63)) return false;
    *out = static_cast<int64_t>(is_negative ? ~value + 1 : value);
    return true;
}

bool real(const char* begin, const char* end, double* out) {
    const auto [stop, fault] = std::from_chars(begin, end, *out);
    return begin != end && fault == std::errc{} && stop == end;
}

}  // namespace lanescope::trace_events
