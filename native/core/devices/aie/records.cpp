#include "core/devices/aie/records.hpp"

#include <algorithm>

namespace lanescope::aie {
namespace {

struct Frames {
    std::span<uint64_t> raw;
    std::span<uint8_t> bits;
    size_t count = 0;

    void put(uint64_t frame, unsigned size) {
        raw[count] = frame;
        bits[count++] = static_cast<uint8_t>(size);
    }
    void event(uint32_t mask, uint64_t idle) {
        const bool is_single = std::has_single_bit(mask);
        const auto id = static_cast<uint64_t>(is_single ? std::countr_zero(mask) : static_cast<int>(mask));
        if (idle < 1 << 4) {
            if (is_single) put(id << 4 | idle, 8);
            else put(0xCull << 12 | id << 4 | idle, 16);
        } else if (idle < 1 << 10) {
            if (is_single) put(0x4ull << 13 | id << 10 | idle, 16);
            else put(0x34ull << 18 | id << 10 | idle, 24);
        } else {
            if (is_single) put(0x5ull << 21 | id << 18 | idle, 24);
            else put(0x35ull << 26 | id << 18 | idle, 32);
        }
    }
    void repeat(int64_t n) {
        for (; n > 15; n -= std::min<int64_t>(n, kMaxRepeat)) {
            put(0x36ull << 10 | static_cast<uint64_t>(std::min<int64_t>(n, kMaxRepeat)), 16);
        }
        if (n > 0) put(0xEull << 4 | static_cast<uint64_t>(n), 8);
    }
    uint64_t sync(int64_t idle) {
        for (; idle >= kSyncCycles; idle -= kSyncCycles) put(0xFF, 8);
        return static_cast<uint64_t>(idle);
    }
};

}  // namespace

size_t read_records(std::span<const uint32_t> words, uint32_t mode, Records out) {
    size_t count = 0;
    const auto put = [&](size_t word, unsigned bit, unsigned bits, Frame frame, uint64_t raw) {
        out.word[count] = static_cast<uint32_t>(word);
        out.bit[count] = static_cast<uint8_t>(bit);
        out.bits[count] = static_cast<uint8_t>(bits);
        out.frame[count] = static_cast<uint8_t>(frame);
        out.raw[count++] = raw;
    };
    for (size_t i = 0; i < words.size(); ++i) {
        uint32_t word = words[i];
        if (is_start(word)) {
            mode = mode_of(word);
            if (!has_timer(word)) {
                put(i, 0, 32, Frame::start, word);
            } else if (i + 1 < words.size()) {
                put(i, 0, 64, Frame::start, static_cast<uint64_t>(word) << 32 | words[i + 1]);
                ++i;
            } else {
                put(i, 0, 32, Frame::truncated, word);
            }
            continue;
        }
        if (mode == kReservedMode || (word == 0 && mode != kExecution)) {
            put(i, 0, 32, mode == kReservedMode ? Frame::other_mode : Frame::zero_word, word);
            continue;
        }
        const auto& codes = codes_of(mode);
        for (unsigned left = 32; left > 0;) {
            const Code& code = codes[word >> 24];
            if (code.frame == Frame::unknown_code || code.bits > left) {
                const Frame problem = code.frame == Frame::unknown_code ? Frame::unknown_code
                                      : code.bits > 32                  ? Frame::misaligned
                                                                        : Frame::crosses_word;
                put(i, 32 - left, left, problem, word >> (32 - left));
                break;
            }
            put(i, 32 - left, code.bits, code.frame, word >> (32 - code.bits));
            left -= code.bits;
            if (left != 0) word <<= code.bits;
        }
    }
    return count;
}

size_t pack_records(std::span<const uint64_t> raw, std::span<const uint8_t> bits, uint32_t mode, bool aligned,
                    std::span<uint32_t> words) {
    size_t count = 0;
    uint32_t word = 0;
    unsigned used = 0;
    uint32_t padding = mode == kExecution ? kFlowFillerWord : kFillerWord;
    const auto flush = [&] {
        if (used == 0) return;
        words[count++] = used == 32 ? word : word << (32 - used) | padding >> used;
        word = used = 0;
    };
    const auto align = [&] {
        flush();
        while (count % kPayloadWords != 0) words[count++] = padding;
    };
    for (size_t i = 0; i < raw.size(); ++i) {
        const unsigned size = bits[i];
        const auto first = static_cast<uint32_t>(size == 64 ? raw[i] >> 32 : raw[i]);
        if (size >= 32 && is_start(first)) {
            aligned ? align() : flush();
            padding = mode_of(first) == kExecution ? kFlowFillerWord : kFillerWord;
            words[count++] = first;
            if (size == 64) words[count++] = static_cast<uint32_t>(raw[i]);
            continue;
        }
        if (used + size > 32) flush();
        word = size == 32 ? first : word << size | first;
        used += size;
    }
    aligned ? align() : flush();
    return count;
}

size_t encode_runs_bound(std::span<const uint8_t> mask, std::span<const int64_t> length, int64_t idle) {
    int64_t bound = 2 + idle / kSyncCycles;
    for (size_t i = 0; i < mask.size(); ++i) {
        bound += mask[i] == 0 ? 1 + length[i] / kSyncCycles : 4 + length[i] / kMaxRepeat;
    }
    return static_cast<size_t>(bound);
}

size_t encode_runs(std::span<const uint8_t> mask, std::span<const int64_t> length, bool stop, int64_t last_idle,
                   std::span<uint64_t> raw, std::span<uint8_t> bits) {
    Frames out{raw, bits};
    int64_t idle = 0;
    int64_t repeats = 0;
    uint32_t last = 0;  // mask of the last frame, if it had no idle cycles: then a Repeat says that the state goes on
    for (size_t i = 0; i < mask.size(); ++i) {
        int64_t rest = length[i];
        if (mask[i] == 0) idle += rest;
        if (mask[i] == 0 || rest == 0) continue;
        if (idle != 0 || mask[i] != last) {
            out.repeat(repeats);
            repeats = 0;
            const uint64_t cycles = out.sync(idle);
            out.event(mask[i], cycles);
            idle = 0;
            --rest;
            // A Repeat now would repeat the idle cycles as well.
            last = cycles == 0 || rest > 0 ? mask[i] : 0;
            if (cycles != 0 && rest > 0) {
                out.event(mask[i], 0);
                --rest;
            }
        }
        repeats += rest;
    }
    out.repeat(repeats);
    if (stop) out.put(0x37ull << 26 | out.sync(idle + last_idle), 32);
    return out.count;
}

}  // namespace lanescope::aie
