// Characters of JSON, eight at a time.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace lanescope::ascend {

// Eight characters at once, the first one in the lowest byte. Of a mask of bytes only the lowest set one is certain: what
// is found there borrows from those above.
static_assert(std::endian::native == std::endian::little);
inline constexpr ptrdiff_t kWord = 8;
inline constexpr uint64_t kOnes = 0x0101010101010101, kHigh = 0x8080808080808080;

inline uint64_t word_at(const char* at) {
    uint64_t word;
    std::memcpy(&word, at, sizeof word);
    return word;
}

inline uint64_t zeros(uint64_t word) { return (word - kOnes) & ~word & kHigh; }

// How many characters of a word precede the lowest byte that a mask marks.
inline int preceding(uint64_t mask) { return mask == 0 ? static_cast<int>(kWord) : std::countr_zero(mask) / 8; }

// Characters that a string may contain as they are.
inline int plain_characters(uint64_t word) {
    const uint64_t control = (word - kOnes * 0x20) & ~word & kHigh;
    return preceding(zeros(word ^ kOnes * '"') | zeros(word ^ kOnes * '\\') | control);
}

// Digits become their values; exact for every byte.
inline int digits_first(uint64_t* word) {
    *word ^= kOnes * '0';
    return preceding((((*word & ~kHigh) + kOnes * 0x76) | *word) & kHigh);
}

// The number that the first digits of a word make, of which there is one at least.
inline uint64_t number_of(uint64_t digits, int count) {
    uint64_t value = digits << (64 - 8 * count);  // as many digits 0 in front
    value = (value * 10) + (value >> 8);
    value = (value & 0x000000FF000000FF) * 0x000F424000000064 + ((value >> 16) & 0x000000FF000000FF) * 0x0000271000000001;
    return value >> 32;
}

inline constexpr uint64_t kPowers[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};

// Whether the next characters are these; there are as many.
inline bool is_same(const char* at, std::string_view bytes) {
    const char* other = bytes.data();
    const size_t size = bytes.size();
    if (size < kWord) return std::memcmp(at, other, size) == 0;
    if (word_at(at) != word_at(other)) return false;
    if (size > 64) return std::memcmp(at, other, size) == 0;
    for (size_t i = kWord; i + kWord < size; i += kWord) {
        if (word_at(at + i) != word_at(other + i)) return false;
    }
    return word_at(at + size - kWord) == word_at(other + size - kWord);
}

// The number of at most 15 digits that comes next; where it ends, null for anything else.
inline const char* plain_number(const char* at, const char* end, uint64_t* out) {
    if (end - at <= 2 * kWord) return nullptr;
    const char first = *at;
    const auto digit = static_cast<unsigned char>(first - '0');
    if (digit < 10 && (at[1] == ',' || at[1] == ']' || at[1] == '}')) {  // most counts have one digit
        *out = digit;
        return at + 1;
    }
    uint64_t digits = word_at(at);
    int count = digits_first(&digits);
    if (count == 0) return nullptr;
    uint64_t value = number_of(digits, count);
    if (count > 1 && first == '0') return nullptr;
    at += count;
    if (count == kWord) {
        digits = word_at(at);
        count = digits_first(&digits);
        if (count == kWord) return nullptr;
        if (count != 0) value = value * kPowers[count] + number_of(digits, count);
        at += count;
    }
    if (*at == '.' || (*at | 0x20) == 'e') return nullptr;
    *out = value;
    return at;
}

}  // namespace lanescope::ascend
