// Any entries in rings that the first bytes choose: no output is overrun, and every entry is a record or unreadable.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "core/cuda/proton.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace lanescope::cuda;
    if (size < 12) return 0;
    std::vector<uint32_t> words((size - 4) / 4);
    std::memcpy(words.data(), data + 4, words.size() * 4);
    // Most tags should be of a known type.
    for (size_t i = 0; i < words.size(); i += 2) {
        if (words[i] % 5 != 0) words[i] &= ~(uint32_t{0x4} << 20);
    }
    const auto room = static_cast<int64_t>(words.size() / 2);
    const int64_t count = 1 + data[0] % 3, entries = room / count;
    std::vector<proton::Ring> rings;
    for (int64_t i = 0; i < count; ++i) {
        const int64_t offered = data[1] % 2 ? entries * (data[2] % 3) + data[3] % 7 : entries;
        const int64_t lost = std::max<int64_t>(0, offered - entries);
        rings.push_back({2 * i * entries, entries, lost > 0 && entries > 0 ? offered % entries : 0,
                         std::min(offered, entries), lost});
    }
    const auto found = proton::count(words, rings);
    size_t longest = 0, stored = 0;
    for (const auto& ring : rings) {
        longest = std::max(longest, static_cast<size_t>(ring.stored));
        stored += static_cast<size_t>(ring.stored);
    }
    const size_t begins = found.begins, marks = found.marks, holes = stored + rings.size();
    std::vector<int64_t> b(begins), d(begins), t(marks), gt(holes), gd(holes);
    std::vector<uint32_t> sf(begins), sl(begins), sb(begins), se(begins), mf(marks), ml(marks), mi(marks);
    std::vector<uint32_t> gl(holes), gi(holes), gm(holes), gb(holes);
    std::vector<uint16_t> e(begins), me(marks);
    std::vector<uint8_t> ends(marks);
    std::vector<Record> records(longest);
    std::vector<Edge> edges(2 * longest);
    std::vector<int32_t> below(longest), prev(longest), next(longest), unmarked(longest), number(longest);
    std::vector<int32_t> top(size_t{1} << proton::event_bits, -1);
    std::vector<uint8_t> events(size_t{1} << proton::event_bits);
    std::vector<Summary> summaries(rings.size());
    Slices slices{b, d, sf, sl, sb, se, e};
    Instants instants{t, mf, ml, mi, me, ends};
    Gaps gaps{gt, gd, gl, gi, gm, gb};
    const unsigned bits = found.wide ? 43 : 32;
    LaneDecoder decoder({bits, true, 1 << 20}, {below, prev, next, unmarked, number, top, events, edges}, slices, instants, gaps);
    proton::decode(words, 0, rings, records, summaries, decoder);
    if (!decoder.is_whole()) std::abort();
    for (size_t i = 0; i < rings.size(); ++i) {
        if (summaries[i].records > rings[i].stored) std::abort();
        if (summaries[i].records + summaries[i].missing > rings[i].stored + 1) std::abort();
    }
    return 0;
}
