// Slices from the events of tracks: ends are matched with beginnings by time, at equal times by the order of the file.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace lanescope::foreign_perfetto {

struct TrackEvents {
    std::span<const int64_t> ts;        // ns, one clock
    std::span<const int32_t> track;     // below `tracks`
    std::span<const uint8_t> type;      // EventType
    std::span<const int32_t> name;      // -1: none
    std::span<const int32_t> category;  // -1: none
    int64_t tracks = 0;
};

struct Slices {
    std::vector<int64_t> begin;   // event, by track and time
    std::vector<int64_t> end;     // event, -1: none
    std::vector<uint8_t> crosses; // overlaps another one partially
    std::vector<int64_t> last;    // without an end: the last time at which the track has anything
    std::vector<int64_t> instants;
    std::vector<int64_t> unmatched;  // ends without a beginning
};

// Return false where an array is short or a track is not below `tracks`.
bool pair_slices(const TrackEvents& events, Slices& found);

}  // namespace lanescope::foreign_perfetto
