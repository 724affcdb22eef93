// What the targets of all CUDA layouts share: room for the rows of lanes, and what every decode must leave behind.
#pragma once
#include <algorithm>
#include <cstdlib>
#include <vector>

#include "core/devices/cuda/declared_lanes.hpp"
#include "core/devices/cuda/tirx.hpp"
#include "core/trace/columns.hpp"

namespace lanescope::cuda {

// What is made of whole columns is what row by row gives.
inline void check_columns(std::span<const uint32_t> flags, std::span<const uint16_t> events) {
    static std::vector<int32_t> table(size_t{1} << 16);
    std::vector<int32_t> number(flags.size()), looked_up(events.size());
    std::vector<uint8_t> is_known(flags.size());
    const auto values = columns::distinct(flags, number, is_known);
    for (const uint16_t event : events) table[event] = -3 * event;
    columns::look_up(events, table.data(), looked_up);
    size_t truncated = 0, first_seen = 0;
    for (size_t i = 0; i < flags.size(); ++i) {
        const auto at = static_cast<size_t>(number[i]);
        if (at > first_seen || at >= values.size() || values[at] != flags[i]) std::abort();
        first_seen += at == first_seen;
        if (is_known[i] != (flags[i] != 0) || looked_up[i] != -3 * events[i]) std::abort();
        truncated += (flags[i] & Flag::truncated) != 0;
    }
    if (first_seen != values.size() || columns::count_with(flags, Flag::truncated) != truncated) std::abort();
}

// Calls `decode(decoder)` with room for so many rows of each kind and for lanes of at most `longest` positions; returns
// whether that was enough.
template <unsigned kEventBits, class Decode>
bool with_room(const LaneRules& rules, size_t begins, size_t marks, size_t holes, size_t longest, Decode&& decode) {
    std::vector<int64_t> b(begins), d(begins), t(marks), gt(holes), gd(holes);
    std::vector<uint32_t> sf(begins), sl(begins), sb(begins), se(begins), mf(marks), ml(marks), mi(marks);
    std::vector<uint32_t> gl(holes), gi(holes), gm(holes), gb(holes);
    std::vector<uint16_t> e(begins), me(marks);
    std::vector<uint8_t> ends(marks);
    std::vector<SliceEdge> edges(2 * longest);
    std::vector<int32_t> below(longest), prev(longest), next(longest), unmarked(longest), number(longest);
    // One place for each event, made once: a decode leaves `top` as it was.
    static std::vector<int32_t> top(size_t{1} << kEventBits, -1);
    static std::vector<uint8_t> used(size_t{1} << kEventBits);
    Slices slices{b, d, sf, sl, sb, se, e};
    Instants instants{t, mf, ml, mi, me, ends};
    Gaps gaps{gt, gd, gl, gi, gm, gb};
    LaneDecoder decoder(rules, {below, prev, next, unmarked, number, top, used, edges}, slices, instants, gaps);
    decode(decoder);
    mark_below_resolution(slices, 0, slices.size, 32);
    for (size_t i = 0; i < slices.size; ++i) {
        if (top[e[i]] != -1) std::abort();
    }
    check_columns(sf, e);
    return decoder.is_whole();
}

// Decodes words of the TIRx layout, scanned in two pieces, and checks the sums. Too few rows may be given: those that have
// no room are left out, and it is told.
inline void decode_tirx(std::span<const uint64_t> words, uint64_t lanes, uint64_t stride, bool split, bool is_short,
                        std::span<const int64_t> cuts = {}) {
    std::vector<tirx::LaneCount> counts(lanes), first(lanes), rest(lanes);
    const auto behind = words.subspan(1);
    const auto found = tirx::scan(behind, 1, stride, counts);
    const auto cut = std::min(behind.size(), behind.size() / 2 / stride * stride);
    auto pieces = tirx::scan(behind.first(cut), 1, stride, first);
    pieces.merge(tirx::scan(behind.subspan(cut), 1 + cut, stride, rest));
    size_t used = 0, begins = 0;
    for (size_t lane = 0; lane < lanes; ++lane) {
        used += counts[lane].used;
        begins += counts[lane].begins;
        if (counts[lane].used != first[lane].used + rest[lane].used) std::abort();
        if (counts[lane].begins != first[lane].begins + rest[lane].begins) std::abort();
    }
    if (pieces.used != found.used || pieces.misplaced != found.misplaced || pieces.last_used != found.last_used ||
        pieces.first_misplaced != found.first_misplaced) {
        std::abort();
    }
    const size_t marks = is_short ? 0 : used - begins, holes = is_short ? 0 : used + lanes;
    std::vector<uint64_t> scratch(declared::side_by_side * words.size());
    std::vector<Summary> summaries(lanes);
    std::vector<int64_t> base(lanes), zeros(lanes), start(1), names(lanes);
    for (uint64_t lane = 0; lane < lanes; ++lane) {
        const auto rows = lane < behind.size() ? (behind.size() - 1 - lane) / stride + 1 : 0;
        start.push_back(start.back() + static_cast<int64_t>(rows));
        base[lane] = static_cast<int64_t>(8 * lane), names[lane] = static_cast<int64_t>(lane);
    }
    const uint8_t kinds[] = {0, 1, 2, 3};
    declared::Roles roles;
    roles.stamp = {0, 32, 0xFFFFFFFF}, roles.event = {0, 2, 0x3FF}, roles.kind = {0, 0, 3}, roles.kinds = kinds;
    roles.empty = {0, 0, ~uint64_t{0}}, roles.agree = {0, 12, 0xFFFFF}, roles.expected = names;
    const std::span bytes(reinterpret_cast<const uint8_t*>(behind.data()), 8 * behind.size());
    const gather::Lanes places{base, zeros, zeros, start, static_cast<int64_t>(8 * stride)};
    const std::vector<uint8_t> nothing(lanes);
    const auto decode = [&](LaneDecoder& decoder) {
        declared::decode(bytes, places, roles, 0, lanes, {nothing, nothing, cuts, true}, scratch, summaries, decoder);
    };
    const bool is_whole = with_room<10>({32, split, 1 << 20}, is_short ? begins / 2 : begins, marks, holes, words.size(), decode);
    uint64_t decoded = found.misplaced;
    for (const auto& summary : summaries) {
        decoded += static_cast<uint64_t>(summary.records + (split ? 0 : summary.after_finalize));
    }
    if (decoded != found.used || (!is_short && !is_whole)) std::abort();
}

}  // namespace lanescope::cuda
