#include "core/foreign/perfetto/pairs.hpp"

#include <algorithm>

namespace lanescope::foreign_perfetto {
namespace {

constexpr size_t kNone = ~size_t{0};
// An end is looked for among so many open slices, so that no file takes time without end.
constexpr size_t kMostLooked = 1024;

}  // namespace

// Return the place in the stack of the slice that an end is of: the innermost one whose name and category are not others.
size_t Pairs::match(const Track& track, const Event& end) const {
    if (end.name < 0 && end.category < 0) return track.open.empty() ? kNone : track.open.size() - 1;
    const size_t least = track.open.size() > kMostLooked ? track.open.size() - kMostLooked : 0;
    for (size_t place = track.open.size(); place-- > least;) {
        const auto row = static_cast<size_t>(track.open[place].row);
        const int32_t category = slices.category.empty() ? -1 : slices.category[row];
        if (end.name >= 0 && slices.name[row] >= 0 && slices.name[row] != end.name) continue;
        if (end.category >= 0 && category != end.category) continue;
        return place;
    }
    return kNone;
}

void Pairs::close(Track& track, size_t place, int64_t ts) {
    const Track::Open ended = track.open[place];
    slices.dur[static_cast<size_t>(ended.row)] = ts - slices.ts[static_cast<size_t>(ended.row)];
    --open;
    // What ends at the very moment at which the one around it ended does not cross it.
    if (ended.crosses && ts > ended.crossed) crossing.push_back(ended.row);
    if (place + 1 != track.open.size()) {
        for (size_t above = place + 1; above < track.open.size(); ++above) {
            track.open[above].crosses = true;
            track.open[above].crossed = ts;
        }
        track.open.erase(track.open.begin() + static_cast<ptrdiff_t>(place));
    } else {
        track.open.pop_back();
    }
}

int64_t Pairs::begin(Track& track, const Event& event, bool stays) {
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

int64_t Pairs::add(const Event& event) {
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
            if (place == kNone) {
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

void Pairs::finish() {
    for (Track& track : tracks) {
        for (const Track::Open& left : track.open) {
            if (left.crosses) crossing.push_back(left.row);
        }
        track.open.clear();
    }
}

void Pairs::expect(size_t count) {
    slices.ts.expect(count);
    slices.dur.expect(count);
    slices.track.expect(count);
    slices.name.expect(count);
    slices.category.expect(count);
}

}  // namespace lanescope::foreign_perfetto
