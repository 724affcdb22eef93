// Any entries in rings that the first bytes choose: no output is overrun, and every entry is a record or unreadable.
#include <cstring>

#include "core/devices/cuda/proton.hpp"
#include "cuda_lanes.hpp"

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
    std::vector<Record> records(longest);
    std::vector<Summary> summaries(rings.size());
    const auto decode = [&](LaneDecoder& decoder) { proton::decode(words, 0, rings, records, summaries, decoder); };
    const LaneRules rules{found.wide ? 43u : 32u, true, 1 << 20};
    if (!with_room<proton::event_bits>(rules, found.begins, found.marks, stored + rings.size(), longest, decode)) std::abort();
    for (size_t i = 0; i < rings.size(); ++i) {
        if (summaries[i].records > rings[i].stored) std::abort();
        if (summaries[i].records + summaries[i].missing > rings[i].stored + 1) std::abort();
    }
    return 0;
}
