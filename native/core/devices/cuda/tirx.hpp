// Reader of the TIRx v1 layout: uint64 words, slot 0 the header, record k of a lane in slot 1 + lane + k * stride.
#pragma once
#include "core/devices/cuda/lane_decoder.hpp"

namespace lanescope::cuda::tirx {

constexpr unsigned event_bits = 10;

// What one pass over the slots behind the header tells.
struct Scan {
    uint64_t used = 0;             // words that are not zero
    uint64_t misplaced = 0;        // of them, words whose lane is not the one of their slot
    uint64_t first_misplaced = 0;  // its slot
    uint64_t last_used = 0;        // slot of the last word that is not zero; 0: none

    // Take in what a pass over slots behind these has found.
    void merge(const Scan& behind) noexcept;
};

// How many words of a lane are not zero, and how many of them are begins, misplaced ones counted in.
struct LaneCount {
    uint32_t used = 0;
    uint32_t begins = 0;
};

// Compare each word with its slot, for a stride that is at least the number of lanes, and count the words of each lane.
// `words` begin with the slot `first` of the buffer, in which a lane 0 has a record. Slots between two rows belong to no
// lane.
Scan scan(std::span<const uint64_t> words, uint64_t first, uint64_t stride, std::span<LaneCount> lanes) noexcept;

// The greatest common divisor of the distances of all words from the first slot of their lane: the stride, if all words
// stand where they should and any lane has two records in a row. 0: no lane has a second record.
uint64_t stride_divisor(std::span<const uint64_t> words) noexcept;

// Where the words of each lane stand: in rows of `stride`, or, where that is unknown, in the lists `slots` (lane after lane,
// lane i from starts[i] to starts[i + 1]).
struct Placement {
    uint64_t lanes = 0;
    uint64_t stride = 0;
    uint64_t first = 0;  // the number that the first lane has in the tags
    std::span<const int64_t> slots;
    std::span<const int64_t> starts;
    // Of each lane, the first positions that earlier launches left, as many for each; empty: no lane has any.
    std::span<const int64_t> cuts;
    bool keeps_earlier = false;     // those positions are decoded too
};

// Count the words of lanes that are listed.
void count(std::span<const uint64_t> words, const Placement& placement, std::span<LaneCount> lanes) noexcept;

// Number of lanes that are read together because they share cache lines.
constexpr uint64_t side_by_side = 8;

// Decode the lanes from `first` to before `last`. `scratch` is side_by_side times as long as the longest lane has
// positions.
void decode(std::span<const uint64_t> words, const Placement& placement, uint64_t first, uint64_t last,
            std::span<uint64_t> scratch, std::span<Summary> summaries, LaneDecoder& decoder) noexcept;

}  // namespace lanescope::cuda::tirx
