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
    static constexpr size_t kNoOpen = ~size_t{0};

    int64_t begin(Track& track, const Event& event, bool stays);
    void close(Track& track, size_t place, int64_t ts);
    void close_below(Track& track, size_t place, int64_t ts);  // slices that began later are open
    // Return the place in the stack of the slice that an end is of: the innermost one whose name and category are not
    // others.
    size_t match(const Track& track, const Event& end) const {
        if (end.name >= 0 || end.category >= 0) return match_named(track, end);
        return track.open.empty() ? kNoOpen : track.open.size() - 1;
    }
    size_t match_named(const Track& track, const Event& end) const;
};

inline void Pairs::close(Track& track, size_t place, int64_t ts) {
    const Track::Open ended = track.open[place];
    slices.dur[static_cast<size_t>(ended.row)] = ts - slices.ts[static_cast<size_t>(ended.row)];
    --open;
    // What ends at the very moment at which the one around it ended does not cross it.
    if (ended.crosses && ts > ended.crossed) crossing.push_back(ended.row);
    if (place + 1 != track.open.size()) return close_below(track, place, ts);
    track.open.pop_back();
}


inline int64_t Pairs::begin(Track& track, const Event& event, bool stays) {
    const size_t row = slices.ts.size();
    if (slices.ts.is_full()) [[unlikely]] {
        slices.ts.grow();
        slices.dur.grow(slices.ts.room());
        slices.track.grow(slices.ts.room());
        slices.name.grow(slices.ts.room());
    }
    slices.ts.push_within(event.ts);
    slices.dur.push_within(-1);
    slices.track.push_within(event.track);
    slices.name.push_within(event.name);
    if (event.category >= 0 || !slices.category.empty()) {
        slices.category.fill_up(row, -1);
        slices.category.push_back(event.category);
    }
    if (stays) track.open.push_back({static_cast<int64_t>(row), 0, false});
    ++open;
    track.has_rows = true;
    return place_of(row, Role::begin);
}

inline int64_t Pairs::add(const Event& event) {
    const auto number = static_cast<size_t>(event.track);
    if (number >= tracks.size()) [[unlikely]] tracks.resize(number + 1);
    Track& track = tracks[number];
    if (track.clock != event.clock || event.ts < track.last) [[unlikely]] {
        if (track.clock >= 0) {
            is_disordered = true;
            return kNoPlace;
        }
        track.clock = event.clock;
        track.first = event.ts;
    }
    track.last = event.ts;
    if (track.first_name < 0) track.first_name = event.name;
    switch (event.type) {
        case EventType::begin: return begin(track, event, true);
        case EventType::complete: return begin(track, event, false);
        case EventType::instant: {
            const size_t row = instants.ts.size();
            instants.ts.push_back(event.ts);
            instants.track.push_back(event.track);
            instants.name.push_back(event.name);
            instants.category.push_back(event.category);
            track.has_rows = true;
            return place_of(row, Role::instant);
        }
        case EventType::state: {  // ends the state before; one without a name begins none
            int64_t place = kNoPlace;
            if (!track.open.empty()) {
                place = place_of(static_cast<size_t>(track.open.back().row), Role::end);
                close(track, track.open.size() - 1, event.ts);
            }
            return event.name >= 0 ? begin(track, event, true) : place;
        }
        case EventType::end: {
            const size_t place = match(track, event);
            if (place == kNoOpen) {
                lone.ts.push_back(event.ts);
                lone.track.push_back(event.track);
                return place_of(lone.ts.size() - 1, Role::lone);
            }
            const auto row = static_cast<size_t>(track.open[place].row);
            close(track, place, event.ts);
            return place_of(row, Role::end);
        }
        default: return kNoPlace;
    }
}

}  // namespace lanescope::foreign_perfetto
