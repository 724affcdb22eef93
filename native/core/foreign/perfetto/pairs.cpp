#include "core/foreign/perfetto/pairs.hpp"

#include <algorithm>

namespace lanescope::foreign_perfetto {
namespace {

// An end is looked for among so many open slices, so that no file takes time without end.
constexpr size_t kMostLooked = 1024;

}  // namespace

size_t Pairs::match_named(const Track& track, const Event& end) const {
    const size_t least = track.open.size() > kMostLooked ? track.open.size() - kMostLooked : 0;
    for (size_t place = track.open.size(); place-- > least;) {
        const auto row = static_cast<size_t>(track.open[place].row);
        const int32_t category = slices.category.empty() ? -1 : slices.category[row];
        if (end.name >= 0 && slices.name[row] >= 0 && slices.name[row] != end.name) continue;
        if (end.category >= 0 && category != end.category) continue;
        return place;
    }
    return kNoOpen;
}

void Pairs::close_below(Track& track, size_t place, int64_t ts) {
    for (size_t above = place + 1; above < track.open.size(); ++above) {
        track.open[above].crosses = true;
        track.open[above].crossed = ts;
    }
    track.open.erase(track.open.begin() + static_cast<ptrdiff_t>(place));
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
