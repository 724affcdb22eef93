// Any limits of any clocks: corners of hulls are those of all points; segments are the longest that one line satisfies, as
// trying all lines through two limits tells.
#include <algorithm>
#include <map>
#include <vector>

#include "core/analysis/align/lines.hpp"
#include "record_mutator.hpp"
#include "require.hpp"

LANESCOPE_FUZZ_RECORDS(2, 3)

using lanescope::fuzz::require;

namespace {

using namespace lanescope::align;

struct Side {
    std::vector<int64_t> at, most;
    Limits limits() const { return {at, most}; }
};

// A slope and a point that a line may go through; all are small.
bool satisfies(const Side sides[2], int64_t from, int64_t to, int64_t rise, int64_t run, int64_t at, int64_t value) {
    for (int64_t sign : {1, -1}) {
        const Side& side = sides[sign < 0];
        for (size_t i = 0; i < side.at.size(); ++i) {
            if (side.at[i] < from || side.at[i] > to) continue;
            if (sign * (value * run + rise * (side.at[i] - at)) > side.most[i] * run) return false;
        }
    }
    return true;
}

// Whether one line satisfies all limits between two moments: if any does, one through a limit with a slope of the bound,
// or through two limits.
bool has_line(const Side sides[2], int64_t from, int64_t to, Rate rate) {
    std::vector<std::pair<int64_t, int64_t>> points;
    for (int64_t sign : {1, -1}) {
        const Side& side = sides[sign < 0];
        for (size_t i = 0; i < side.at.size(); ++i) {
            if (side.at[i] >= from && side.at[i] <= to) points.emplace_back(side.at[i], sign * side.most[i]);
        }
    }
    for (const auto& [at, value] : points) {
        for (const int64_t rise : {rate.numerator, -rate.numerator}) {
            if (satisfies(sides, from, to, rise, rate.denominator, at, value)) return true;
        }
        for (const auto& [other, end] : points) {
            const int64_t run = other - at, rise = end - value;
            if (run <= 0 || std::max(rise, -rise) * rate.denominator > rate.numerator * run) continue;
            if (satisfies(sides, from, to, rise, run, at, value)) return true;
        }
    }
    return points.empty();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    if (size < 2) return 0;
    const Rate rate{data[0] % 16, data[1] % 16 + 1};
    std::map<int64_t, int64_t> lowest[2];
    int64_t moment = 0;
    for (size_t i = 2; i + 3 <= std::min<size_t>(size, 56); i += 3) {
        moment += data[i] / 2 % 16;
        const int64_t most = static_cast<int8_t>(data[i + 1]) / 4 + (data[i + 2] & 15);
        auto& side = lowest[data[i] & 1];
        const auto [place, is_new] = side.try_emplace(moment, most);
        if (!is_new) place->second = std::min(place->second, most);
    }
    Side sides[2];
    std::vector<int64_t> moments;
    for (int side : {0, 1}) {
        for (const auto& [at, most] : lowest[side]) {
            sides[side].at.push_back(at);
            sides[side].most.push_back(most);
            moments.push_back(at);
        }
        const Side& points = sides[side];
        const std::vector<int64_t> corners = lower_hull(points.limits());
        for (size_t i = 0; i < points.at.size(); ++i) {
            // A corner is below each line between a point before it and one behind it.
            bool is_corner = true;
            for (size_t a = 0; a < i; ++a) {
                for (size_t b = i + 1; b < points.at.size(); ++b) {
                    const int64_t before = (points.most[i] - points.most[a]) * (points.at[b] - points.at[i]);
                    is_corner &= before < (points.most[b] - points.most[i]) * (points.at[i] - points.at[a]);
                }
            }
            require(is_corner == std::ranges::binary_search(corners, static_cast<int64_t>(i)));
        }
    }
    std::ranges::sort(moments);
    moments.erase(std::unique(moments.begin(), moments.end()), moments.end());
    Segments wanted;
    for (size_t begin = 0; begin < moments.size();) {
        size_t end = begin;
        while (end < moments.size() && has_line(sides, moments[begin], moments[end], rate)) ++end;
        const auto has = [&](const Side& side) {
            return std::ranges::any_of(side.at, [&](int64_t at) { return at >= moments[begin] && at <= moments[end - 1]; });
        };
        if (end > begin && has(sides[0]) && has(sides[1])) {
            wanted.begin.push_back(moments[begin]);
            wanted.end.push_back(moments[end - 1]);
        }
        begin = std::max(end, begin + 1);
    }
    const Segments found = straight_segments(sides[0].limits(), sides[1].limits(), rate);
    require(found.begin == wanted.begin);
    require(found.end == wanted.end);
    return 0;
}
