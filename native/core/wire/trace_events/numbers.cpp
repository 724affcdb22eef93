#include "core/wire/trace_events/numbers.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "core/wire/trace_events/characters.hpp"

namespace lanescope::trace_events {

namespace {

constexpr int64_t kDecimals = 3;
// Beyond it a number is zero or too large, whatever its digits.
constexpr int64_t kMostExponent = 1'000'000'000;

template <class T>
bool is_all(std::string_view text, T* out, int base = 10) {
    const auto [stop, fault] = std::from_chars(text.data(), text.data() + text.size(), *out, base);
    return !text.empty() && fault == std::errc{} && stop == text.data() + text.size();
}

}  // namespace

Nanoseconds nanoseconds(std::string_view text) {
    const bool is_negative = text.starts_with('-');
    if (is_negative || text.starts_with('+')) text.remove_prefix(1);
    const size_t end = std::min(text.find_first_not_of("0123456789."), text.size());
    const std::string_view number = text.substr(0, end);
    std::string_view rest = text.substr(end);
    int64_t exponent = 0;
    if (!rest.empty()) {
        if ((rest[0] | 0x20) != 'e') return {};
        rest.remove_prefix(1);
        const bool is_small = rest.starts_with('-');
        if (is_small || rest.starts_with('+')) rest.remove_prefix(1);
        if (rest.empty()) return {};
        for (const char c : rest) {
            if (!is_digit(c)) return {};
            exponent = std::min(exponent * 10 + (c - '0'), kMostExponent);
        }
        if (is_small) exponent = -exponent;
    }
    const size_t point = std::min(number.find('.'), number.size());
    // Digits before this place (the point not counted) are whole nanoseconds.
    const int64_t whole = static_cast<int64_t>(point) + exponent + kDecimals;
    int64_t value = 0, place = 0;
    int first_behind = 0;
    bool is_more = false;
    for (size_t i = 0; i < number.size(); ++i) {
        const char c = number[i];
        if (c == '.') {
            if (i != point) return {};
            continue;
        }
        if (place < whole) {
            if (value > kMostTime / 10) return {};
            value = value * 10 + (c - '0');
        } else if (place == whole) {
            first_behind = c - '0';
        } else {
            is_more |= c != '0';
        }
        ++place;
    }
    if (place == 0) return {};
    for (; place < whole && value != 0; ++place) {
        if (value > kMostTime / 10) return {};
        value *= 10;
    }
    // Half up: of a negative number the half goes towards zero.
    value += first_behind > 5 || (first_behind == 5 && (is_more || !is_negative));
    if (value > kMostTime) return {};
    return {is_negative ? -value : value, first_behind != 0 || is_more ? Exactness::rounded : Exactness::exact};
}

bool integer(std::string_view text, int64_t* out) {
    uint64_t value = 0;
    if (text.starts_with('-')) return is_all(text, out);
    const bool is_good = is_all(text, &value);
    if (is_good) *out = static_cast<int64_t>(value);
    return is_good;
}

bool real(std::string_view text, double* out) {
    const auto [stop, fault] = std::from_chars(text.data(), text.data() + text.size(), *out);
    return !text.empty() && fault == std::errc{} && stop == text.data() + text.size() && std::isfinite(*out);
}

bool hexadecimal(std::string_view text, uint64_t* out) {
    if (text.size() > 2 && text[0] == '0' && (text[1] | 0x20) == 'x') text.remove_prefix(2);
    return !text.starts_with('-') && is_all(text, out, 16);
}

}  // namespace lanescope::trace_events
