// The numbers of the AIE trace format that the fast codecs share. The declared layout, with sources and status of each
// row, is src/lanescope/devices/aie/formats/layout.py; tests hold the two together.
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
inline constexpr uint32_t kFlowFillerWord = 0x22222222;
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

enum Mode : uint32_t { kEventTime, kEventPc, kExecution, kReservedMode };

// What the first byte of a frame says, or the first half of it in mode 2.
enum class Frame : uint8_t {
    // Mode 0, and what all modes share.
    single0, single1, single2, multiple0, multiple1, multiple2, repeat0, repeat1, stop, start, sync, padding,
    // Modes 1 and 2. The padding of mode 2 have names of their own.
    event_pc, not_taken, taken, loop, new_pc, filler0, filler1,
    // Not frames: bits that no frame explains, and words of a mode that is not decoded here.
    unknown_code, crosses_word, misaligned, truncated, zero_word, other_mode,
};

// Start in mode 2.
inline constexpr uint32_t kFlowReserved = 0xFFC000;
inline constexpr uint32_t kPcOfStart = 0x3FFF;

// What a row of mode 2 says.
enum class FlowKind : uint8_t { start, restart, new_pc, taken, not_taken, loop, stop };

struct alignas(32) Code {
    Frame frame;
    uint8_t bits;        // size of the whole frame
    uint8_t value_bits;  // its lowest bits: cycles or repeats; slot or mask lie above them
    // For code without branches.
    bool is_common = frame <= Frame::repeat1 || (frame >= Frame::event_pc && frame <= Frame::filler0);  // not a rare one
    uint8_t shift = bits <= 32 ? 32 - bits : 0;  // from the most significant bits of a word to the lowest
    uint8_t single = 0;                          // mask of the one slot that the first byte names
    uint8_t multiple = frame >= Frame::multiple0 && frame <= Frame::multiple2 ? 0xFF : 0;
    uint8_t is_frame = frame == Frame::padding || frame == Frame::filler0 ? 0 : 1;
    uint8_t is_published = 0;  // mode 2: published but never seen in a capture; the status in the declared layout
    FlowKind kind = frame == Frame::taken     ? FlowKind::taken
                  : frame == Frame::not_taken ? FlowKind::not_taken
                  : frame == Frame::new_pc    ? FlowKind::new_pc
                                              : FlowKind::loop;
    uint32_t value_mask = value_bits < 32 ? (1u << value_bits) - 1 : 0;
    // All ones or zero.
    uint32_t is_repeat = frame == Frame::repeat0 || frame == Frame::repeat1 ? ~0u : 0;
    uint32_t is_row = frame >= Frame::not_taken && frame <= Frame::new_pc ? ~0u : 0;      // mode 2
    uint32_t is_target = frame == Frame::loop || frame == Frame::new_pc ? ~0u : 0;        // of them, those that are no atoms
};

static_assert(sizeof(Code) == 32);

constexpr Code code_of(uint32_t byte) {
    const auto slot = [](uint32_t number) { return static_cast<uint8_t>(1u << (number & 7)); };
    if (byte < 0x80) return {.frame = Frame::single0, .bits = 8, .value_bits = 4, .single = slot(byte >> 4)};
    if (byte < 0xA0) return {.frame = Frame::single1, .bits = 16, .value_bits = 10, .single = slot(byte >> 2)};
    if (byte < 0xC0) return {.frame = Frame::single2, .bits = 24, .value_bits = 18, .single = slot(byte >> 2)};
    if (byte < 0xD0) return {.frame = Frame::multiple0, .bits = 16, .value_bits = 4};
    if (byte < 0xD4) return {.frame = Frame::multiple1, .bits = 24, .value_bits = 10};
    if (byte < 0xD8) return {.frame = Frame::multiple2, .bits = 32, .value_bits = 18};
    if (byte < 0xDC) return {.frame = Frame::repeat1, .bits = 16, .value_bits = 10};
    if (byte < 0xE0) return {.frame = Frame::stop, .bits = 32, .value_bits = 18};
    if (byte < 0xF0) return {.frame = Frame::repeat0, .bits = 8, .value_bits = 4};
    if (byte < 0xF8) return {.frame = Frame::start, .bits = 64, .value_bits = 56};
    if (byte < 0xFE) return {.frame = Frame::unknown_code, .bits = 8, .value_bits = 0};
    return {.frame = byte == 0xFE ? Frame::padding : Frame::sync, .bits = 8, .value_bits = 0};
}

// Each element is made by code_of at once: clang 14 cannot value-initialise Code in a constant expression.
constexpr auto kCodes = []<size_t... byte>(std::index_sequence<byte...>) {
    return std::array<Code, sizeof...(byte)>{code_of(byte)...};
}(std::make_index_sequence<256>{});

// Mode 1: one frame for events, else what mode 0 has too.
constexpr Code pc_code_of(uint32_t byte) {
    const Code code = code_of(byte);
    if (byte >= 0xC4 && byte < 0xC8) return {.frame = Frame::event_pc, .bits = 32, .value_bits = 18};
    if (code.frame < Frame::repeat0) return {.frame = Frame::unknown_code, .bits = 8, .value_bits = 0};
    return code;
}

// Mode 2: what the first four bits say, and beyond 1100 the first eight.
constexpr Code flow_code_of(uint32_t byte) {
    if (byte < 0x10) return {.frame = Frame::not_taken, .bits = 4, .value_bits = 0};
    if (byte < 0x20) return {.frame = Frame::taken, .bits = 4, .value_bits = 0};
    if (byte < 0x30) return {.frame = Frame::filler0, .bits = 4, .value_bits = 0};
    if (byte >= 0x40 && byte < 0x60) return {.frame = Frame::loop, .bits = 32, .value_bits = 29, .is_published = 1};
    if (byte >= 0x80 && byte < 0xC0) return {.frame = Frame::new_pc, .bits = 16, .value_bits = 14};
    if (byte < 0xD8) return {.frame = Frame::unknown_code, .bits = 4, .value_bits = 0};
    const Code code = code_of(byte);
    if (code.frame == Frame::start) return {.frame = Frame::start, .bits = 32, .value_bits = 24};
    if (code.frame == Frame::padding) return {.frame = Frame::filler1, .bits = 8, .value_bits = 0, .is_published = 1};
    if (code.frame == Frame::unknown_code) return code;
    return {.frame = code.frame, .bits = code.bits, .value_bits = code.value_bits, .is_published = 1};
}

constexpr auto kPcCodes = []<size_t... byte>(std::index_sequence<byte...>) {
    return std::array<Code, sizeof...(byte)>{pc_code_of(byte)...};
}(std::make_index_sequence<256>{});
constexpr auto kFlowCodes = []<size_t... byte>(std::index_sequence<byte...>) {
    return std::array<Code, sizeof...(byte)>{flow_code_of(byte)...};
}(std::make_index_sequence<256>{});

constexpr const std::array<Code, 256>& codes_of(uint32_t mode) {
    return mode == kEventTime ? kCodes : mode == kEventPc ? kPcCodes : kFlowCodes;
}
constexpr bool is_filler_word(uint32_t word, uint32_t mode) {
    return word == kFillerWord || (mode == kExecution && word == kFlowFillerWord);
}

// Replaces a line of a text file that is not a word; invalid everywhere except in a timer, where every value is valid.
inline constexpr uint32_t kPlaceholder = 0xF8F8F8F8;

// Compilers like to turn a number that is 0 or 1 back into a branch, which no processor could guess here.
inline void keep_branchless([[maybe_unused]] uint64_t& value) {
#if defined(__GNUC__)
    asm("" : "+r"(value));
#endif
}

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
