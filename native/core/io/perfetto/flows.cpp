#include "core/io/perfetto/flows.hpp"

#include <algorithm>
#include <utility>

#include "core/io/perfetto/encoder.hpp"
#include "core/io/perfetto/fields.hpp"

namespace lanescope::perfetto {
namespace {

bool is_drawn(uint8_t state) {
    return state == static_cast<uint8_t>(FlowState::to_begin) || state == static_cast<uint8_t>(FlowState::to_end);
}

}  // namespace

bool running_flows(std::span<const int64_t> source, std::span<const int64_t> destination, std::span<const int64_t> left,
                   std::span<const int64_t> arrived, std::span<const int64_t> slice_ts, std::vector<int64_t>& found) {
    for (size_t i = 0; i < source.size(); ++i) {
        const int64_t to = destination[i];
        if (to < 0) continue;
        const int64_t from = source[i];
        if (outside(to, slice_ts.size()) || (from < 0 ? i >= left.size() : outside(from, slice_ts.size()))) return false;
        const int64_t begin = from < 0 ? left[i] : slice_ts[static_cast<size_t>(from)];
        if (begin > slice_ts[static_cast<size_t>(to)] && begin <= arrived[i]) found.push_back(static_cast<int64_t>(i));
    }
    return true;
}

int64_t flow_states(const FlowEvents& events, std::span<const int64_t> source, std::span<const int64_t> destination,
                    std::span<uint8_t> state) {
    int64_t tied = 0;
    for (size_t i = 0; i < source.size(); ++i) {
        if (outside(source[i], events.size()) || outside(destination[i], events.size())) return -1;
        const auto to = static_cast<uint64_t>(destination[i]);
        const int64_t left = events.begin(static_cast<uint64_t>(source[i]));
        const int64_t arrived = events.begin(to);
        FlowState found = left < arrived ? FlowState::to_begin : FlowState::undrawn;
        if (left == arrived) {
            found = events.lasts(to) ? FlowState::to_end : FlowState::tied;
            tied += found == FlowState::tied;
        }
        state[i] = static_cast<uint8_t>(found);
    }
    return tied;
}

bool split_by_place(const FlowEvents& events, std::span<const int64_t> source, std::span<const int64_t> destination,
                    std::span<const int64_t> left, std::span<const int64_t> arrived, std::span<uint32_t> group) {
    const auto place = [&](int64_t event, int64_t moment) {
        const auto at = static_cast<uint64_t>(event);
        if (at >= events.span_begin.size()) return FlowPlace::begin;
        const auto behind = static_cast<uint64_t>(moment) - static_cast<uint64_t>(events.span_begin[at]);
        if (behind == 0) return FlowPlace::begin;
        const bool is_known = events.span_known.empty() || events.span_known[at] != 0;
        return is_known && behind == static_cast<uint64_t>(events.span_length[at]) ? FlowPlace::end : FlowPlace::elsewhere;
    };
    for (size_t i = 0; i < source.size(); ++i) {
        if (outside(source[i], events.size()) || outside(destination[i], events.size())) return false;
        const auto from = static_cast<uint32_t>(place(source[i], left[i]));
        const auto to = static_cast<uint32_t>(place(destination[i], arrived[i]));
        group[i] = (group[i] * flow_places + from) * flow_places + to;
    }
    return true;
}

std::vector<uint32_t> number_by_group(std::span<const uint32_t> group, std::span<int64_t> sizes) {
    std::ranges::fill(sizes, 0);
    for (const uint32_t each : group) ++sizes[each];
    std::vector<uint32_t> next(sizes.size()), number(group.size());
    uint32_t first = 1;
    for (size_t i = 0; i < next.size(); ++i) next[i] = std::exchange(first, first + static_cast<uint32_t>(sizes[i]));
    for (size_t i = 0; i < group.size(); ++i) number[i] = next[group[i]]++;
    return number;
}

FlowsByEvent flows_by_event(std::span<const int64_t> source, std::span<const int64_t> destination,
                            std::span<const uint8_t> state, std::span<const uint32_t> number, uint64_t first,
                            uint64_t count) {
    FlowsByEvent out;
    std::vector<uint32_t>& start = out.start;
    start.assign(count + 2, 0);
    uint32_t total = 0;
    const auto place = [&](int64_t event) { return static_cast<uint64_t>(event) - first; };
    const auto counted = [&](int64_t event) {
        if (place(event) >= count) return;
        ++start[place(event) + 2];
        ++total;
    };
    for (size_t i = 0; i < source.size(); ++i) {
        if (!is_drawn(state[i])) continue;
        counted(source[i]);
        counted(destination[i]);
    }
    if (total == 0) return {};
    for (size_t i = 2; i < start.size(); ++i) start[i] += start[i - 1];
    out.id.resize(total);
    out.end.resize(total);
    // start[i + 1] is where the next flow of event i goes, and in the end where those of event i + 1 begin.
    const auto put = [&](int64_t event, size_t flow, FlowEnd end) {
        if (place(event) >= count) return;
        const uint32_t at = start[place(event) + 1]++;
        out.id[at] = number.empty() ? static_cast<uint32_t>(flow + 1) : number[flow];
        out.end[at] = static_cast<uint8_t>(end);
    };
    for (size_t i = 0; i < source.size(); ++i) {
        if (is_drawn(state[i])) put(source[i], i, FlowEnd::leaves_begin);
    }
    for (size_t i = 0; i < source.size(); ++i) {
        if (!is_drawn(state[i])) continue;
        const bool at_end = state[i] == static_cast<uint8_t>(FlowState::to_end);
        put(destination[i], i, at_end ? FlowEnd::enters_end : FlowEnd::enters_begin);
    }
    start.pop_back();
    return out;
}

}  // namespace lanescope::perfetto
