#include "core/cuda/lanes.hpp"

#include <algorithm>
#include <numeric>

namespace lanescope::cuda {

void TickStep::refine(uint64_t stamp, uint64_t mask) noexcept {
    if (distinct_ == 0) reference_ = stamp;
    if (distinct_ < enough && std::find(seen_, seen_ + distinct_, stamp) == seen_ + distinct_) {
        seen_[distinct_++] = stamp;
    }
    const uint64_t distance = (stamp - reference_) & mask;
    if (step_ == 0 || distance % step_ != 0) step_ = std::gcd(step_, distance);
    const bool is_power_of_two = step_ != 0 && (step_ & (step_ - 1)) == 0;
    rest_ = distinct_ == enough && is_power_of_two ? step_ - 1 : ~uint64_t{0};
}

void TickStep::merge(const TickStep& other, uint64_t mask) noexcept {
    std::for_each_n(other.seen_, other.distinct_, [&](uint64_t stamp) { refine(stamp, mask); });
    step_ = std::gcd(step_, other.step_);
    const bool is_power_of_two = step_ != 0 && (step_ & (step_ - 1)) == 0;
    rest_ = distinct_ == enough && is_power_of_two ? step_ - 1 : ~uint64_t{0};
}

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
            flags = clock_suspect | (-delta > step_back ? uint32_t{epoch_ambiguous} : 0);
            ++summary.backward;
            summary.jumps += -delta > step_back;
        } else {
            flags = epoch_ambiguous;
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

inline void LaneDecoder::flag(size_t row, uint32_t flags) noexcept {
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

// Leave the rows open that no record ended, from `tail` on; return how many.
int64_t LaneDecoder::close_launch(int32_t tail, size_t base, int64_t last_seen, uint32_t gap_index,
                                  uint32_t flags) noexcept {
    int64_t count = 0;
    for (; tail >= 0; tail = work_.prev[static_cast<size_t>(tail)]) {
        const auto row = base + static_cast<size_t>(tail);
        const bool behind_gap = slices_.begin_index[row] >= gap_index;
        slices_.dur[row] = std::max<int64_t>(0, last_seen - slices_.begin[row]);
        slices_.end_index[row] = slices_.begin_index[row];
        flag(row, open_end | flags | (behind_gap ? 0 : uint32_t{truncated}));
        work_.top[slices_.event[row]] = -1;
        ++count;
    }
    return count;
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
    std::sort(edges.begin(), edges.end(), [](const Edge& a, const Edge& b) {
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

void LaneDecoder::decode(uint32_t lane, const LaneRecords& input, Summary& result) noexcept {
    const auto mask = (uint64_t{1} << rules_.stamp_bits) - 1;
    const auto lane_base = slices_.size;
    const auto instants_base = instants_.size;
    auto rows = lane_base;    // slices so far
    auto base = lane_base;    // the first of this launch
    int32_t tail = -1;        // the open row that began last, counted from the base
    uint32_t launch = 0;
    uint32_t expected = 0;    // next position, if none is missing
    uint32_t gap_index = 0;   // position behind the last gap
    uint32_t unreadable = 0;  // words since the last record
    uint32_t last_bad = 0;    // position of the last of them
    int64_t others = 0;       // words that are no record, or that are left out
    bool finalized = false;
    Summary summary{};
    Clock clock{int64_t{1} << rules_.stamp_bits, static_cast<int64_t>(rules_.step_back)};

    const auto first = std::find_if(input.records.begin(), input.records.end(),
                                    [](const Record& record) { return record.kind != Kind::unreadable; });
    int64_t stamp = first == input.records.end() ? 0 : static_cast<int64_t>(first->stamp);
    int64_t last = stamp;
    summary.first = summary.min = summary.max = stamp;

    const auto add_gap = [&](int64_t dur, uint32_t missing) {
        const auto at = gaps_.size++;
        gaps_.tick[at] = last;
        gaps_.dur[at] = dur;
        gaps_.lane[at] = lane;
        gaps_.index[at] = expected;
        gaps_.missing[at] = missing;
        gaps_.bad[at] = unreadable;
        summary.missing += missing;
        summary.bad += unreadable;
        unreadable = 0;
    };

    for (const auto& record : input.records) {
        if (record.kind == Kind::unreadable) [[unlikely]] {
            ++unreadable;
            ++others;
            last_bad = record.index;
            continue;
        }
        if (finalized) [[unlikely]] {
            ++summary.after_finalize;
            if (!rules_.split) {
                ++others;
                continue;
            }
            finalized = false;
            base = rows;
            ++launch;
        } else if (launch > 0) [[unlikely]] {
            ++summary.after_finalize;
        }
        const auto delta = static_cast<int64_t>(record.stamp) - stamp;
        stamp = static_cast<int64_t>(record.stamp);
        tick_step_.add(record.stamp, mask);
        uint32_t flags = 0;
        if (clock.is_odd(delta)) [[unlikely]] flags = clock.step(delta, summary);
        const auto tick = stamp + clock.epoch;
        if (flags != 0) [[unlikely]] {
            // Where time does not step back, the extremes are the first stamp and the last.
            summary.max = std::max(summary.max, last);
            summary.min = std::min(summary.min, tick);
        }
        if (record.index != expected) [[unlikely]] {
            add_gap(std::max<int64_t>(0, tick - last), record.index - expected);
            gap_index = record.index;
            flags |= after_gap;
        }
        expected = record.index + 1;
        last = tick;

        auto& top = work_.top[record.event];
        if (record.kind == Kind::begin) {
            const auto local = static_cast<int32_t>(rows - base);
            slices_.begin[rows] = tick;
            slices_.begin_index[rows] = record.index;
            slices_.event[rows] = record.event;
            if (launch > 0) [[unlikely]] slices_.launch[rows] = launch;
            slices_.flags[rows] = flags;
            slices_.seen |= flags;
            work_.below[static_cast<size_t>(local)] = top;
            top = local;
            link(local, tail);
            ++rows;
        } else if (record.kind == Kind::end && top >= 0) {
            const auto local = top;
            const auto row = base + static_cast<size_t>(local);
            const auto dur = tick - slices_.begin[row];
            slices_.dur[row] = dur;
            slices_.end_index[row] = record.index;
            flags &= ~uint32_t{after_gap};
            if (dur < 0) [[unlikely]] {
                flags |= negative;
                ++summary.negative;
            }
            if (slices_.begin_index[row] < gap_index) [[unlikely]] flags |= inferred_identity;
            flag(row, flags);
            unlink(local, tail, base, nullptr);
            top = work_.below[static_cast<size_t>(local)];
        } else if (record.kind == Kind::finalize) {
            summary.open += close_launch(tail, base, tick, gap_index, 0);
            tail = -1;
            ++summary.finalizes;
            summary.finalize = tick;
            finalized = true;
        } else {
            const auto at = instants_.size++;
            instants_.tick[at] = tick;
            instants_.index[at] = record.index;
            instants_.event[at] = record.event;
            instants_.flags[at] = flags;
            instants_.launch[at] = launch;
            instants_.is_end[at] = record.kind == Kind::end;
            summary.unmatched += record.kind == Kind::end;
        }
    }
    const bool has_tail = unreadable > 0 && (rules_.split || !finalized);
    summary.full = input.full && !finalized;
    summary.open += close_launch(tail, base, last, has_tail ? expected : gap_index,
                                 summary.full ? uint32_t{truncated} : 0);
    if (has_tail) add_gap(-1, last_bad + 1 - expected);
    summary.records = static_cast<int64_t>(input.records.size()) - others;
    summary.last = last;
    summary.max = std::max(summary.max, last);
    summary.launches = summary.records > 0 ? launch + 1 : 0;
    summary.slices = static_cast<int64_t>(rows - lane_base);
    summary.instants = static_cast<int64_t>(instants_.size - instants_base);
    slices_.size = rows;
    if (summary.backward > 0 || launch > 0) mark_by_time(lane_base);
    result = summary;
}

namespace {

// Move the first `count` rows of a column's part down to row `to` of the whole column.
template <class T>
void move_down(std::span<T> all, size_t to, std::span<T> part, size_t count) noexcept {
    if (part.data() != all.data() + to) std::copy_n(part.data(), count, all.data() + to);
}

}  // namespace

Slices part(const Slices& all, const Share& share) noexcept {
    const auto cut = [&](auto column) { return column.subspan(share.slices_from, share.slices); };
    return {cut(all.begin),       cut(all.dur),       cut(all.flags), cut(all.launch),
            cut(all.begin_index), cut(all.end_index), cut(all.event)};
}

Instants part(const Instants& all, const Share& share) noexcept {
    const auto cut = [&](auto column) { return column.subspan(share.instants_from, share.instants); };
    return {cut(all.tick), cut(all.flags), cut(all.launch), cut(all.index), cut(all.event), cut(all.is_end)};
}

Gaps part(const Gaps& all, const Share& share) noexcept {
    const auto cut = [&](auto column) { return column.subspan(share.gaps_from, share.gaps); };
    return {cut(all.tick), cut(all.dur), cut(all.lane), cut(all.index), cut(all.missing), cut(all.bad)};
}

void append(Slices& all, const Slices& part) noexcept {
    const auto move = [&](auto column) { move_down(all.*column, all.size, part.*column, part.size); };
    move(&Slices::begin), move(&Slices::dur), move(&Slices::flags), move(&Slices::launch);
    move(&Slices::begin_index), move(&Slices::end_index), move(&Slices::event);
    all.size += part.size;
    all.seen |= part.seen;
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

size_t mark_below_resolution(Slices& slices, int64_t step) noexcept {
    size_t count = 0;
    for (size_t row = 0; row < slices.size; ++row) {
        if (slices.dur[row] >= 2 * step || (slices.flags[row] & (open_end | negative)) != 0) continue;
        slices.flags[row] |= below_resolution;
        ++count;
    }
    if (count > 0) slices.seen |= below_resolution;
    return count;
}

}  // namespace lanescope::cuda
