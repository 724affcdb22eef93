// The numbers of the AIE trace format that the fast codecs share. The declared layout, with sources and status of each
// row, is src/lanescope/devices/aie/layout.py; tests hold the two together.
#pragma once
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace lanescope::aie {

inline constexpr size_t kPacketWords = 8;
inline constexpr size_t kPayloadWords = 7;
inline constexpr uint32_t kFillerWord = 0xFEFEFEFE;
inline constexpr int64_t kSyncCycles = 1 << 18;
inline constexpr uint32_t kMaxRepeat = 1023;

// A header is a number, not part of the byte stream: reserved bits are zero, the ones of the whole word are odd.
inline constexpr uint32_t kHeaderReserved = 0x70008FE0;
constexpr bool is_header(uint32_t word) {
    return (word & kHeaderReserved) == 0 && std::popcount(word) % 2 == 1;
}

// F0..F7 at the start of a word is a Start in every mode; nothing else begins like it.
constexpr bool is_start(uint32_t word) { return (word & 0xF8000000) == 0xF0000000; }
constexpr uint32_t mode_of(uint32_t start_word) { return start_word >> 24 & 3; }
constexpr bool is_restart(uint32_t start_word) { return (start_word >> 26 & 1) != 0; }
// Only the event modes put a timer into Start, and with it a second word.
constexpr bool has_timer(uint32_t start_word) { return mode_of(start_word) < 2; }
constexpr int64_t timer_of(uint32_t start_word, uint32_t second) {
    return static_cast<int64_t>(start_word & 0xFFFFFF) << 32 | second;
}

// Mode 0: what the first byte of a frame says.
enum class Frame : uint8_t {
    single0, single1, single2, multiple0, multiple1, multiple2, repeat0, repeat1, stop, start, sync, filler,
    // Not frames: bits that no frame explains, and words of a mode that is not decoded here.
    unknown_code, crosses_word, misaligned, truncated, zero_word, other_mode,
};

struct Code {
    Frame frame;
    uint8_t bits;        // size of the whole frame
    uint8_t value_bits;  // its lowest bits: cycles or repeats; slot or mask lie above them
};

constexpr Code code_of(uint32_t byte) {
    if (byte < 0x80) return {Frame::single0, 8, 4};
    if (byte < 0xA0) return {Frame::single1, 16, 10};
    if (byte < 0xC0) return {Frame::single2, 24, 18};
    if (byte < 0xD0) return {Frame::multiple0, 16, 4};
    if (byte < 0xD4) return {Frame::multiple1, 24, 10};
    if (byte < 0xD8) return {Frame::multiple2, 32, 18};
    if (byte < 0xDC) return {Frame::repeat1, 16, 10};
    if (byte < 0xE0) return {Frame::stop, 32, 18};
    if (byte < 0xF0) return {Frame::repeat0, 8, 4};
    if (byte < 0xF8) return {Frame::start, 64, 56};
    if (byte < 0xFE) return {Frame::unknown_code, 8, 0};
    return byte == 0xFE ? Code{Frame::filler, 8, 0} : Code{Frame::sync, 8, 0};
}

// Each element is made by code_of at once: clang 14 cannot value-initialise Code in a constant expression.
inline constexpr auto kCodes = []<size_t... byte>(std::index_sequence<byte...>) {
    return std::array<Code, sizeof...(byte)>{code_of(byte)...};
}(std::make_index_sequence<256>{});

// Stands for a line of a text file that is no word; not sound in any place (but where every value is: a timer).
inline constexpr uint32_t kPlaceholder = 0xF8F8F8F8;

// Where words lie in the file. Binary files: every 4 bytes; text: where each line begins.
struct Offsets {
    int64_t base = 0;
    std::span<const int64_t> each = {};
    bool is_placeholder(uint32_t word) const { return word == kPlaceholder && !each.empty(); }
    int64_t operator()(size_t word) const {
        return each.empty() ? base + 4 * static_cast<int64_t>(word) : each[word];
    }
};

// How often something happened, and where first.
struct Tally {
    int64_t count = 0;
    int64_t first = 0;
    void add(int64_t offset, int64_t n = 1) {
        if (count == 0) first = offset;
        count += n;
    }
};

}  // namespace lanescope::aie
