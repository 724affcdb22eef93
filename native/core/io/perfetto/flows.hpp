// Flows of a drawing: which of them can be drawn, and what they do at each event.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace lanescope::perfetto {

// Events by number: spans, then points. Flows name the event at either end.
struct FlowEvents {
    std::span<const int64_t> span_begin;
    std::span<const int64_t> span_length;
    std::span<const uint8_t> span_known;  // 0 where the end is unknown; empty: all are known
    std::span<const int64_t> point_ts;

    uint64_t size() const { return span_begin.size() + point_ts.size(); }
    int64_t begin(uint64_t event) const {
        return event < span_begin.size() ? span_begin[event] : point_ts[event - span_begin.size()];
    }
    bool lasts(uint64_t event) const {
        return event < span_begin.size() && span_length[event] > 0 && (span_known.empty() || span_known[event] != 0);
    }
};

// How a flow is drawn.
enum class FlowState : uint8_t { undrawn, to_begin, to_end, tied };

// The flows whose destination (a slice) was running already when their source began, and began no later than they arrive.
// Slices are rows of `slice_ts`, -1: none. `left` is read where the source is -1; it may be empty if none is.
// False: a slice lies outside.
bool running_flows(std::span<const int64_t> source, std::span<const int64_t> destination, std::span<const int64_t> left,
                   std::span<const int64_t> arrived, std::span<const int64_t> slice_ts, std::vector<int64_t>& found);

// Fill the state of each flow: its source has to begin before what it enters; return how many are tied, -1 if an event
// lies outside.
int64_t flow_states(const FlowEvents& events, std::span<const int64_t> source, std::span<const int64_t> destination,
                    std::span<uint8_t> state);

// Where an end of a flow lies: at the begin of its slice or on a point, at the end of its slice, elsewhere.
enum class FlowPlace : uint8_t { begin, end, elsewhere };
constexpr uint32_t flow_places = 3;

// Split the group of each flow by where its ends lie: g becomes (g * 3 + place of the source) * 3 + place of the
// destination. False: an event lies outside.
bool split_by_place(const FlowEvents& events, std::span<const int64_t> source, std::span<const int64_t> destination,
                    std::span<const int64_t> left, std::span<const int64_t> arrived, std::span<uint32_t> group);

// Number the flows from 1, group by group and inside of one in their order. `sizes`, of all groups that there are, is
// filled with how many flows each has.
std::vector<uint32_t> number_by_group(std::span<const uint32_t> group, std::span<int64_t> sizes);

// What flows do at events first .. first + count: those of event i are [start[i], start[i + 1]), in the order of the flows,
// those that leave before those that enter. `number` is that of each flow; empty: they are numbered from 1.
struct FlowsByEvent {
    std::vector<uint32_t> start;  // empty: no flow meets any of these events
    std::vector<uint32_t> id;
    std::vector<uint8_t> end;  // FlowEnd
};
FlowsByEvent flows_by_event(std::span<const int64_t> source, std::span<const int64_t> destination,
                            std::span<const uint8_t> state, std::span<const uint32_t> number, uint64_t first,
                            uint64_t count);

}  // namespace lanescope::perfetto
