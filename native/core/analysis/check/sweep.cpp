#include "core/analysis/check/sweep.hpp"

#include <algorithm>
#include <functional>

namespace lanescope::check {

void Sweep::add_lanes(std::span<const Nesting> all) {
    for (size_t lane = lanes_.size(); lane < all.size(); ++lane) {
        lanes_.emplace_back();
        lanes_.back().nesting = all[lane];
    }
}

void Sweep::prepare(std::span<const int64_t> longest, std::span<const uint8_t> whole) {
    for (size_t lane = 0; lane < lanes_.size(); ++lane) {
        lanes_[lane].most = longest[lane];
        lanes_[lane].is_whole = whole[lane] != 0;
    }
}

void Sweep::add_gaps(std::span<const int64_t> track, std::span<const int64_t> end) {
    for (size_t i = 0; i < track.size(); ++i) {
        if (static_cast<uint64_t>(track[i]) >= lanes_.size()) continue;
        Lane& lane = lanes_[static_cast<size_t>(track[i])];
        lane.has_gaps = true;
        if (lane.begin >= end[i]) {
            lane.is_late = true;
        } else {
            lane.gaps.push_back(end[i]);
            std::push_heap(lane.gaps.begin(), lane.gaps.end(), std::greater<>());
            lane.gap = lane.gaps.front();
        }
    }
}

bool Sweep::is_whole(const Lane& lane) const {
    return lane.is_whole || (lane.is_unordered && (!points_ || lane.has_ticks || lane.has_gaps));
}

Result Sweep::result(size_t index) const {
    const Lane& lane = lanes_[index];
    return {static_cast<int64_t>(lane.covered), lane.longest, lane.is_late, is_whole(lane)};
}

void Sweep::open(std::vector<int64_t>& rows) const {
    rows.clear();
    for (const Lane& lane : lanes_) {
        if (is_whole(lane)) continue;
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

// Whether a gap has ended since the row before.
bool Sweep::reaches_gap(Lane& lane, int64_t begin) {
    bool found = false;
    while (!lane.gaps.empty() && lane.gaps.front() <= begin) {
        std::pop_heap(lane.gaps.begin(), lane.gaps.end(), std::greater<>());
        lane.gaps.pop_back();
        found = true;
    }
    lane.gap = lane.gaps.empty() ? kHighest : lane.gaps.front();
    return found;
}

// Whether the row clashes with one before it; those it clashes with are kept.
bool Sweep::clashes(Lane& lane, int64_t row, int64_t begin, int64_t end, bool is_kept) {
    if (lane.nesting == Nesting::disjoint) {
        // Only the latest row can clash and not be kept yet: any other that has not ended clashed with the latest.
        const bool clash = begin < lane.reach;
        if (clash && !lane.is_latest_kept) keep(lane.latest);
        lane.latest = row;
        lane.is_latest_kept = is_kept || clash;
        return clash;
    }
    if (lane.nesting == Nesting::free) return false;
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
        open.insert(open.begin() + static_cast<std::ptrdiff_t>(at), {begin, end, row, is_kept || clash});
    }
    return clash;
}

size_t Sweep::pass(const Rows& given, std::span<uint8_t> wanted) {
    const Rows rows = given;  // nothing that is written to can be a part of it, as far as the compiler knows
    const size_t n = rows.track.size(), lanes = lanes_.size();
    Lane* const all = lanes_.data();
    int64_t first = first_, last = last_;
    base_ = rows_;
    keep_ = wanted;
    kept_ = 0;
    earlier_.clear();
    for (size_t i = 0; i < n; ++i) {
        const int64_t row = base_ + static_cast<int64_t>(i), begin = rows.begin[i];
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
        first = std::min(first, begin);
        last = std::max(last, end);

        const auto track = static_cast<uint64_t>(rows.track[i]);
        if (track >= lanes) {
            keep(row);
            continue;
        }
        Lane& lane = all[track];
        if (begin < lane.begin) {
            lane.is_unordered = true;
            lane.is_whole |= !points_;
        }
        if (lane.is_whole) continue;
        if (begin > lane.begin) {
            lane.ticks_before = std::max(lane.ticks_before, lane.ticks_here);
            lane.ticks_here = kLowest;
            lane.is_after_gap = false;
            lane.begin = begin;
        }
        if (rows.ticks.has(i)) {
            const int64_t ticks = rows.ticks.values[i];
            lane.has_ticks = true;
            lane.ticks_here = std::max(lane.ticks_here, ticks);
            if (ticks < lane.ticks_before) {  // the counter rose while time fell, or the other way round
                lane.is_whole = true;
                continue;
            }
        }
        // All rows that begin together are kept: which of them counts as the first is the rule's business.
        if (begin >= lane.gap) lane.is_after_gap |= reaches_gap(lane, begin);
        is_kept |= lane.is_after_gap || (is_closed && rows.length.values[i] > lane.most);
        if (end > begin) {
            is_kept |= clashes(lane, row, begin, end, is_kept);
            if (end > lane.reach) {
                lane.covered += static_cast<uint64_t>(end) - static_cast<uint64_t>(std::max(begin, lane.reach));
                lane.reach = end;
            }
        }
        if (is_kept) {
            keep(row);
            if (end == begin || lane.reach > end) keep_[i] = kWithin;
        } else if (is_closed) {
            lane.longest = std::max(lane.longest, rows.length.values[i]);
        }
    }
    first_ = first;
    last_ = last;
    rows_ += static_cast<int64_t>(n);
    return kept_;
}

void add_covered(const Rows& given, std::span<const int64_t> excluded, std::span<const uint8_t> wanted,
                 std::span<int64_t> reach, std::span<int64_t> covered) noexcept {
    const Rows rows = given;
    constexpr int64_t highest = std::numeric_limits<int64_t>::max();
    size_t next = 0;
    for (size_t i = 0; i < rows.track.size(); ++i) {
        if (next < excluded.size() && excluded[next] == static_cast<int64_t>(i)) {
            ++next;
            continue;
        }
        const auto track = static_cast<uint64_t>(rows.track[i]);
        if (track >= wanted.size() || wanted[track] == 0) continue;
        const int64_t begin = rows.begin[i];
        int64_t end = begin;
        if (rows.length.has(i)) {
            const int64_t room = highest - std::max<int64_t>(begin, 0);
            end = begin + std::min(std::max<int64_t>(rows.length.values[i], 0), room);
        } else if (rows.last_seen.has(i)) {
            end = rows.last_seen.values[i];
        }
        const int64_t since = std::max(begin, reach[track]);
        if (end <= since) continue;
        const auto sum = static_cast<uint64_t>(covered[track]) + (static_cast<uint64_t>(end) - static_cast<uint64_t>(since));
        covered[track] = static_cast<int64_t>(sum);
        reach[track] = end;
    }
}

}  // namespace lanescope::check
