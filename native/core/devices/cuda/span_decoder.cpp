// Lanes whose records are whole regions: nothing is paired, but all else is as in lanes of begins and ends.
#include <algorithm>

#include "core/devices/cuda/lane_decoder_impl.hpp"

namespace lanescope::cuda {
namespace {

// The reading of a counter next to another one: `by` may be negative.
int64_t signed_step(uint64_t from, uint64_t to, unsigned bits) noexcept {
    const auto unused = 64 - bits;
    return static_cast<int64_t>((to - from) << unused) >> unused;
}

}  // namespace

void LaneDecoder::decode_spans(uint32_t number, std::span<const SpanRecord> records, bool is_full,
                               Summary& result) noexcept {
    const auto base = slices_.size, instants_base = instants_.size;
    const auto bits = rules_.stamp_bits;
    const uint64_t mask = (uint64_t{1} << bits) - 1;
    Lane lane{number, Clock{int64_t{1} << bits, static_cast<int64_t>(rules_.step_back)}};
    lane.rows = lane.base = base;
    auto& summary = lane.summary;
    int64_t start = 0;    // of the last record, unwrapped
    bool sorted = true;   // no region begins before the end of another
    for (const auto& record : records) {
        if (record.kind == Kind::empty) continue;
        if (record.kind == Kind::unreadable) {
            ++lane.unreadable;
            lane.last_bad = record.index;
            continue;
        }
        const auto begin = summary.records == 0 ? static_cast<int64_t>(record.begin & mask)
                                                : start + signed_step(static_cast<uint64_t>(start), record.begin, bits);
        const bool has_end = record.kind == Kind::begin;
        const auto length = has_end ? signed_step(record.begin, record.end, bits) : 0;
        const auto end = begin + std::max<int64_t>(0, length);
        if (summary.records == 0) {
            summary.first = summary.min = begin;
            summary.max = lane.last = end;
        }
        uint32_t flags = 0;
        if (record.index != lane.expected) {
            add_gap(lane, std::max<int64_t>(0, begin - lane.last), record.index - lane.expected);
            lane.gap_index = record.index;
            flags |= after_gap;
        }
        lane.expected = record.index + 1;
        ++summary.records;
        summary.min = std::min(summary.min, begin);
        summary.max = std::max(summary.max, end);
        tick_step_.add(static_cast<uint64_t>(begin) & mask, mask);
        if (has_end) tick_step_.add(record.end & mask, mask);
        start = begin;
        if (record.kind == Kind::instant) {
            if (instants_.size == instants_.tick.size()) {
                is_whole_ = false;
                continue;
            }
            const auto row = instants_.size++;
            instants_.tick[row] = begin;
            instants_.index[row] = record.index;
            instants_.event[row] = record.event;
            instants_.flags[row] = flags;
            instants_.launch[row] = 0;
            instants_.is_end[row] = 0;
        } else {
            if (lane.rows == slices_.begin.size()) {
                is_whole_ = false;
                continue;
            }
            const auto row = lane.rows++;
            sorted = sorted && (row == base || begin >= lane.last);
            slices_.begin[row] = begin;
            slices_.dur[row] = length;
            slices_.begin_index[row] = slices_.end_index[row] = record.index;
            slices_.event[row] = record.event;
            work_.used[record.event] = 1;
            if (has_end) {
                slices_.shortest = std::min(slices_.shortest, length);
            } else {
                flags |= unfinished;
                ++summary.open;
            }
            if (length < 0) {
                flags |= negative;
                ++summary.negative;
            }
            flag(row, flags);
        }
        lane.last = std::max(lane.last, end);
    }
    summary.full = is_full;
    summary.last = summary.max;
    summary.launches = summary.records > 0 ? 1 : 0;
    summary.wraps = (summary.max >> bits) - (summary.min >> bits);
    for (size_t row = base; summary.open > 0 && row < lane.rows; ++row) {
        if ((slices_.flags[row] & unfinished) == 0) continue;
        slices_.dur[row] = std::max<int64_t>(0, summary.max - slices_.begin[row]);
        if (is_full) flag(row, truncated);
    }
    if (lane.unreadable > 0) add_gap(lane, -1, lane.last_bad + 1 - lane.expected);
    summary.slices = static_cast<int64_t>(lane.rows - base);
    summary.instants = static_cast<int64_t>(instants_.size - instants_base);
    slices_.size = lane.rows;
    if (!sorted) mark_by_time(base);
    result = summary;
}

}  // namespace lanescope::cuda
