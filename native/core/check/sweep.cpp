#include "core/check/sweep.hpp"

#include <algorithm>
#include <functional>

namespace lanescope::check {

void Sweep::add_lanes(std::span<const Discipline> all) {
    for (size_t lane = lanes_.size(); lane < all.size(); ++lane) lanes_.push_back({.discipline = all[lane]});
}

void Sweep::add_gaps(std::span<const int64_t> track, std::span<const int64_t> end) {
    for (size_t i = 0; i < track.size(); ++i) {
        if (static_cast<uint64_t>(track[i]) >= lanes_.size()) continue;
        Lane& lane = lanes_[static_cast<size_t>(track[i])];
        lane.has_gaps = true;
        if (lane.begin >= end[i]) {
            lane.is_whole = true;  // the row that it asks for may have passed
        } else {
            lane.gaps.push_back(end[i]);
            std::push_heap(lane.gaps.begin(), lane.gaps.end(), std::greater<>());
        }
    }
}

bool Sweep::is_whole(size_t index) const {
    const Lane& lane = lanes_[index];
    return lane.is_whole || (lane.is_unordered && (!points_ || lane.has_ticks || lane.has_gaps));
}

void Sweep::open(std::vector<int64_t>& rows) const {
    rows.clear();
    for (const Lane& lane : lanes_) {
        if (is_whole(static_cast<size_t>(&lane - lanes_.data()))) continue;
        if (!lane.is_latest_kept) rows.push_back(lane.latest);
        for (const Open& slice : lane.open) {
            if (!slice.is_kept) rows.push_back(slice.row);
        }
    }
}

void Sweep::keep(int64_t row) {
    if (row < base_) {
        earlier_.push_back(row);
    } else {
        keep_[static_cast<size_t>(row - base_)] = 1;
        ++kept_;
    }
}

// All rows that begin together are kept: which of them counts as the first is the rule's business.
bool Sweep::is_after_gap(Lane& lane, int64_t begin) const {
    while (!lane.gaps.empty() && lane.gaps.front() <= begin) {
        std::pop_heap(lane.gaps.begin(), lane.gaps.end(), std::greater<>());
        lane.gaps.pop_back();
        lane.after_gap = begin;
    }
    return begin == lane.after_gap;
}

// Whether a row that begins before this one has more ticks.
bool Sweep::falls(Lane& lane, int64_t begin, int64_t ticks) const {
    lane.has_ticks = true;
    return ticks < (begin > lane.begin ? std::max(lane.ticks_before, lane.ticks_here) : lane.ticks_before);
}

// Whether the row clashes with one before it; those it clashes with are kept.
bool Sweep::clashes(Lane& lane, int64_t begin, int64_t end, bool is_kept) {
    if (lane.discipline == Discipline::disjoint) {
        // Only the latest row can clash and not be kept yet: any other that has not ended clashed with the latest.
        const bool clash = begin < lane.reach;
        if (clash && !lane.is_latest_kept) keep(lane.latest);
        lane.latest = row_;
        lane.is_latest_kept = is_kept || clash;
        return clash;
    }
    if (lane.discipline == Discipline::free) return false;
    auto& open = lane.open;
    while (!open.empty() && open.back().end <= begin) open.pop_back();
    bool clash = false;
    size_t at = open.size();
    for (; at > 0 && open[at - 1].end < end; --at) {
        Open& inner = open[at - 1];
        if (inner.begin == begin) continue;  // this one holds it
        clash = true;
        if (!inner.is_kept) keep(inner.row);
        inner.is_kept = true;
    }
    if (open.size() == kMostOpen || open.size() - at > kMostCrossed) {
        lane.is_whole = true;
        std::vector<Open>().swap(open);
    } else {
        open.insert(open.begin() + static_cast<std::ptrdiff_t>(at), {begin, end, row_, is_kept || clash});
    }
    return clash;
}

size_t Sweep::pass(const Rows& rows, std::span<uint8_t> wanted) {
    const size_t n = rows.track.size();
    base_ = rows_;
    keep_ = wanted;
    kept_ = 0;
    earlier_.clear();
    for (size_t i = 0; i < n; ++i) {
        row_ = base_ + static_cast<int64_t>(i);
        const int64_t begin = rows.begin[i];
        const bool is_closed = !points_ && rows.length.has(i);
        int64_t end = begin;
        bool is_kept = !rows.flags.empty() && (rows.flags[i] & judged_) != 0;
        if (is_closed) {
            const int64_t length = rows.length.values[i], room = kHighest - std::max<int64_t>(begin, 0);
            end = begin + std::min(std::max<int64_t>(length, 0), room);
            is_kept |= length < 0 || length > room;
        } else if (!points_) {
            if (rows.last_seen.has(i)) end = std::max(begin, rows.last_seen.values[i]);
            is_kept = true;
        }
        is_kept |= rows.length_ticks.has(i) && rows.length_ticks.values[i] < 0;
        first_ = std::min(first_, begin);
        last_ = std::max(last_, end);

        if (static_cast<uint64_t>(rows.track[i]) >= lanes_.size()) {
            keep(row_);
            continue;
        }
        Lane& lane = lanes_[static_cast<size_t>(rows.track[i])];
        if (lane.is_whole) continue;
        if (begin < lane.begin) {
            lane.is_unordered = true;
            lane.is_whole = !points_;
            if (lane.is_whole) continue;
        }
        if (rows.ticks.has(i)) {
            const int64_t ticks = rows.ticks.values[i];
            if (falls(lane, begin, ticks)) {
                lane.is_whole = true;
                continue;
            }
            if (begin > lane.begin) {
                lane.ticks_before = std::max(lane.ticks_before, lane.ticks_here);
                lane.ticks_here = ticks;
            } else {
                lane.ticks_here = std::max(lane.ticks_here, ticks);
            }
        } else if (begin > lane.begin) {
            lane.ticks_before = std::max(lane.ticks_before, lane.ticks_here);
            lane.ticks_here = kLowest;
        }
        is_kept |= is_after_gap(lane, begin);
        lane.begin = begin;
        if (end > begin) {
            is_kept |= clashes(lane, begin, end, is_kept);
            if (end > lane.reach) {
                lane.covered += static_cast<uint64_t>(end) - static_cast<uint64_t>(std::max(begin, lane.reach));
                lane.reach = end;
            }
        }
        if (is_kept) {
            keep(row_);
        } else if (is_closed) {
            lane.longest = std::max(lane.longest, rows.length.values[i]);
        }
    }
    rows_ += static_cast<int64_t>(n);
    return kept_;
}

}  // namespace lanescope::check
