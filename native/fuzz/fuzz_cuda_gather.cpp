// Any bytes as records of a layout that the first bytes choose: nothing outside of them is read, fields are what their bits
// are, and whole regions make as many rows as there are records.
#include <cstring>

#include "core/devices/cuda/gather.hpp"
#include "cuda_lanes.hpp"
#include "record_mutator.hpp"

LANESCOPE_FUZZ_RECORDS(8, 8)

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace lanescope::cuda;
    if (size < 16) return 0;
    const std::span<const uint8_t> bytes(data + 8, size - 8);
    const auto count = static_cast<int64_t>(1 + data[0] % 8), each = static_cast<int64_t>(data[1] % 9);
    const auto lanes = static_cast<size_t>(1 + data[2] % 5);
    const gather::Field field{data[3] % 12u, data[4] % 8u, 1u + data[5] % (64 - data[4] % 8u)};
    std::vector<int64_t> base(lanes), first(lanes), ring(lanes), start(lanes + 1);
    for (size_t lane = 0; lane < lanes; ++lane) {
        base[lane] = static_cast<int64_t>(lane) * data[6] - data[7] % 3;
        ring[lane] = lane % 2 ? count : 0;
        first[lane] = data[7] % count;
        start[lane + 1] = start[lane] + count;
    }
    const gather::Lanes all{base, first, ring, start, each};
    if (!gather::is_inside(all, field, bytes.size())) return 0;
    std::vector<uint64_t> found(static_cast<size_t>(start.back()));
    gather::gather<uint64_t>(bytes, all, field, 0, lanes, found);
    for (size_t lane = 0; lane < lanes; ++lane) {
        for (int64_t i = 0; i < count; ++i) {
            const auto at = ring[lane] ? (first[lane] + i) % ring[lane] : first[lane] + i;
            const auto bit = 8 * (base[lane] + at * each + static_cast<int64_t>(field.byte)) + field.shift;
            uint64_t expected = 0;
            for (unsigned j = 0; j < field.width; ++j) {
                expected |= uint64_t{bytes[static_cast<size_t>(bit + j) / 8] >> (bit + j) % 8 & 1u} << j;
            }
            if (found[static_cast<size_t>(start[lane] + i)] != expected) std::abort();
        }
    }
    std::vector<SpanRecord> records;
    size_t regions = 0, marks = 0;
    for (size_t i = 0; i + 1 < found.size(); ++i) {
        const auto kind = static_cast<Kind>(found[i] % 6);
        if (kind == Kind::end) continue;
        records.push_back({found[i], found[i + 1], static_cast<uint32_t>(i), static_cast<uint16_t>(found[i] % 16), kind});
        regions += kind == Kind::begin || kind == Kind::finalize;
        marks += kind == Kind::instant;
    }
    Summary summary{};
    const auto decode = [&](LaneDecoder& decoder) { decoder.decode_spans(0, records, data[0] % 2, summary); };
    if (!with_room<4>({32u, true, 0}, regions, marks, records.size() + 1, records.size(), decode)) std::abort();
    if (summary.slices != static_cast<int64_t>(regions) || summary.instants != static_cast<int64_t>(marks)) std::abort();
    if (summary.records != summary.slices + summary.instants || summary.min > summary.max) std::abort();
    return 0;
}
