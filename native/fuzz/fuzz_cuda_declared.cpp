// Any bytes as records of fields that the first bytes choose, in rows or lane by lane: what is counted is what is decoded,
// lanes counted together are those counted one by one, and no output is overrun.
#include <cstring>

#include "core/devices/cuda/declared_lanes.hpp"
#include "cuda_lanes.hpp"
#include "record_mutator.hpp"

LANESCOPE_FUZZ_RECORDS(10, 8)

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace lanescope::cuda;
    if (size < 12) return 0;
    std::vector<uint8_t> bytes(data + 10, data + size);
    const auto count = static_cast<int64_t>(1 + data[0] % 9), lanes = static_cast<int64_t>(1 + data[1] % 12);
    const bool in_rows = data[2] & 1, is_ring = data[2] & 2, is_wide = data[2] & 4;
    const auto pitch = static_cast<int64_t>(data[2] & 8 ? 16 : 8);
    std::vector<int64_t> base, first, ring, start(1), expected;
    for (int64_t lane = 0; lane < lanes; ++lane) {
        // Lanes that take turns are longer in front: the last row may be cut.
        const auto length = in_rows && lane >= data[3] % 16 ? count - 1 : count;
        base.push_back(in_rows ? lane * pitch : lane * count * pitch);
        ring.push_back(is_ring && lane % 2 ? count : 0);
        first.push_back(is_ring ? data[4] % count * (lane % 2) : 0);
        start.push_back(start.back() + length);
        expected.push_back(lane);
    }
    const gather::Lanes all{base, first, ring, start, in_rows ? lanes * pitch : pitch};
    uint8_t kinds[8];
    for (size_t i = 0; i < 8; ++i) kinds[i] = static_cast<uint8_t>(i < 4 ? i : data[5] >> 4 == 0 ? i % 6 : 4);
    const uint64_t second = pitch == 16 && data[6] & 1 ? 8 : 0;
    declared::Roles roles;
    roles.stamp = is_wide ? declared::WordField{0, 0, ~uint64_t{0}} : declared::WordField{0, 32, 0xFFFFFFFF};
    roles.event = {second, data[6] / 2 % 16u, 0xF}, roles.kind = {second, data[7] % 20u, data[5] & 1 ? 3u : 7u};
    roles.kinds = kinds;
    if (data[5] & 2) roles.empty = {0, 0, ~uint64_t{0}};
    if (data[5] & 4) roles.agree = {second, 12, 0xF}, roles.expected = expected;
    if (data[5] & 8) roles.sm = {second, 24, 0xFF};
    roles.is_wide = is_wide, roles.origin = is_wide ? data[8] : 0, roles.far_bits = is_wide ? 61 : 0;
    for (const auto* field : {&roles.stamp, &roles.event, &roles.kind, &roles.empty, &roles.agree, &roles.sm}) {
        if (!gather::is_inside(all, field->word(), bytes.size())) return 0;
    }
    const auto width = static_cast<size_t>(lanes);
    if (second == 0) {
        auto shown_roles = roles;
        shown_roles.expected = expected;
        std::vector<uint64_t> shown(bytes.size() / 8);
        declared::to_tirx(std::span(bytes).first(8 * shown.size()), shown_roles, 0, shown);
        for (size_t i = 0; i < shown.size(); ++i) {
            const auto tag = shown[i] >> 12 & 0xFFFFF;
            if (shown[i] != 0 && tag != i % width && tag != (i % width ^ 1)) std::abort();
        }
    }
    std::vector<declared::LaneCount> counts(width), alone(width);
    declared::count(bytes, all, roles, 0, width, counts);
    for (size_t lane = 0; lane < width; ++lane) declared::count(bytes, all, roles, lane, lane + 1, alone);
    size_t begins = 0, others = 0, positions = 0;
    for (size_t lane = 0; lane < width; ++lane) {
        const auto &a = counts[lane], &b = alone[lane];
        if (a.begins != b.begins || a.others != b.others || a.bad != b.bad || a.first_bad != b.first_bad || a.sm != b.sm) {
            std::abort();
        }
        const auto length = static_cast<size_t>(start[lane + 1] - start[lane]);
        if (static_cast<size_t>(a.begins + a.others + a.bad) > length || (a.bad > 0) != (a.first_bad >= 0)) std::abort();
        begins += static_cast<size_t>(a.begins), others += static_cast<size_t>(a.others), positions += length;
    }
    const auto longest = static_cast<size_t>(count);
    std::vector<uint64_t> scratch(declared::side_by_side * longest);
    std::vector<Summary> summaries(width);
    const std::vector<uint8_t> nothing(width), full(width, data[9] & 1);
    const auto decode = [&](LaneDecoder& decoder) {
        declared::decode(bytes, all, roles, 0, width, {nothing, full, {}, false}, scratch, summaries, decoder);
    };
    const LaneRules rules{is_wide ? 62u : 32u, true, 1 << 20};
    if (!with_room<4>(rules, begins, others, positions + width, longest, decode)) std::abort();
    for (size_t lane = 0; lane < width; ++lane) {
        if (summaries[lane].records != counts[lane].begins + counts[lane].others) std::abort();
        if (summaries[lane].bad != counts[lane].bad) std::abort();
    }
    return 0;
}
