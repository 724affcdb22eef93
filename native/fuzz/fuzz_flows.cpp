// Any flows between any events: what is drawn goes forward, and each flow that is drawn leaves and enters exactly once.
#include <vector>

#include "core/io/perfetto/flows.hpp"
#include "record_mutator.hpp"
#include "require.hpp"

LANESCOPE_FUZZ_RECORDS(2, 4)

using lanescope::fuzz::require;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace lanescope::perfetto;
    if (size < 2) return 0;
    const size_t n = std::min<size_t>((size - 2) / 4, 200), spans = n / 2;
    std::vector<int64_t> begin, length, point, source(n), destination(n), arrived(n), left(n);
    std::vector<uint8_t> known, state(n);
    bool is_inside = true;
    for (size_t i = 0; i < n; ++i) {
        const uint8_t* item = data + 2 + 4 * i;
        if (i < spans) begin.push_back(item[0] % 32), length.push_back(item[1] % 8), known.push_back(item[1] % 16 != 1);
        else point.push_back(item[0] % 32);
        const auto event = [&](uint8_t byte) { return byte == 255 ? int64_t{-1} : static_cast<int64_t>(byte % (n + (byte > 252))); };
        source[i] = event(item[2]), destination[i] = event(item[3]);
        arrived[i] = item[1] % 40, left[i] = item[0] % 40;
        for (const int64_t end : {source[i], destination[i]}) is_inside = is_inside && end >= 0 && static_cast<size_t>(end) < n;
    }
    const FlowEvents events{begin, length, data[0] & 1 ? std::span<const uint8_t>(known) : std::span<const uint8_t>(), point};
    const int64_t tied = flow_states(events, source, destination, state);
    require((tied >= 0) == is_inside);
    if (is_inside) {
        int64_t found = 0;
        for (size_t i = 0; i < n; ++i) {
            const auto to = static_cast<uint64_t>(destination[i]);
            const int64_t from = events.begin(static_cast<uint64_t>(source[i])), at = events.begin(to);
            const auto is = static_cast<FlowState>(state[i]);
            require((is == FlowState::to_begin) == (from < at) && (is == FlowState::undrawn) == (from > at));
            require((is == FlowState::to_end) == (from == at && events.lasts(to)));
            found += is == FlowState::tied;
        }
        require(found == tied);
        // Event by event, in pieces: each flow once where it leaves, once where it enters.
        std::vector<uint32_t> met(n);
        const uint64_t piece = 1 + data[1];
        for (uint64_t first = 0; first < n; first += piece) {
            const uint64_t count = std::min<uint64_t>(piece, n - first);
            const FlowsByEvent flows = flows_by_event(source, destination, state, {}, first, count);
            if (flows.start.empty()) continue;
            require(flows.start.size() >= count + 1 && flows.id.size() == flows.end.size());
            for (uint64_t i = 0; i < count; ++i) {
                require(flows.start[i] <= flows.start[i + 1] && flows.start[i + 1] <= flows.id.size());
                for (size_t at = flows.start[i]; at < flows.start[i + 1]; ++at) {
                    const uint32_t flow = flows.id[at] - 1;
                    const auto here = static_cast<int64_t>(first + i);
                    require(flow < n && (source[flow] == here || destination[flow] == here));
                    ++met[flow];
                }
            }
        }
        for (size_t i = 0; i < n; ++i) {
            const auto is = static_cast<FlowState>(state[i]);
            require(met[i] == (is == FlowState::to_begin || is == FlowState::to_end ? 2u : 0u));
        }
    }
    std::vector<uint32_t> group(n);
    for (size_t i = 0; i < n; ++i) group[i] = data[2 + 4 * i] % 3u;
    const std::vector<uint32_t> kind = group;
    require(split_by_place(events, source, destination, left, arrived, group) == is_inside);
    if (is_inside) {
        std::vector<int64_t> sizes(3 * flow_places * flow_places);
        const std::vector<uint32_t> number = number_by_group(group, sizes);
        std::vector<uint32_t> by_number(n);
        for (size_t i = 0; i < n; ++i) {
            require(group[i] / (flow_places * flow_places) == kind[i]);
            require(number[i] >= 1 && number[i] <= n && by_number[number[i] - 1] == 0);
            by_number[number[i] - 1] = static_cast<uint32_t>(i) + 1;
        }
        for (size_t i = 1; i < n; ++i) {
            const uint32_t before = by_number[i - 1] - 1, flow = by_number[i] - 1;
            require(group[before] < group[flow] || (group[before] == group[flow] && before < flow));
        }
    }
    std::vector<int64_t> running, expected;
    bool is_slice = true;
    for (size_t i = 0; i < n && is_slice; ++i) {
        if (destination[i] < 0) continue;
        is_slice = static_cast<size_t>(destination[i]) < spans && (source[i] < 0 || static_cast<size_t>(source[i]) < spans);
        if (!is_slice) break;
        const int64_t from = source[i] < 0 ? left[i] : begin[static_cast<size_t>(source[i])];
        if (from > begin[static_cast<size_t>(destination[i])] && from <= arrived[i]) expected.push_back(static_cast<int64_t>(i));
    }
    require(running_flows(source, destination, left, arrived, begin, running) == is_slice);
    if (is_slice) require(running == expected);
    return 0;
}
