// Characters of JSON in a text that zeros follow, so that blocks of 16 bytes may be read at its end.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace lanescope::trace_events {

inline constexpr size_t kPadding = 64;  // zeros behind the text

inline bool is_space(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }
inline bool is_digit(char c) { return static_cast<unsigned char>(c - '0') < 10; }
inline bool is_number_begin(char c) { return c == '-' || is_digit(c); }

#ifdef __SSE2__
// The next quote, backslash or NUL: there is one, as NULs follow every text.
inline const char* text_stop(const char* at) {
    const __m128i quote = _mm_set1_epi8('"'), escape = _mm_set1_epi8('\\'), zero = _mm_setzero_si128();
    for (;; at += 16) {
        const __m128i block = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
        const __m128i found =
            _mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(block, quote), _mm_cmpeq_epi8(block, escape)), _mm_cmpeq_epi8(block, zero));
        const auto mask = static_cast<unsigned>(_mm_movemask_epi8(found));
        if (mask != 0) return at + std::countr_zero(mask);
    }
}

// The next quote, bracket of either kind, or NUL: with bit 5 set, square brackets are braces.
inline const char* bracket_stop(const char* at) {
    const __m128i quote = _mm_set1_epi8('"'), open = _mm_set1_epi8('{'), close = _mm_set1_epi8('}'), bit = _mm_set1_epi8(0x20);
    for (;; at += 16) {
        const __m128i block = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
        const __m128i folded = _mm_or_si128(block, bit);
        const __m128i bracket = _mm_or_si128(_mm_cmpeq_epi8(folded, open), _mm_cmpeq_epi8(folded, close));
        const __m128i other = _mm_or_si128(_mm_cmpeq_epi8(block, quote), _mm_cmpeq_epi8(block, _mm_setzero_si128()));
        const auto mask = static_cast<unsigned>(_mm_movemask_epi8(_mm_or_si128(bracket, other)));
        if (mask != 0) return at + std::countr_zero(mask);
    }
}

// Whether all bytes of the blocks of 16 bytes that `mask` has a bit for are the same.
inline constexpr uint32_t kNever = 1u << 31;  // a mask that no blocks satisfy
inline bool is_same(const char* a, const char* b, uint32_t mask) {
    const __m128i left = _mm_loadu_si128(reinterpret_cast<const __m128i*>(a));
    const __m128i right = _mm_loadu_si128(reinterpret_cast<const __m128i*>(b));
    return (~static_cast<uint32_t>(_mm_movemask_epi8(_mm_cmpeq_epi8(left, right))) & mask) == 0;
}
#else
inline const char* text_stop(const char* at) {
    while (*at != '"' && *at != '\\' && *at != '\0') ++at;
    return at;
}

inline const char* bracket_stop(const char* at) {
    while (*at != '"' && (*at | 0x20) != '{' && (*at | 0x20) != '}' && *at != '\0') ++at;
    return at;
}

inline constexpr uint32_t kNever = 1u << 31;
inline bool is_same(const char* a, const char* b, uint32_t mask) {
    return mask != kNever && std::memcmp(a, b, static_cast<size_t>(std::popcount(mask))) == 0;
}
#endif

// The mask of so many first bytes of a block.
inline uint32_t mask_of(size_t bytes) { return bytes >= 16 ? 0xFFFF : (1u << bytes) - 1; }

// Not in the functions that read them: there each call would copy them first.
inline constexpr uint64_t kTens[] = {1, 10, 100, 1000, 10'000, 100'000, 1'000'000, 10'000'000, 100'000'000};

// Reads digits and adds them to `value`, which overflows where there are more than 19 in all; returns their end.
inline const char* digits(const char* at, uint64_t* value) {
    if constexpr (std::endian::native == std::endian::little) {
        for (;;) {
            uint64_t word;
            std::memcpy(&word, at, 8);
            const uint64_t digit = word ^ 0x3030303030303030;
            const uint64_t others = ((digit + 0x0606060606060606) | digit) & 0xF0F0F0F0F0F0F0F0;
            const int count = others == 0 ? 8 : std::countr_zero(others) / 8;
            if (count == 0) return at;
            // Zeros before the digits, then pairs, fours and eights of them at once.
            uint64_t few = digit << (64 - 8 * count);
            few = few * 2561 >> 8 & 0x00FF00FF00FF00FF;
            few = few * 6553601 >> 16 & 0x0000FFFF0000FFFF;
            few = few * 42949672960001 >> 32;
            *value = *value * kTens[count] + few;
            at += count;
            if (count < 8) return at;
        }
    }
    for (; is_digit(*at); ++at) *value = *value * 10 + static_cast<uint64_t>(*at - '0');
    return at;
}

}  // namespace lanescope::trace_events
