// Words of the TIRx v1 layout, compared with the slots that a stride gives them: uint64 words, slot 0 the header, record k
// of a lane in slot 1 + lane + k * stride.
#pragma once
#include <cstdint>
#include <span>

namespace lanescope::cuda::tirx {

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

}  // namespace lanescope::cuda::tirx
