// Any words behind a header that the first bytes choose: no output is overrun, and every position is accounted for.
#include <cstring>

#include "core/devices/cuda/ls2.hpp"
#include "cuda_lanes.hpp"
#include "record_mutator.hpp"

LANESCOPE_FUZZ_RECORDS(2, 8)

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace lanescope::cuda;
    if (size < 10) return 0;
    const ls2::Layout layout{1 + data[0] % 4u, uint64_t{1} << data[1] % 7, 1 + (data[0] >> 4) % 2u, data[1] >= 128};
    std::vector<uint64_t> words((size - 2) / 8 + ls2::file_header);
    std::memcpy(words.data() + ls2::file_header, data + 2, (words.size() - ls2::file_header) * 8);
    // Small counts reach further than any 64 bits.
    for (uint64_t lane = 0; lane < layout.lanes; ++lane) {
        const auto at = ls2::file_header + lane * layout.lane_words();
        if (at + 1 < words.size() && data[1] % 3 != 0) words[at] %= 4, words[at + 1] %= 200;
    }
    std::vector<ls2::Lane> lanes(layout.lanes);
    ls2::scan(words, layout, lanes);
    size_t longest = 0, begins = 0, marks = 0, present = 0;
    for (const auto& lane : lanes) {
        longest = std::max(longest, static_cast<size_t>(lane.present));
        begins += static_cast<size_t>(lane.begins);
        marks += static_cast<size_t>(lane.marks);
        present += static_cast<size_t>(lane.present);
        if (lane.present > lane.stored || static_cast<uint64_t>(lane.stored) > layout.capacity) std::abort();
    }
    std::vector<Record> records(longest);
    std::vector<Summary> summaries(lanes.size());
    const auto decode = [&](LaneDecoder& decoder) { ls2::decode(words, layout, 0, lanes, records, summaries, decoder); };
    if (!with_room<ls2::event_bits>({32, true, 1 << 20}, begins, marks, present + lanes.size(), longest, decode)) std::abort();
    for (size_t i = 0; i < lanes.size(); ++i) {
        if (summaries[i].records != lanes[i].begins + lanes[i].marks) std::abort();
        if (summaries[i].records + summaries[i].missing > lanes[i].stored + 1) std::abort();
    }
    return 0;
}
