#include "core/devices/cuda/lane_decoder.hpp"

#include <algorithm>
#include <numeric>

#include "core/devices/cuda/lane_decoder_impl.hpp"

namespace lanescope::cuda {

void TickStep::refine(uint64_t stamp, uint64_t mask) noexcept {
    if (distinct_ == 0) reference_ = stamp;
    if (distinct_ < enough && std::find(seen_, seen_ + distinct_, stamp) == seen_ + distinct_) {
        seen_[distinct_++] = stamp;
    }
    // The shorter way: a stamp before the reference has not wrapped, which would leave only powers of two of the step.
    const uint64_t distance = std::min((stamp - reference_) & mask, (reference_ - stamp) & mask);
    if (step_ == 0 || distance % step_ != 0) step_ = std::gcd(step_, distance);
    const bool is_power_of_two = step_ != 0 && (step_ & (step_ - 1)) == 0;
    rest_ = distinct_ == enough && is_power_of_two ? step_ - 1 : ~uint64_t{0};
}

TickStep TickStep::of(std::span<const uint64_t> seen, uint64_t step) noexcept {
    TickStep found;
    found.distinct_ = static_cast<unsigned>(std::min<size_t>(enough, seen.size()));
    std::copy_n(seen.begin(), found.distinct_, found.seen_);
    if (found.distinct_ > 0) found.reference_ = seen[0];
    found.step_ = step;
    return found;
}

void TickStep::merge(const TickStep& other, uint64_t mask) noexcept {
    std::for_each_n(other.seen_, other.distinct_, [&](uint64_t stamp) { refine(stamp, mask); });
    step_ = std::gcd(step_, other.step_);
    const bool is_power_of_two = step_ != 0 && (step_ & (step_ - 1)) == 0;
    rest_ = distinct_ == enough && is_power_of_two ? step_ - 1 : ~uint64_t{0};
}

void LaneDecoder::flag(size_t row, uint32_t flags) noexcept {
    if (flags == 0) return;
    slices_.flags[row] |= flags;
    slices_.seen |= flags;
}

// `tail` is the open row that began last.
inline void LaneDecoder::link(int32_t row, int32_t& tail) noexcept {
    const auto at = static_cast<size_t>(row);
    work_.prev[at] = tail;
    work_.unmarked[at] = row;
    if (tail >= 0) work_.next[static_cast<size_t>(tail)] = row;
    tail = row;
}

int32_t LaneDecoder::last_unmarked(int32_t row) noexcept {
    while (row >= 0) {
        auto& parent = work_.unmarked[static_cast<size_t>(row)];
        if (parent == row) return row;
        if (parent >= 0) parent = work_.unmarked[static_cast<size_t>(parent)];
        row = parent;
    }
    return -1;
}

inline void LaneDecoder::unlink(int32_t row, int32_t& tail, size_t base, const int32_t* row_of) noexcept {
    if (tail != row) [[unlikely]] return unlink_crossing(row, tail, base, row_of);
    const auto at = static_cast<size_t>(row);
    tail = work_.prev[at];
    work_.unmarked[at] = row - 1;
}

// A row that ends while rows that began later are open crosses all of those. Each row is marked once, however often it
// is crossed, so this stays linear (up to the inverse of Ackermann's function) on hostile input.
void LaneDecoder::unlink_crossing(int32_t row, int32_t tail, size_t base, const int32_t* row_of) noexcept {
    const auto mark = [&](int32_t crossing) {
        const auto at = static_cast<size_t>(crossing);
        flag(base + (row_of != nullptr ? static_cast<size_t>(row_of[at]) : at), crosses);
        work_.unmarked[at] = crossing - 1;
    };
    for (auto later = last_unmarked(tail); later > row; later = last_unmarked(later)) mark(later);
    mark(row);
    const auto before = work_.prev[static_cast<size_t>(row)];
    const auto behind = work_.next[static_cast<size_t>(row)];
    work_.prev[static_cast<size_t>(behind)] = before;
    if (before >= 0) work_.next[static_cast<size_t>(before)] = behind;
}

void LaneDecoder::add_gap(Lane& lane, int64_t dur, uint32_t missing) noexcept {
    if (gaps_.size == gaps_.tick.size()) {
        is_whole_ = false;
        return;
    }
    const auto at = gaps_.size++;
    gaps_.tick[at] = lane.last;
    gaps_.dur[at] = dur;
    gaps_.lane[at] = lane.number;
    gaps_.index[at] = lane.expected;
    gaps_.missing[at] = missing;
    gaps_.bad[at] = lane.unreadable;
    lane.summary.missing += missing;
    lane.summary.bad += lane.unreadable;
    lane.unreadable = 0;
}

// Put the open rows into the list, and what else it needs of the rows that are not open any more.
void LaneDecoder::leave_stack(Lane& lane) noexcept {
    lane.is_stack = false;
    const auto count = static_cast<int32_t>(lane.rows - lane.base);
    for (int32_t row = 0; row < count; ++row) work_.unmarked[static_cast<size_t>(row)] = row - 1;
    for (int32_t i = 0; i < lane.depth; ++i) {
        const auto row = work_.number[static_cast<size_t>(i)];
        auto& top = work_.top[slices_.event[lane.base + static_cast<size_t>(row)]];
        work_.below[static_cast<size_t>(row)] = top;
        top = row;
        link(row, lane.tail);
    }
}

inline void LaneDecoder::close_row(int32_t local, const Lane& lane, int64_t last_seen, uint32_t gap_index,
                                   uint32_t flags) noexcept {
    const auto row = lane.base + static_cast<size_t>(local);
    const bool behind_gap = slices_.begin_index[row] >= gap_index;
    slices_.dur[row] = std::max<int64_t>(0, last_seen - slices_.begin[row]);
    slices_.end_index[row] = slices_.begin_index[row];
    flag(row, unfinished | flags | (behind_gap ? 0 : uint32_t{truncated}));
}

// Leave the rows open that no record ended.
void LaneDecoder::close_launch(Lane& lane, int64_t last_seen, uint32_t gap_index, uint32_t flags) noexcept {
    if (lane.is_stack) {
        lane.summary.open += lane.depth;
        while (lane.depth > 0) {
            close_row(work_.number[static_cast<size_t>(--lane.depth)], lane, last_seen, gap_index, flags);
        }
        return;
    }
    for (; lane.tail >= 0; lane.tail = work_.prev[static_cast<size_t>(lane.tail)]) {
        close_row(lane.tail, lane, last_seen, gap_index, flags);
        work_.top[slices_.event[lane.base + static_cast<size_t>(lane.tail)]] = -1;
        ++lane.summary.open;
    }
}

// Begin the records of an earlier launch, so many before the one in front, of which this is the first that is readable. It was over before this one began,
// so its stamps lie in the past, however large they are.
void LaneDecoder::go_back(const Record& first, Lane& lane, uint32_t launches) noexcept {
    auto& summary = lane.summary;
    close_launch(lane, lane.last, lane.gap_index, 0);
    if (lane.is_stack) leave_stack(lane);
    lane.finalized = false;
    lane.is_earlier = true;
    lane.base = lane.rows;
    lane.launch += launches;
    // Launches that left nothing here have a number all the same, and so has one that wrote nothing in front of them.
    lane.absent += launches - 1;
    if (summary.records == 0) {
        lane.absent += 1;
        return;
    }
    summary.max = std::max(summary.max, lane.last);
    lane.stamp = static_cast<int64_t>(first.stamp);
    if (lane.stamp + lane.clock.epoch > lane.last) lane.clock.epoch -= lane.clock.range;
    lane.last = lane.stamp + lane.clock.epoch;
    summary.min = std::min(summary.min, lane.last);
}

void LaneDecoder::mark_by_time(size_t base) noexcept {
    size_t count = 0;
    for (size_t row = base; row < slices_.size; ++row) {
        if (slices_.dur[row] <= 0) continue;
        const auto begin = slices_.begin[row];
        const auto end = begin + slices_.dur[row];
        const auto local = static_cast<uint32_t>(row - base);
        work_.edges[count++] = {begin, end, local, false};
        work_.edges[count++] = {end, begin, local, true};
    }
    const auto edges = work_.edges.first(count);
    // Where times are equal: ends first, the inner one first; of begins the outer one first.
    std::sort(edges.begin(), edges.end(), [](const SliceEdge& a, const SliceEdge& b) {
        if (a.time != b.time) return a.time < b.time;
        if (a.is_end != b.is_end) return a.is_end;
        if (a.other != b.other) return a.other > b.other;
        return a.is_end ? a.row > b.row : a.row < b.row;
    });
    // The list wants its rows numbered in the order of their begins; `below` is free now and says which row a number is.
    int32_t numbered = 0;
    int32_t tail = -1;
    for (const auto& edge : edges) {
        if (edge.is_end) {
            unlink(work_.number[edge.row], tail, base, work_.below.data());
        } else {
            work_.number[edge.row] = numbered;
            work_.below[static_cast<size_t>(numbered)] = static_cast<int32_t>(edge.row);
            link(numbered++, tail);
        }
    }
}

// Take in a record. Return false, having done nothing, where the open rows are a stack and the record does not fit to one.
template <bool is_stack>
bool LaneDecoder::step(const Record& record, Lane& lane) noexcept {
    if (record.kind == Kind::empty) return true;
    if (record.kind == Kind::unreadable) {
        ++lane.unreadable;
        lane.last_bad = record.index;
        return true;
    }
    if constexpr (is_stack) {
        if (lane.finalized) return false;
        if (record.kind == Kind::end) {
            if (lane.depth == 0) return false;
            const auto top = lane.base + static_cast<size_t>(work_.number[static_cast<size_t>(lane.depth - 1)]);
            if (slices_.event[top] != record.event) return false;
        }
    } else {
        if (lane.finalized) {
            ++lane.summary.after_finalize;
            if (!rules_.split) return true;
            lane.finalized = false;
            lane.base = lane.rows;
            ++lane.launch;
        } else if (lane.launch > 0 && !lane.is_earlier) {
            ++lane.summary.after_finalize;
        }
    }
    ++lane.summary.records;
    const auto delta = static_cast<int64_t>(record.stamp) - lane.stamp;
    lane.stamp = static_cast<int64_t>(record.stamp);
    tick_step_.add(record.stamp, (uint64_t{1} << rules_.stamp_bits) - 1);
    uint32_t flags = 0;
    if (lane.clock.is_odd(delta)) flags = lane.clock.step(delta, lane.summary);
    const auto tick = lane.stamp + lane.clock.epoch;
    if (flags != 0) {
        // Where time does not step back, the extremes are the first stamp and the last.
        lane.summary.max = std::max(lane.summary.max, lane.last);
        lane.summary.min = std::min(lane.summary.min, tick);
    }
    if (record.index != lane.expected) {
        add_gap(lane, std::max<int64_t>(0, tick - lane.last), record.index - lane.expected);
        lane.gap_index = record.index;
        lane.gap_row = lane.rows;
        flags |= after_gap;
    }
    lane.expected = record.index + 1;
    lane.last = tick;

    if (record.kind == Kind::begin) {
        if (lane.rows == slices_.begin.size()) {
            is_whole_ = false;
            return true;
        }
        const auto local = static_cast<int32_t>(lane.rows - lane.base);
        slices_.begin[lane.rows] = tick;
        slices_.begin_index[lane.rows] = record.index;
        slices_.event[lane.rows] = record.event;
        work_.used[record.event] = 1;
        if (lane.launch > 0) slices_.launch[lane.rows] = lane.launch;
        flag(lane.rows, flags);
        if constexpr (is_stack) {
            work_.number[static_cast<size_t>(lane.depth++)] = local;
        } else {
            auto& top = work_.top[record.event];
            work_.below[static_cast<size_t>(local)] = top;
            top = local;
            link(local, lane.tail);
        }
        ++lane.rows;
    } else if (record.kind == Kind::end && (is_stack || work_.top[record.event] >= 0)) {
        const auto local = is_stack ? work_.number[static_cast<size_t>(--lane.depth)] : work_.top[record.event];
        const auto row = lane.base + static_cast<size_t>(local);
        const auto dur = tick - slices_.begin[row];
        slices_.dur[row] = dur;
        slices_.end_index[row] = record.index;
        slices_.shortest = std::min(slices_.shortest, dur);
        flags &= ~uint32_t{after_gap};
        if (dur < 0) {
            flags |= negative;
            ++lane.summary.negative;
        }
        if (row < lane.gap_row) flags |= inferred_identity;
        flag(row, flags);
        if constexpr (!is_stack) {
            unlink(local, lane.tail, lane.base, nullptr);
            work_.top[record.event] = work_.below[static_cast<size_t>(local)];
        }
    } else if (record.kind == Kind::finalize) {
        close_launch(lane, tick, lane.gap_index, 0);
        ++lane.summary.finalizes;
        lane.summary.finalize = tick;
        lane.finalized = true;
    } else if (instants_.size == instants_.tick.size()) {
        is_whole_ = false;
    } else {
        const auto row = instants_.size++;
        instants_.tick[row] = tick;
        instants_.index[row] = record.index;
        instants_.event[row] = record.event;
        instants_.flags[row] = flags;
        instants_.launch[row] = lane.launch;
        instants_.is_end[row] = record.kind == Kind::end;
        lane.summary.unmatched += record.kind == Kind::end;
    }
    return true;
}

template bool LaneDecoder::step<true>(const Record&, Lane&) noexcept;
template bool LaneDecoder::step<false>(const Record&, Lane&) noexcept;

void LaneDecoder::finish(Lane& lane, bool is_full, size_t lane_base, size_t instants_base, Summary& result) noexcept {
    auto& summary = lane.summary;
    const bool has_tail = lane.unreadable > 0 && (rules_.split || !lane.finalized);
    summary.full = is_full && !lane.finalized;
    close_launch(lane, lane.last, has_tail ? lane.expected : lane.gap_index,
                 summary.full ? uint32_t{truncated} : 0);
    if (has_tail) add_gap(lane, -1, lane.last_bad + 1 - lane.expected);
    summary.last = lane.last;
    summary.max = std::max(summary.max, lane.last);
    summary.launches = summary.records > 0 ? lane.launch + 1 - lane.absent : 0;
    summary.slices = static_cast<int64_t>(lane.rows - lane_base);
    summary.instants = static_cast<int64_t>(instants_.size - instants_base);
    slices_.size = lane.rows;
    if (summary.backward > 0 || lane.launch > 0) mark_by_time(lane_base);
    result = summary;
}

template void LaneDecoder::decode(uint32_t, const std::span<const Record>&, bool, Summary&,
                                           std::span<const int64_t>) noexcept;

namespace {

// Move the first `count` rows of a column's part down to row `to` of the whole column.
template <class T>
void move_down(std::span<T> all, size_t to, std::span<T> part, size_t count) noexcept {
    if (part.data() != all.data() + to) std::copy_n(part.data(), count, all.data() + to);
}

}  // namespace

Slices part(const Slices& all, const OutputSpan& share) noexcept {
    const auto cut = [&](auto column) { return column.subspan(share.slices_from, share.slices); };
    return {cut(all.begin),       cut(all.dur),       cut(all.flags), cut(all.launch),
            cut(all.begin_index), cut(all.end_index), cut(all.event)};
}

Instants part(const Instants& all, const OutputSpan& share) noexcept {
    const auto cut = [&](auto column) { return column.subspan(share.instants_from, share.instants); };
    return {cut(all.tick), cut(all.flags), cut(all.launch), cut(all.index), cut(all.event), cut(all.is_end)};
}

Gaps part(const Gaps& all, const OutputSpan& share) noexcept {
    const auto cut = [&](auto column) { return column.subspan(share.gaps_from, share.gaps); };
    return {cut(all.tick), cut(all.dur), cut(all.lane), cut(all.index), cut(all.missing), cut(all.bad)};
}

void append(Slices& all, const Slices& part) noexcept {
    const auto move = [&](auto column) { move_down(all.*column, all.size, part.*column, part.size); };
    move(&Slices::begin), move(&Slices::dur), move(&Slices::flags), move(&Slices::launch);
    move(&Slices::begin_index), move(&Slices::end_index), move(&Slices::event);
    all.size += part.size;
    all.seen |= part.seen;
    all.shortest = std::min(all.shortest, part.shortest);
}

void append(Instants& all, const Instants& part) noexcept {
    const auto move = [&](auto column) { move_down(all.*column, all.size, part.*column, part.size); };
    move(&Instants::tick), move(&Instants::flags), move(&Instants::launch);
    move(&Instants::index), move(&Instants::event), move(&Instants::is_end);
    all.size += part.size;
}

void append(Gaps& all, const Gaps& part) noexcept {
    const auto move = [&](auto column) { move_down(all.*column, all.size, part.*column, part.size); };
    move(&Gaps::tick), move(&Gaps::dur), move(&Gaps::lane);
    move(&Gaps::index), move(&Gaps::missing), move(&Gaps::bad);
    all.size += part.size;
}

size_t mark_below_resolution(const Slices& slices, size_t from, size_t to, int64_t step) noexcept {
    size_t count = 0;
    // No branches: which slices are short is hard to predict.
    for (size_t row = from; row < to; ++row) {
        const auto is_short = static_cast<uint64_t>(slices.dur[row] - 2 * step) >> 63;
        const auto is_odd = static_cast<uint32_t>((slices.flags[row] & (unfinished | negative)) != 0);
        const auto found = static_cast<uint32_t>(is_short) & ~is_odd;
        slices.flags[row] |= found * below_resolution;
        count += found;
    }
    return count;
}

}  // namespace lanescope::cuda
