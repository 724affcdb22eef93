// Any words, in a grid that the first byte chooses: no output is overrun, and every used word is a record or unreadable.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "core/cuda/tirx.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace lanescope::cuda;
    if (size < 17) return 0;
    const uint64_t lanes = 1 + data[0] % 5, stride = lanes + data[0] / 5 % 3;
    const bool split = data[0] < 128;
    std::vector<uint64_t> words((size - 1) / 8);
    std::memcpy(words.data(), data + 1, words.size() * 8);
    // Most words should reach the rules: their lane is made that of their slot.
    for (size_t slot = 1; slot < words.size(); ++slot) {
        if (words[slot] % 7 != 0) words[slot] = (words[slot] & ~(uint64_t{0xFFFFF} << 12)) | (slot - 1) % stride << 12;
    }
    tirx::stride_divisor(words);
    std::vector<tirx::LaneCount> counts(lanes), again(lanes);
    const auto behind = std::span(words).subspan(1);
    const auto found = tirx::scan(behind, 1, stride, counts);
    // The same in two pieces, cut between two rows.
    const auto cut = std::min(behind.size(), behind.size() / 2 / stride * stride);
    auto pieces = tirx::scan(behind.first(cut), 1, stride, again);
    std::vector<tirx::LaneCount> rest(lanes);
    pieces.merge(tirx::scan(behind.subspan(cut), 1 + cut, stride, rest));
    size_t used = 0, begins = 0;
    for (size_t lane = 0; lane < lanes; ++lane) {
        used += counts[lane].used;
        begins += counts[lane].begins;
        if (counts[lane].used != again[lane].used + rest[lane].used) std::abort();
        if (counts[lane].begins != again[lane].begins + rest[lane].begins) std::abort();
    }
    if (pieces.used != found.used || pieces.misplaced != found.misplaced || pieces.last_used != found.last_used ||
        pieces.first_misplaced != found.first_misplaced) {
        std::abort();
    }
    // Too few rows may be given too: they are left out, and it is told.
    const bool is_short = data[0] % 16 == 15;
    const size_t longest = words.size(), marks = is_short ? 0 : used - begins, holes = is_short ? 0 : used + lanes;
    if (is_short) begins /= 2;
    std::vector<int64_t> b(begins), d(begins), t(marks), gt(holes), gd(holes);
    std::vector<uint32_t> sf(begins), sl(begins), sb(begins), se(begins), mf(marks), ml(marks), mi(marks);
    std::vector<uint32_t> gl(holes), gi(holes), gm(holes), gb(holes);
    std::vector<uint16_t> e(begins), me(marks);
    std::vector<uint8_t> ends(marks);
    std::vector<uint64_t> scratch(tirx::side_by_side * longest);
    std::vector<uint8_t> events(size_t{1} << tirx::event_bits);
    std::vector<Edge> edges(2 * longest);
    std::vector<int32_t> below(longest), prev(longest), next(longest), unmarked(longest), number(longest);
    std::vector<int32_t> top(size_t{1} << tirx::event_bits, -1);
    std::vector<Summary> summaries(lanes);
    Slices slices{b, d, sf, sl, sb, se, e};
    Instants instants{t, mf, ml, mi, me, ends};
    Gaps gaps{gt, gd, gl, gi, gm, gb};
    LaneDecoder decoder({32, split, 1 << 20}, {below, prev, next, unmarked, number, top, events, edges}, slices, instants, gaps);
    // Any position may be called the first of an earlier launch; the rows of all are asked for.
    std::vector<int64_t> cuts;
    if (data[1] % 4 == 0) {
        for (uint64_t lane = 0; lane < lanes; ++lane) cuts.push_back(data[(2 + lane) % size] % 32);
    }
    tirx::decode(behind, {lanes, stride, 0, {}, {}, cuts, true}, 0, lanes, scratch, summaries, decoder);
    mark_below_resolution(slices, 32);
    uint64_t decoded = found.misplaced;
    for (const auto& summary : summaries) {
        decoded += static_cast<uint64_t>(summary.records + (split ? 0 : summary.after_finalize));
    }
    if (decoded != found.used || (!is_short && !decoder.is_whole())) std::abort();
    for (const auto row : top) {
        if (row != -1) std::abort();
    }
    return 0;
}
