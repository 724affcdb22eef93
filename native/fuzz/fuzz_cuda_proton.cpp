// Any entries in rings that the first bytes choose: no output is overrun, every entry is a record or unreadable, and so is
// every partner of an asynchronous one the partner of its partner.
#include <cstring>

#include "core/devices/cuda/proton.hpp"
#include "core/devices/cuda/region_pairing.hpp"
#include "cuda_lanes.hpp"
#include "record_mutator.hpp"

LANESCOPE_FUZZ_RECORDS(4, 8)

namespace {

// Entries as starts and ends of two lanes of a block.
void pair_any(std::span<const uint32_t> words, bool is_open_once) {
    using namespace lanescope::cuda;
    const auto count = words.size() / 2;
    if (count == 0) return;
    std::vector<uint64_t> key(count);
    std::vector<int64_t> ts(count), partner(count), start{0, static_cast<int64_t>(count)};
    std::vector<uint32_t> lane(count), launch(count), first(2), last(2);
    std::vector<uint8_t> is_end(count), across(count), ambiguous(count);
    for (size_t i = 0; i < count; ++i) {
        key[i] = words[2 * i] >> 23 & 3, ts[i] = words[2 * i + 1] & 0xFF;
        lane[i] = i >= count / 2, is_end[i] = words[2 * i] >> 31, across[i] = key[i] < 2;
    }
    std::vector<RegionEvent> events(count);
    pair_regions({start, key, ts, lane, launch, is_end, across}, {is_open_once, !is_open_once}, partner, ambiguous, events,
                 first, last);
    for (size_t i = 0; i < count; ++i) {
        if (partner[i] < (is_end[i] ? no_partner : repeated_start) || partner[i] >= static_cast<int64_t>(count)) std::abort();
        if (partner[i] < 0) continue;
        const auto other = static_cast<size_t>(partner[i]);
        if (partner[other] != static_cast<int64_t>(i) || is_end[other] == is_end[i] || key[other] != key[i]) std::abort();
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace lanescope::cuda;
    if (size < 12) return 0;
    std::vector<uint32_t> words((size - 4) / 4);
    std::memcpy(words.data(), data + 4, words.size() * 4);
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
    pair_any(words, data[0] % 2 != 0);
    return 0;
}
