// Asynchronous regions: which end belongs to which start, in one lane or over the lanes of a block.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace lanescope::cuda {

// Starts and ends of asynchronous regions, block after block and lane after lane, those of a lane in write order.
struct RegionRecords {
    std::span<const int64_t> start;  // records of block i: from start[i] to start[i + 1]
    std::span<const uint64_t> key;   // what a start and its end have in common
    std::span<const int64_t> ts;     // of one clock within a block
    std::span<const uint32_t> lane;
    std::span<const uint32_t> launch;
    std::span<const uint8_t> is_end;
    std::span<const uint8_t> across;  // 1: the end may be in another lane of the block than the start
};

struct RegionRules {
    bool is_open_once;  // a lane has a key open once: a further start of it starts nothing
    bool starts_first;  // of records of two lanes at one time the start is the earlier one; else the lower lane's record
};

struct RegionEvent {
    uint64_t key;
    int64_t ts;      // never less than that of the record before it in its lane
    uint32_t owner;  // the lane, if nothing else may end it
    uint32_t lane;   // counted from the first of the block
    uint32_t order;  // place in its block
    uint32_t next;   // the next open start of the lane, or the next end that waits for a start at its time
    bool is_end;
    bool is_open;
};

constexpr int64_t no_partner = -1, repeated_start = -2;

// Pair starts and ends. An end takes the oldest open start of its own lane; where there is none and it may, the oldest one
// of its block. Where that leaves an end without a start, and a lane may have a key open more than once, no end takes a
// start that an end of its own lane closes.
// `partner` takes the number of the other record, or one of the constants above; `is_ambiguous` takes 1 for
// starts where another start could have been the one. `events` is as long as the largest block has records; `first` and
// `last` as the widest one has lanes. O(n log n).
void pair_regions(const RegionRecords& records, const RegionRules& rules, std::span<int64_t> partner,
                  std::span<uint8_t> is_ambiguous, std::span<RegionEvent> events, std::span<uint32_t> first,
                  std::span<uint32_t> last) noexcept;

}  // namespace lanescope::cuda
