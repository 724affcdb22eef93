#include "core/foreign/perfetto/slices.hpp"

#include <algorithm>

#include "core/foreign/perfetto/reader.hpp"

namespace lanescope::foreign_perfetto {
namespace {

constexpr size_t kNone = ~size_t{0};
// An end is looked for among so many open slices, so that no file takes time without end.
constexpr size_t kMostLooked = 1024;

// Return the place in the stack of the slice that an end is of: the innermost one whose name and category are not others.
size_t match(const TrackEvents& events, const std::vector<int64_t>& begin, const std::vector<size_t>& open, size_t end) {
    const int32_t name = events.name[end], category = events.category[end];
    if (name < 0 && category < 0) return open.empty() ? kNone : open.size() - 1;
    const size_t least = open.size() > kMostLooked ? open.size() - kMostLooked : 0;
    for (size_t place = open.size(); place-- > least;) {
        const auto i = static_cast<size_t>(begin[open[place]]);
        if (name >= 0 && events.name[i] >= 0 && events.name[i] != name) continue;
        if (category >= 0 && events.category[i] != category) continue;
        return place;
    }
    return kNone;
}

}  // namespace

bool pair_slices(const TrackEvents& events, Slices& found) {
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
    std::vector<size_t> open;
    for (size_t t = 0; t < tracks; ++t) {
        const auto first = order.begin() + static_cast<ptrdiff_t>(start[t]);
        const auto last = order.begin() + static_cast<ptrdiff_t>(start[t + 1]);
        const auto earlier = [&](int64_t a, int64_t b) { return ts_of(a) < ts_of(b); };
        if (!std::is_sorted(first, last, earlier)) std::stable_sort(first, last, earlier);
        open.clear();
        const size_t from = found.begin.size();
        for (auto at = first; at != last; ++at) {
            const auto i = static_cast<size_t>(*at);
            const auto type = static_cast<EventType>(events.type[i]);
            const auto push = [&](bool stays) {
                if (stays) open.push_back(found.begin.size());
                found.begin.push_back(*at);
                found.end.push_back(-1);
                found.crosses.push_back(0);
                found.last.push_back(0);
            };
            switch (type) {
                case EventType::begin: push(true); break;
                case EventType::complete: push(false); break;
                case EventType::instant: found.instants.push_back(*at); break;
                case EventType::state:  // ends the state before; one without a name begins none
                    if (!open.empty()) {
                        found.end[open.back()] = *at;
                        open.pop_back();
                    }
                    if (events.name[i] >= 0) push(true);
                    break;
                case EventType::end: {
                    const size_t place = match(events, found.begin, open, i);
                    if (place == kNone) {
                        found.unmatched.push_back(*at);
                        break;
                    }
                    found.end[open[place]] = *at;
                    for (size_t above = place + 1; above < open.size(); ++above) {
                        found.crosses[open[above]] = 1;
                        found.last[open[above]] = ts_of(*at);
                    }
                    open.erase(open.begin() + static_cast<ptrdiff_t>(place));
                    break;
                }
                default: break;
            }
        }
        if (first == last) continue;
        const int64_t latest = ts_of(*(last - 1));
        for (size_t s = from; s < found.begin.size(); ++s) {
            // What ends at the very moment at which the one around it ended does not cross it.
            if (found.crosses[s] != 0 && found.end[s] >= 0 && ts_of(found.end[s]) <= found.last[s]) found.crosses[s] = 0;
            found.last[s] = latest;
        }
    }
    return true;
}

}  // namespace lanescope::foreign_perfetto
