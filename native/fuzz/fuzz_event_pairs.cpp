// Any begins, ends and points of time on any lanes: pairs, and the slices around points, are those of plain searches.
#include <cstdlib>
#include <limits>
#include <vector>

#include "core/foreign/event_pairs.hpp"
#include "record_mutator.hpp"
#include "require.hpp"

LANESCOPE_FUZZ_RECORDS(1, 4)

using lanescope::fuzz::require;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace lanescope::foreign;
    if (size < 1) return 0;
    const size_t lanes = 1 + data[0] % 4, n = std::min<size_t>((size - 1) / 4, 200);
    std::vector<int32_t> lane(n), name(n);
    std::vector<uint8_t> is_end(n), crosses(n), expected_crosses(n);
    std::vector<int64_t> partner(n), expected(n, -1);
    bool is_known = true;
    for (size_t i = 0; i < n; ++i) {
        const uint8_t* item = data + 1 + 4 * i;
        lane[i] = item[0] == 255 ? -1 : static_cast<int32_t>(item[0] % (lanes + (item[0] > 250)));
        name[i] = static_cast<int32_t>(item[1] % 4) - 1;
        is_end[i] = item[2] & 1;
        is_known = is_known && static_cast<size_t>(lane[i]) < lanes;
    }
    require(match_stacks(lane, name, is_end, lanes, partner, crosses) == is_known);
    for (size_t i = 0; is_known && i < n; ++i) {
        if (!is_end[i]) continue;
        bool is_first = true;
        for (size_t j = i; j-- > 0;) {
            if (lane[j] != lane[i] || is_end[j] || expected[j] >= 0) continue;
            if (name[i] < 0 || name[j] == name[i]) {
                expected[i] = static_cast<int64_t>(j), expected[j] = static_cast<int64_t>(i);
                expected_crosses[i] = expected_crosses[j] = !is_first;
                break;
            }
            is_first = false;
        }
    }
    if (is_known) require(partner == expected && crosses == expected_crosses);

    // Slices by lane, begin and falling end, and points by lane and time.
    struct Slice {
        int64_t lane, begin, end;
    };
    std::vector<Slice> slices, points;
    for (size_t i = 0; i < n; ++i) {
        const uint8_t* item = data + 1 + 4 * i;
        const int64_t begin = item[1] % 32, length = item[3] % 16;
        const Slice made{item[0] % 4, begin, item[3] == 255 ? std::numeric_limits<int64_t>::max() : begin + length};
        (item[2] & 1 ? points : slices).push_back(made);
    }
    const auto precedes = [](const Slice& a, const Slice& b) {
        if (a.lane != b.lane) return a.lane < b.lane;
        return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
    };
    std::stable_sort(slices.begin(), slices.end(), precedes);
    std::stable_sort(points.begin(), points.end(), precedes);
    std::vector<int64_t> of, begin, end, point_lane, point, inside(points.size()), next(points.size());
    for (const Slice& slice : slices) of.push_back(slice.lane), begin.push_back(slice.begin), end.push_back(slice.end);
    for (const Slice& each : points) point_lane.push_back(each.lane), point.push_back(each.begin);
    slices_around(of, begin, end, point_lane, point, inside, next);
    bool is_nested = true;
    for (size_t i = 0; i < slices.size(); ++i) {
        for (size_t j = i + 1; j < slices.size() && slices[j].lane == slices[i].lane; ++j) {
            is_nested = is_nested && (slices[j].begin >= slices[i].end || slices[j].end <= slices[i].end);
        }
    }
    for (size_t i = 0; i < points.size(); ++i) {
        int64_t around = -1, after = -1;
        for (size_t j = slices.size(); j-- > 0;) {
            const Slice& slice = slices[j];
            if (slice.lane != points[i].lane) continue;
            if (slice.begin >= points[i].begin) after = static_cast<int64_t>(j);
            if (around < 0 && slice.begin <= points[i].begin && slice.end > points[i].begin) around = static_cast<int64_t>(j);
        }
        require(next[i] == after);
        if (is_nested) require(inside[i] == around);
        // Where slices cross, it still is one that the point lies in.
        if (inside[i] >= 0) {
            const Slice& slice = slices[static_cast<size_t>(inside[i])];
            require(slice.lane == points[i].lane && slice.begin <= points[i].begin && slice.end > points[i].begin);
        }
    }
    return 0;
}
