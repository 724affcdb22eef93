// Slices from events in any order: by track and time, at equal times by the order of the file.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "core/foreign/perfetto/pairs.hpp"

namespace lanescope::foreign_perfetto {

struct TrackEvents {
    std::span<const int64_t> ts;        // ns, one clock
    std::span<const int32_t> track;     // below `tracks`
    std::span<const uint8_t> type;      // EventType
    std::span<const int32_t> name;      // -1: none
    std::span<const int32_t> category;  // -1: none
    int64_t tracks = 0;
};

// Add the events to `found`, which is empty; `places` has the place of each. Return false where an array is short or a
// track is not below `tracks`.
bool pair_slices(const TrackEvents& events, Pairs& found, std::vector<int64_t>& places);

}  // namespace lanescope::foreign_perfetto
