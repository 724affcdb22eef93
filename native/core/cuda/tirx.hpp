// Reader of the TIRx v1 layout: uint64 words, slot 0 the header, record k of a lane in slot 1 + lane + k * stride.
#pragma once
#include <vector>

#include "core/cuda/lanes.hpp"

namespace lanescope::cuda::tirx {

constexpr unsigned event_bits = 10;

// What one pass over the slots behind the header tells.
struct Scan {
    uint64_t used = 0;        // words that are not zero
    uint64_t kinds[4] = {};   // of them, by kind
    uint64_t misplaced = 0;   // of them, words whose lane is not the one of their slot
    uint64_t first_misplaced = 0;  // its slot
    uint64_t last_used = 0;        // slot of the last word that is not zero; 0: none
};

// Compare each word with its slot, for a stride that is at least `lanes`. Slots between two rows belong to no lane.
Scan scan(std::span<const uint64_t> words, uint64_t lanes, uint64_t stride) noexcept;

// The greatest common divisor of the distances of all words from the first slot of their lane: the stride, if all words
// stand where they should and any lane has two records in a row. 0: no lane has a second record.
uint64_t stride_divisor(std::span<const uint64_t> words) noexcept;

// Where the words of each lane stand: by the stride, or, where that is unknown, in the lists `slots` (lane after lane,
// lane i from starts[i] to starts[i + 1]).
struct Placement {
    uint64_t lanes = 0;
    uint64_t stride = 0;
    std::span<const int64_t> slots;
    std::span<const int64_t> starts;
};

// Share the rows out to parts of the lanes, those of part i from lane[i] to lane[i + 1]: one pass over the words.
std::vector<Share> shares(std::span<const uint64_t> words, const Placement& placement, std::span<const uint64_t> lane);

// Decode the lanes from `first` to before `last`. `records` is scratch for the longest lane.
void decode(std::span<const uint64_t> words, const Placement& placement, uint64_t first, uint64_t last,
            std::span<Record> records, std::span<Summary> summaries, LaneDecoder& decoder) noexcept;

}  // namespace lanescope::cuda::tirx
