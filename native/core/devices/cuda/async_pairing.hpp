// Records of a lane or block that belong together over others.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace lanescope::cuda {

// The innermost region around each record. Regions and records come lane after lane, regions by begin, records by position.
struct EnclosingRegion {
    std::span<const int64_t> lane_start;   // [lanes + 1], where the regions of each lane begin
    std::span<const uint32_t> begin, end;  // positions of their records; an open region's end is its begin
    std::span<const uint32_t> lane, index;  // of the records
};

// `out` takes the number of a region for each record, -1 for none; `stack` is scratch for the longest lane's regions.
void enclosing(const EnclosingRegion& around, std::span<int64_t> out, std::span<int64_t> stack) noexcept;

struct Event {
    uint64_t key;
    int64_t ts;
    uint32_t order;  // place in its group
    bool is_effect;
};

// The cause of each effect: of the causes of its key within its group that are not later the latest, the last one where
// several share a moment. Group i of records reaches from start[i] to start[i + 1]. `out` takes the record of the cause,
// -1 for none and for causes; `scratch` is as long as the largest group. O(n log n).
void causes(std::span<const int64_t> start, std::span<const uint64_t> key, std::span<const int64_t> ts,
            std::span<const uint8_t> is_effect, std::span<int64_t> out, std::span<Event> scratch) noexcept;

}  // namespace lanescope::cuda
