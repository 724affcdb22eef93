#include "core/foreign/perfetto/slices.hpp"

#include <algorithm>

namespace lanescope::foreign_perfetto {

bool pair_slices(const TrackEvents& events, Pairs& found, std::vector<int64_t>& places) {
    const size_t n = events.ts.size();
    if (events.track.size() < n || events.type.size() < n || events.name.size() < n || events.category.size() < n) return false;
    if (events.tracks < 0) return false;
    const auto tracks = static_cast<size_t>(events.tracks);
    std::vector<size_t> start(tracks + 1, 0);
    for (size_t i = 0; i < n; ++i) {
        if (events.track[i] < 0 || static_cast<size_t>(events.track[i]) >= tracks) return false;
        ++start[static_cast<size_t>(events.track[i]) + 1];
    }
    for (size_t t = 0; t < tracks; ++t) start[t + 1] += start[t];
    std::vector<int64_t> order(n);
    {
        std::vector<size_t> next(start.begin(), start.end() - 1);
        for (size_t i = 0; i < n; ++i) order[next[static_cast<size_t>(events.track[i])]++] = static_cast<int64_t>(i);
    }
    const auto ts_of = [&](int64_t i) { return events.ts[static_cast<size_t>(i)]; };
    found.expect(n / 2);
    places.assign(n, kNoPlace);
    for (size_t t = 0; t < tracks; ++t) {
        const auto first = order.begin() + static_cast<ptrdiff_t>(start[t]);
        const auto last = order.begin() + static_cast<ptrdiff_t>(start[t + 1]);
        const auto earlier = [&](int64_t a, int64_t b) { return ts_of(a) < ts_of(b); };
        if (!std::is_sorted(first, last, earlier)) std::stable_sort(first, last, earlier);
        for (auto at = first; at != last; ++at) {
            const auto i = static_cast<size_t>(*at);
            places[i] = found.add({events.ts[i], 0, static_cast<int32_t>(t), events.name[i], events.category[i],
                                   static_cast<EventType>(events.type[i])});
        }
    }
    return !found.is_disordered;
}

}  // namespace lanescope::foreign_perfetto
