// Characters and texts of JSON in a window that zeros follow.
#pragma once
#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace lanescope::foreign {

inline bool is_space(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }
inline bool is_digit(char c) { return static_cast<unsigned char>(c - '0') < 10; }

// The first quote, backslash or NUL at or behind a place; there is one, as NULs follow every window.
inline const char* string_stop(const char* at) {
#ifdef __SSE2__
    const __m128i quote = _mm_set1_epi8('"'), backslash = _mm_set1_epi8('\\'), zero = _mm_setzero_si128();
    while (true) {
        const __m128i block = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
        const __m128i found =
            _mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(block, quote), _mm_cmpeq_epi8(block, backslash)), _mm_cmpeq_epi8(block, zero));
        const int mask = _mm_movemask_epi8(found);
        if (mask != 0) return at + __builtin_ctz(static_cast<unsigned>(mask));
        at += 16;
    }
#else
    while (*at != '"' && *at != '\\' && *at != '\0') ++at;
    return at;
#endif
}

// A hexadecimal number of at most 64 bits, with or without 0x before it.
inline bool hexadecimal(std::string_view text, uint64_t* out) {
    if (text.size() > 2 && text[0] == '0' && (text[1] | 0x20) == 'x') text.remove_prefix(2);
    const auto read = std::from_chars(text.data(), text.data() + text.size(), *out, 16);
    return !text.empty() && text[0] != '-' && read.ec == std::errc() && read.ptr == text.data() + text.size();
}

// A key with its escapes resolved, as far as they are of ASCII: others are not looked for.
inline std::string unescaped(std::string_view text) {
    std::string out;
    for (size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '\\' || i + 1 >= text.size()) {
            out += text[i];
            continue;
        }
        const char c = text[++i];
        uint64_t value = 0;
        if (c == 'u' && i + 4 < text.size() && hexadecimal(text.substr(i + 1, 4), &value) && value < 0x80) {
            out += static_cast<char>(value);
            i += 4;
        } else {
            out += '\\';
            out += c;
        }
    }
    return out;
}

}  // namespace lanescope::foreign
