// Mode-0 frames as they lie in the words, and words from frames: the exact inverse.
#pragma once
#include "core/aie/format.hpp"

namespace lanescope::aie {

// One item a frame, in order; the bits of all items cover the words. What is no frame is an item too (Frame).
struct Records {
    std::span<uint32_t> word;
    std::span<uint8_t> bit;  // bits of that word before it, 0 is the most significant one
    std::span<uint8_t> bits;
    std::span<uint8_t> frame;
    std::span<uint64_t> raw;
};

// Split the payload words of one source; needs room for 4 items a word. After a Start of another mode, words are
// single items until the next Start.
size_t read_records(std::span<const uint32_t> words, Records out);

// Lay frames into words: what does not fit in the rest of a word begins a new one after filler. With `aligned` each
// 64-bit Start begins a payload, and the last payload is filled up. Needs room for a word an item, and with `aligned`
// 8 more for each Start and 8 at the end.
size_t pack_records(std::span<const uint64_t> raw, std::span<const uint8_t> bits, bool aligned,
                    std::span<uint32_t> words);

// Run-length event state -> frames, by the rules of the hardware's encoder. Each run is `length` cycles of `mask`.
// With `stop` the last frame is Stop, `idle` cycles after the last run.
size_t encode_runs_bound(std::span<const uint8_t> mask, std::span<const int64_t> length, int64_t idle);
size_t encode_runs(std::span<const uint8_t> mask, std::span<const int64_t> length, bool stop, int64_t idle,
                   std::span<uint64_t> raw, std::span<uint8_t> bits);

}  // namespace lanescope::aie
