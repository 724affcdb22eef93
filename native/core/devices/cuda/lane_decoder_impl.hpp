// How LaneDecoder goes through records of any type; include it where that is another one than a span.
#pragma once
#include <algorithm>

#include "core/devices/cuda/lane_decoder.hpp"

namespace lanescope::cuda {

// Stamps are unwrapped by the nearest reading: a fall by more than half the range is a wrap. A rise by more than half
// may be a long silence, or a small step back over the wrap.
struct LaneDecoder::Clock {
    int64_t range;
    int64_t step_back;
    int64_t epoch = 0;

    bool is_odd(int64_t delta) const noexcept { return static_cast<uint64_t>(delta) > static_cast<uint64_t>(range / 2); }

    // Take in a step that is odd; return what is doubtful about the stamp behind it.
    uint32_t step(int64_t delta, Summary& summary) noexcept {
        uint32_t flags = 0;
        if (delta < -(range / 2)) {
            epoch += range;
            ++summary.wraps;
        } else if (delta < 0) {
            flags = clock_suspect | (-delta > step_back ? uint32_t{wrap_ambiguous} : 0);
            ++summary.backward;
            summary.jumps += -delta > step_back;
        } else {
            flags = wrap_ambiguous;
            ++summary.jumps;
            if (range - delta <= step_back) {
                flags |= clock_suspect;
                epoch -= range;
                ++summary.backward;
            }
        }
        return flags;
    }
};

// What is known of the lane so far.
struct LaneDecoder::Lane {
    uint32_t number;
    Clock clock;
    Summary summary{};
    size_t rows = 0;          // slices so far
    size_t base = 0;          // the first of this launch
    int32_t tail = -1;        // the open row that began last, counted from the base
    int32_t depth = 0;        // rows on the stack
    bool is_stack = true;     // the open rows are on the stack, not in the list
    bool finalized = false;
    bool is_earlier = false;  // the records are those of an earlier launch
    uint32_t absent = 0;      // launches without a record
    uint32_t launch = 0;
    uint32_t expected = 0;    // next position, if none is missing
    uint32_t gap_index = 0;   // position behind the last gap
    size_t gap_row = 0;       // rows that there were before it
    uint32_t unreadable = 0;  // words since the last record
    uint32_t last_bad = 0;    // position of the last of them
    int64_t stamp = 0;
    int64_t last = 0;         // the stamp, unwrapped
};

// Take in records before `end` that are nothing but begins and ends, one in the other, at positions without a gap and in the order of
// time: almost all there are. Return where that stops.
template <typename Records>
size_t LaneDecoder::run(const Records& all, size_t at, size_t end, Lane& lane) noexcept {
    if (lane.finalized || lane.unreadable > 0) return at;
    // What every record reads or changes is kept out of memory that other stores might reach.
    const Records records = all;
    const auto begin = slices_.begin.data();
    const auto dur = slices_.dur.data();
    const auto begin_index = slices_.begin_index.data();
    const auto end_index = slices_.end_index.data();
    const auto event = slices_.event.data();
    const auto used = work_.used.data();
    const auto stack = work_.number.data();
    const auto room = slices_.begin.size();
    const auto step = tick_step_;
    const auto clock = lane.clock;
    const auto base = lane.base, gap_row = lane.gap_row;
    const auto start = at;
    auto rows = lane.rows;
    auto depth = static_cast<size_t>(lane.depth);
    auto stamp = lane.stamp;
    auto expected = lane.expected;
    auto shortest = slices_.shortest;
    for (; at < end; ++at, ++expected) {
        const Record record = records[at];
        const auto now = static_cast<int64_t>(record.stamp);
        if (record.kind > Kind::end || record.index != expected || clock.is_odd(now - stamp) ||
            !step.knows(record.stamp)) {
            break;
        }
        const auto tick = now + clock.epoch;
        if (record.kind == Kind::begin) {
            if (rows == room) break;
            begin[rows] = tick;
            begin_index[rows] = record.index;
            event[rows] = record.event;
            used[record.event] = 1;
            stack[depth++] = static_cast<int32_t>(rows - base);
            ++rows;
        } else {
            if (depth == 0) break;
            const auto row = base + static_cast<size_t>(stack[depth - 1]);
            const auto length = tick - begin[row];
            if (event[row] != record.event || row < gap_row || length < 0) break;
            dur[row] = length;
            end_index[row] = record.index;
            shortest = std::min(shortest, length);
            --depth;
        }
        stamp = now;
    }
    lane.summary.records += static_cast<int64_t>(at - start);
    lane.rows = rows;
    lane.depth = static_cast<int32_t>(depth);
    lane.stamp = stamp;
    lane.last = at > start ? stamp + clock.epoch : lane.last;
    lane.expected = expected;
    slices_.shortest = shortest;
    return at;
}

template <typename Records>
void LaneDecoder::decode(uint32_t number, const Records& records, bool is_full, Summary& result,
                         std::span<const int64_t> cuts) noexcept {
    const auto lane_base = slices_.size;
    const auto instants_base = instants_.size;
    Lane lane{number, Clock{int64_t{1} << rules_.stamp_bits, static_cast<int64_t>(rules_.step_back)}};
    lane.rows = lane.base = lane_base;
    for (size_t at = 0; at < records.size(); ++at) {
        const Record record = records[at];
        if (record.kind >= Kind::unreadable) continue;
        lane.stamp = static_cast<int64_t>(record.stamp);
        break;
    }
    lane.last = lane.stamp;
    lane.summary.first = lane.summary.min = lane.summary.max = lane.stamp;
    const size_t end = cuts.empty() ? records.size() : std::min(static_cast<size_t>(cuts[0]), records.size());
    size_t at = 0;
    for (; at < end; ++at) {
        at = run(records, at, end, lane);
        if (at == end || !step<true>(records[at], lane)) break;
    }
    if (at < end) leave_stack(lane);
    for (; at < end; ++at) step<false>(records[at], lane);
    size_t passed = 0, left = 0;  // cuts so far; those since the last readable record
    for (; at < records.size(); ++at) {
        for (; passed < cuts.size() && static_cast<size_t>(cuts[passed]) <= at; ++passed) ++left;
        const Record record = records[at];
        if (left > 0 && record.kind < Kind::unreadable) {
            go_back(record, lane, static_cast<uint32_t>(left));
            left = 0;
        }
        if (lane.is_stack) leave_stack(lane);
        step<false>(record, lane);
    }
    finish(lane, is_full, lane_base, instants_base, result);
}

}  // namespace lanescope::cuda
