// Reader of the LS2 layout (docs/adr/0004): a file header, then lanes end to end, each with a header of its own.
#pragma once
#include "core/devices/cuda/lane_decoder.hpp"

namespace lanescope::cuda::ls2 {

constexpr unsigned event_bits = 16;
constexpr uint64_t file_header = 16;  // words
constexpr uint64_t lane_header = 8;
// A lane that was never finalized has its count written every so many positions.
constexpr uint64_t count_every = 64;

enum State : uint64_t { unused = 0, running = 1, finalized = 3 };
enum RecordKind : uint64_t { begin, end, instant, counter, async_begin, async_end, flow_out, flow_in };

struct Layout {
    uint64_t lanes = 0;
    uint64_t capacity = 0;      // positions of a lane
    uint64_t record_words = 1;  // words of a position: 1 or 2
    bool ring = false;
    bool cycles = false;  // the clock of the stamps: clock64, not globaltimer

    uint64_t lane_words() const noexcept { return lane_header + capacity * record_words; }
};

// What one lane holds: a row of int64 for each lane. Positions beyond the end of the words are passed over.
struct Lane {
    int64_t state;    // as stored
    int64_t offered;  // positions the kernel wanted; of a lane that was never finalized, as many as are there
    int64_t stored;   // positions to read
    int64_t present;  // of them, as many as the file holds
    int64_t first;    // the oldest of them
    int64_t lost;     // offered - capacity
    int64_t stale;    // words outside the stored positions that are not zero
    int64_t begins;   // records of that kind among the stored ones
    int64_t marks;    // all other readable words, values of counters among them
    int64_t special;  // of them, records of any kind above instant
    int64_t torn;     // 1: the oldest position of the ring holds the value of a counter that was overwritten; left out
};

void scan(std::span<const uint64_t> words, const Layout& layout, std::span<Lane> lanes) noexcept;

// Decode the lanes from `first` on. Every kind above instant comes out as an instant, and so does the value of a counter: its row has
// the stamp of the counter. In a ring that lost something, index 0 of the lane represents all overwritten records.
// `records` is scratch for the longest lane.
void decode(std::span<const uint64_t> words, const Layout& layout, uint64_t first, std::span<const Lane> lanes,
            std::span<Record> records, std::span<Summary> summaries, LaneDecoder& decoder) noexcept;

}  // namespace lanescope::cuda::ls2
