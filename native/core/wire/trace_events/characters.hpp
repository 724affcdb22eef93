// Characters of JSON, and what is known of an event while it is read.
#pragma once
#include <algorithm>
#include <bit>

#include "core/wire/trace_events/scanner.hpp"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace lanescope::trace_events {

inline constexpr uint32_t kOdd = uint32_t{1} << 31;  // of `touched_`: a value of another type

#ifdef __SSE2__
// The next '"' or '\\'.
inline const char* quote_or_escape(const char* at, const char* end) {
    const __m128i quote = _mm_set1_epi8('"'), escape = _mm_set1_epi8('\\');
    for (; at < end; at += 16) {
        const __m128i block = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
        const int found = _mm_movemask_epi8(_mm_or_si128(_mm_cmpeq_epi8(block, quote), _mm_cmpeq_epi8(block, escape)));
        if (found != 0) return std::min(at + std::countr_zero(static_cast<unsigned>(found)), end);
    }
    return end;
}

// The next '"' or bracket of either kind: with bit 5 set, square brackets are braces.
inline const char* quote_or_bracket(const char* at, const char* end) {
    const __m128i quote = _mm_set1_epi8('"'), open = _mm_set1_epi8('{'), close = _mm_set1_epi8('}'), bit = _mm_set1_epi8(0x20);
    for (; at < end; at += 16) {
        const __m128i block = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
        const __m128i folded = _mm_or_si128(block, bit);
        const __m128i bracket = _mm_or_si128(_mm_cmpeq_epi8(folded, open), _mm_cmpeq_epi8(folded, close));
        const int found = _mm_movemask_epi8(_mm_or_si128(_mm_cmpeq_epi8(block, quote), bracket));
        if (found != 0) return std::min(at + std::countr_zero(static_cast<unsigned>(found)), end);
    }
    return end;
}
#else
inline const char* quote_or_escape(const char* at, const char* end) {
    while (at < end && *at != '"' && *at != '\\') ++at;
    return at;
}

inline const char* quote_or_bracket(const char* at, const char* end) {
    while (at < end && *at != '"' && (*at | 0x20) != '{' && (*at | 0x20) != '}') ++at;
    return at;
}
#endif

inline bool is_space(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

// Characters of numbers and of words such as `true` and `NaN`.
inline bool is_word(char c) {
    const char lower = static_cast<char>(c | 0x20);
    return (c >= '0' && c <= '9') || (lower >= 'a' && lower <= 'z') || c == '-' || c == '+' || c == '.';
}

inline bool is_number_begin(char c) { return c == '-' || (c >= '0' && c <= '9'); }

struct Scanner::Fresh {
    uint16_t bits = 0;
    uint16_t seen = 0;
    uint8_t phase = 0;
    bool has_phase = false;
    int32_t name = -1;
    int32_t category = -1;
    int64_t ts = 0;
    int64_t dur = 0;
    int64_t id = 0;
    Place place;
    const char* args_begin = nullptr;
    const char* args_end = nullptr;
};

}  // namespace lanescope::trace_events
