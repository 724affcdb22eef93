// Slices and instants from the events of tracks, as they come: each track in order of time.
#pragma once
#include <cstdint>
#include <vector>

#include "core/wire/growing.hpp"

namespace lanescope::foreign_perfetto {

// What happens at an event; the first five are the format's own numbers.
enum class EventType : uint8_t { none = 0, begin = 1, end = 2, instant = 3, counter = 4, state = 5, complete = 6 };

// What an event has become: the row and which of these, as one number.
enum class Role : uint8_t { begin = 0, end = 1, instant = 2, lone = 3 };
inline constexpr int64_t kNoPlace = -1;
inline int64_t place_of(size_t row, Role role) { return static_cast<int64_t>(row) * 4 + static_cast<int64_t>(role); }

struct Event {
    int64_t ts = 0;
    int32_t clock = 0;
    int32_t track = 0;
    int32_t name = -1;      // code, -1: none
    int32_t category = -1;  // code, -1: none
    EventType type = EventType::none;
};

struct SliceRows {
    Growing<int64_t> ts;
    Growing<int64_t> dur;  // -1: it has no end
    Growing<int64_t> track;
    Growing<int32_t> name;
    Growing<int32_t> category;  // empty where none has any
};

struct InstantRows {
    Growing<int64_t> ts;
    Growing<int64_t> track;
    Growing<int32_t> name, category;
};

// Ends without a beginning.
struct LoneEnds {
    std::vector<int64_t> ts;
    std::vector<int64_t> track;
};

class Pairs {
public:
    // Take an event; return its place. Where it is earlier than one before it on its track, or on another clock,
    // nothing is done but that `is_disordered`.
    int64_t add(const Event& event);
    void expect(size_t count);
    // No more events come.
    void finish();

    struct Track {
        int64_t first = 0, last = 0;  // times
        int32_t clock = -1;           // -1: it has no events
        int32_t first_name = -1;
        bool has_rows = false;

    private:
        friend class Pairs;
        struct Open {
            int64_t row = 0;
            int64_t crossed = 0;
            bool crosses = false;
        };
        std::vector<Open> open;
    };

    SliceRows slices;
    InstantRows instants;
    LoneEnds lone;
    std::vector<int64_t> crossing;  // slices that overlap another one partially
    std::vector<Track> tracks;      // as far as they have events
    int64_t open = 0;               // slices without an end
    bool is_disordered = false;

private:
    int64_t begin(Track& track, const Event& event, bool stays);
    void close(Track& track, size_t place, int64_t ts);
    size_t match(const Track& track, const Event& end) const;
};

}  // namespace lanescope::foreign_perfetto
