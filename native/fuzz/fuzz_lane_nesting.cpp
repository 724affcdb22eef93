// Any rows of any lanes, part by part: each lane clashes where a comparison of all pairs of its rows says so.
#include <algorithm>
#include <cstdlib>
#include <map>
#include <vector>

#include "core/foreign/lane_nesting.hpp"
#include "record_mutator.hpp"
#include "require.hpp"

LANESCOPE_FUZZ_RECORDS(1, 3)

using lanescope::fuzz::require;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using lanescope::foreign::LaneNesting;
    if (size < 1) return 0;
    const size_t n = std::min<size_t>((size - 1) / 3, 120);
    const size_t parts = 1 + data[0] / 8 % 4;
    const std::map<int32_t, int32_t> renamed = data[0] & 1 ? std::map<int32_t, int32_t>{{3, 1}} : std::map<int32_t, int32_t>{};
    const auto is_disjoint = [&](int32_t lane) { return (data[0] >> 1 & lane & 1) != 0; };
    std::vector<int32_t> lane;
    std::vector<int64_t> begin, dur;
    for (size_t i = 0; i < n; ++i) {
        const uint8_t* item = data + 1 + 3 * i;
        lane.push_back(item[0] % 5 - 1);
        begin.push_back(static_cast<int64_t>(i / 2) + item[1] % 32);
        dur.push_back(item[2] % 24 - 2);
    }
    LaneNesting nesting;
    for (size_t part = 0; part < parts; ++part) {
        const size_t from = n * part / parts, count = n * (part + 1) / parts - from;
        nesting.add(std::span(lane).subspan(from, count), std::span(begin).subspan(from, count), std::span(dur).subspan(from, count));
    }
    std::map<int32_t, bool> wanted;
    const auto of = [&](size_t i) { return renamed.contains(lane[i]) ? renamed.at(lane[i]) : lane[i]; };
    for (size_t i = 0; i < n; ++i) {
        if (lane[i] < 0) continue;
        bool& clashes = wanted[of(i)];
        for (size_t j = 0; j < i; ++j) {
            if (lane[j] < 0 || of(j) != of(i) || dur[i] <= 0 || dur[j] <= 0) continue;
            const int64_t i_end = begin[i] + dur[i], j_end = begin[j] + dur[j];
            if (begin[i] >= j_end || begin[j] >= i_end) continue;
            const bool holds = (begin[i] <= begin[j] && j_end <= i_end) || (begin[j] <= begin[i] && i_end <= j_end);
            clashes |= is_disjoint(of(i)) || !holds;
        }
    }
    const auto found = nesting.result(renamed, is_disjoint);
    require(found.lane.size() == wanted.size());
    size_t at = 0;
    for (const auto& [id, clashes] : wanted) {
        require(found.lane[at] == id);
        require((found.is_clash[at] != 0) == clashes);
        ++at;
    }
    return 0;
}
