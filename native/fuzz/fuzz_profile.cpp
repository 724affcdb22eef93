// Any rows on any lanes: the sums are those of plain loops, and the same however the rows are cut.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "core/analysis/check/profile.hpp"
#include "record_mutator.hpp"
#include "require.hpp"

LANESCOPE_FUZZ_RECORDS(0, 8)

using lanescope::fuzz::require;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace lanescope::check;
    constexpr size_t kBytes = 8;
    const int32_t shapes[] = {0, 0, 1, 2};
    const size_t n = std::min<size_t>(size / kBytes, 400);
    std::vector<int64_t> track(n), start(n), length(n);
    std::vector<uint8_t> known(n);
    std::vector<int32_t> name(n);
    std::vector<size_t> cuts{0};
    int64_t time = 0;
    for (size_t i = 0; i < n; ++i, data += kBytes) {
        track[i] = data[0] % 6 - 1;
        time += data[1] % 8 - (data[1] > 250 ? 9 : 0);
        start[i] = time;
        length[i] = data[2] % 32 - (data[2] == 255 ? 40 : 0);
        // Now and then anything at all.
        if (data[3] % 64 == 1) std::memcpy(&start[i], data, kBytes);
        if (data[3] % 64 == 2) std::memcpy(&length[i], data, kBytes);
        known[i] = data[4] % 8 != 0;
        name[i] = data[5] % 4;
        if (data[6] % 16 == 0) cuts.push_back(i);
    }
    cuts.push_back(n);
    const auto add = [&](Profile& profile, size_t first, size_t last) {
        const auto part = [&](const auto& column) { return std::span(column).subspan(first, last - first); };
        profile.slices({part(track), part(start), {part(length), part(known)}, {}, part(name), {}});
        profile.instants(part(track), part(start));
    };
    Profile whole, parts;
    whole.add_lanes(shapes);
    parts.add_lanes(shapes);
    add(whole, 0, n);
    for (size_t i = 0; i + 1 < cuts.size(); ++i) add(parts, cuts[i], cuts[i + 1]);
    require(whole.step() == parts.step() && whole.repeated().size() == parts.repeated().size());
    for (size_t lane = 0; lane < whole.lanes(); ++lane) {
        const LaneProfile &one = whole.lane(lane), &other = parts.lane(lane);
        int64_t count = 0, closed = 0, first = LaneProfile::kHighest;
        for (size_t i = 0; i < n; ++i) {
            if (track[i] != static_cast<int64_t>(lane)) continue;
            ++count;
            closed += known[i];
            first = std::min(first, start[i]);
        }
        require(one.count == count && one.closed == closed && one.start == first && one.instants == count);
        require(one.hash == other.hash && one.end == other.end && one.is_ordered == other.is_ordered);
        require(one.starts == other.starts && one.distinct == other.distinct && one.run == other.run);
        for (size_t i = 0; i < kGaps; ++i) {
            require(one.gaps[i].start == other.gaps[i].start && one.gaps[i].end == other.gaps[i].end);
            require(one.gaps[i].start <= one.gaps[i].end);
        }
    }
    int64_t paired = 0;
    for (const auto& pair : whole.pairs()) paired += pair.count;
    int64_t counted = 0;
    for (size_t lane = 0; lane < whole.lanes(); ++lane) counted += whole.lane(lane).count;
    require(paired == counted && whole.pairs().size() == parts.pairs().size());
    for (const auto& group : whole.groups()) require(group.longest.size() <= kLongest);
    return 0;
}
