// Frames as they lie in the words, and words from frames: the exact inverse.
#pragma once
#include "core/devices/aie/frame_format.hpp"

namespace lanescope::aie {

// One item per frame, in order; the bits of all items cover the words. Other bits are items too (Frame).
struct Records {
    std::span<uint32_t> word;
    std::span<uint8_t> bit;  // bits of that word before it, 0 is the most significant one
    std::span<uint8_t> bits;
    std::span<uint8_t> frame;
    std::span<uint64_t> raw;
};

// Split the payload words of one source; needs room for 8 items a word. `mode` holds until the first Start says another;
// in the reserved mode words are single items.
size_t read_records(std::span<const uint32_t> words, uint32_t mode, Records out);

// Lay frames into words: what does not fit in the rest of a word begins a new one after the mode's padding. A Start begins
// a word. With `aligned` it begins a payload, and the last payload is filled up. Needs room for a word an item, and 9 more
// for each Start (frames of 32 and 64 bits may be one) and at the end.
size_t pack_records(std::span<const uint64_t> raw, std::span<const uint8_t> bits, uint32_t mode, bool aligned,
                    std::span<uint32_t> words);

// Run-length event state -> frames, by the rules of the hardware's encoder. Each run is `length` cycles of `mask`.
// With `stop` the last frame is Stop, `idle` cycles after the last run.
size_t encode_runs_bound(std::span<const uint8_t> mask, std::span<const int64_t> length, int64_t idle);
size_t encode_runs(std::span<const uint8_t> mask, std::span<const int64_t> length, bool stop, int64_t idle,
                   std::span<uint64_t> raw, std::span<uint8_t> bits);

}  // namespace lanescope::aie
