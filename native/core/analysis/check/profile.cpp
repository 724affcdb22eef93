#include "core/analysis/check/profile.hpp"

#include <algorithm>
#include <numeric>

namespace lanescope::check {

namespace {

constexpr int64_t kHighest = LaneProfile::kHighest;

uint64_t mixed(uint64_t x) {
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9U;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebU;
    return x ^ (x >> 31);
}

// Of a slice; any two bits of the sum depend on all three.
uint64_t hash_of(int64_t start, int64_t end, int32_t name) {
    return mixed(static_cast<uint64_t>(start) * 0x9e3779b97f4a7c15U + static_cast<uint64_t>(end) * 0xc2b2ae3d27d4eb4fU +
                 static_cast<uint32_t>(name) * 0x165667b19e3779f9U);
}

// The distance from a up to b >= a, at most kHighest.
int64_t distance(int64_t a, int64_t b) {
    const uint64_t d = static_cast<uint64_t>(b) - static_cast<uint64_t>(a);
    return d > static_cast<uint64_t>(kHighest) ? kHighest : static_cast<int64_t>(d);
}

int64_t saturated_sum(int64_t a, int64_t b) { return b > kHighest - a ? kHighest : a + b; }

int64_t closed_end(int64_t start, int64_t length) {
    return start + std::clamp<int64_t>(length, 0, kHighest - std::max<int64_t>(start, 0));
}

inline int64_t end_of(const ProfileRows& rows, size_t i) {
    const int64_t start = rows.start[i];
    if (rows.length.has(i)) return closed_end(start, rows.length.values[i]);
    return rows.last_seen.has(i) ? std::max(start, rows.last_seen.values[i]) : start;
}

bool is_longer(const Longest& a, const Longest& b) {
    return a.length != b.length ? a.length > b.length : a.row < b.row;
}

void keep_gap(std::array<Gap, kGaps>& gaps, Gap gap) {
    const int64_t length = distance(gap.start, gap.end);
    if (length <= distance(gaps.back().start, gaps.back().end)) return;
    size_t at = kGaps - 1;
    for (; at > 0 && length > distance(gaps[at - 1].start, gaps[at - 1].end); --at) gaps[at] = gaps[at - 1];
    gaps[at] = gap;
}

}  // namespace

void Outermost::cut() {
    std::nth_element(kept_.begin(), kept_.begin() + (kOutermost - 1), kept_.end());
    kept_.resize(kOutermost);
    bound_ = kept_.back();
}

std::vector<Outer> Outermost::kept() const {
    std::vector<Outer> found = kept_;
    std::sort(found.begin(), found.end());
    if (found.size() > kOutermost) found.resize(kOutermost);
    return found;
}

uint32_t& Profile::Index::at(uint64_t key) {
    if (2 * (used_ + 1) > slots_.size()) grow();
    const size_t mask = slots_.size() - 1;
    for (size_t i = mixed(key) & mask;; i = (i + 1) & mask) {
        Slot& slot = slots_[i];
        if (slot.value == 0) {
            // The caller fills it.
            slot.key = key;
            ++used_;
            return slot.value;
        }
        if (slot.key == key) return slot.value;
    }
}

void Profile::Index::grow() {
    std::vector<Slot> old(2 * slots_.size());
    old.swap(slots_);
    const size_t mask = slots_.size() - 1;
    for (const Slot& slot : old) {
        if (slot.value == 0) continue;
        size_t i = mixed(slot.key) & mask;
        while (slots_[i].value != 0) i = (i + 1) & mask;
        slots_[i] = slot;
    }
}

void Profile::add_lanes(std::span<const int32_t> shapes) {
    for (size_t i = lanes_.size(); i < shapes.size(); ++i) {
        lanes_.emplace_back();
        lanes_.back().shape = shapes[i];
    }
}

// A multiple of an odd number times the inverse of that is the quotient, and no other number gives one so small; zeros at
// the end are rotated to the front, where others than zeros make the number too large.
Profile::Multiples::Multiples(uint64_t divisor)
    : twos_(std::countr_zero(divisor)), largest_(std::numeric_limits<uint64_t>::max() / divisor) {
    const uint64_t odd = divisor >> twos_;
    inverse_ = odd;  // right in 3 bits, and in twice as many after each step of Newton's
    for (int bits = 3; bits < 64; bits *= 2) inverse_ *= 2 - odd * inverse_;
}

void Profile::divide(int64_t time) {
    if (!has_base_) {
        has_base_ = true;
        base_ = time;
        return;
    }
    if (step_ == 1) return;
    const uint64_t difference = time < base_ ? static_cast<uint64_t>(base_) - static_cast<uint64_t>(time)
                                             : static_cast<uint64_t>(time) - static_cast<uint64_t>(base_);
    if (step_ != 0 && is_multiple_(difference)) return;
    step_ = std::gcd(step_, difference);
    if (step_ != 0) is_multiple_ = Multiples(step_);
}

void Profile::ordered(const ProfileRows& rows, std::span<const int64_t> order_of, std::span<const uint8_t> wanted) {
    for (const int64_t row : order_of) {
        const auto i = static_cast<size_t>(row);
        const auto track = static_cast<uint64_t>(rows.track[i]);
        if (track >= lanes_.size() || track >= wanted.size() || wanted[track] == 0) continue;
        const int64_t end = end_of(rows, i);
        Lane& lane = lanes_[track];
        ++lane.profile.count;
        order(lane, rows.track[i], rows.row.empty() ? row : rows.row[i], rows.start[i], end, rows.length.has(i), rows.name[i]);
        lane.profile.end = std::max(lane.profile.end, end);
    }
}

void Profile::slices(const ProfileRows& given) {
    const ProfileRows rows = given;  // nothing that is written to can be a part of it, as far as the compiler knows
    const size_t n = rows.track.size();
    for (size_t i = 0; i < n; ++i) {
        const auto track = static_cast<uint64_t>(rows.track[i]);
        if (track >= lanes_.size()) continue;
        const int64_t row = rows.row.empty() ? seen_ + static_cast<int64_t>(i) : rows.row[i];
        const int64_t start = rows.start[i], end = end_of(rows, i), length = distance(start, end);
        const bool is_closed = rows.length.has(i);
        const int32_t name = rows.name[i];
        Lane& lane = lanes_[track];
        LaneProfile& p = lane.profile;
        ++p.count;
        p.hash += hash_of(start, end, name);
        if (step_ != 1) divide(start);
        if (is_closed) {
            ++p.closed;
            p.empty += length == 0;
            p.busiest = saturated_sum(p.busiest, length);
            if (step_ != 1) divide(end);
        }
        first_starts_.add({start, row});
        last_ends_.add({~end, row});
        order(lane, rows.track[i], row, start, end, is_closed, name);
        p.start = std::min(p.start, start);
        p.end = std::max(p.end, end);
        count(lane, rows.track[i], row, length, is_closed, name);
    }
    seen_ += static_cast<int64_t>(n);
}

// Nearly free of branches that depend on the data: those that are left are hardly ever taken.
void Profile::order(Lane& lane, int64_t track, int64_t row, int64_t start, int64_t end, bool is_closed, int32_t name) {
    LaneProfile& p = lane.profile;
    if (start < lane.latest) p.is_ordered = false;
    if (!p.is_ordered) return;
    const bool is_first = p.count == 1, is_new = is_first | (start != lane.latest);
    const int64_t length = distance(start, end);
    if (!is_first && start > p.end && distance(p.end, start) > lane.least_gap) {
        keep_gap(p.gaps, {p.end, start});
        lane.least_gap = distance(p.gaps.back().start, p.gaps.back().end);
    }
    p.starts += is_new;
    p.distinct += is_new & (is_first | (start != lane.stamp));
    lane.latest = start;
    lane.stamp = std::max(lane.stamp, start);
    p.distinct += is_closed & (end > lane.stamp);
    lane.stamp = is_closed ? std::max(lane.stamp, end) : lane.stamp;
    lane.here = (is_new ? 0 : lane.here) + (is_closed & (start == end));
    if (lane.here > p.run) {
        p.run = lane.here;
        p.run_at = start;
    }
    const bool may_repeat = is_closed & (length >= kLeastRepeated);
    if (is_new) {
        if (!lane.tied.empty()) lane.tied.clear();
        lane.has_one = may_repeat;
        lane.one = {end, name};
    } else if (may_repeat) {
        tie(lane, {end, name}, {row, track, length});
    }
}

// Compare a slice with those that start with it.
void Profile::tie(Lane& lane, Tied slice, Repeated found) {
    const auto is_same = [&](const Tied& other) { return other.end == slice.end && other.name == slice.name; };
    if ((lane.has_one && is_same(lane.one)) || std::any_of(lane.tied.begin(), lane.tied.end(), is_same)) {
        if (repeated_.size() < kMostRepeated) repeated_.push_back(found);
    } else if (lane.tied.size() + lane.has_one < kMostTied) {
        lane.tied.push_back(slice);
    }
}

Profile::Pair& Profile::pair_of(Lane& lane, int64_t track, int32_t name) {
    if (lane.pair != 0 && lane.name == name) return pairs_[lane.pair - 1];
    const uint64_t low = static_cast<uint32_t>(name);
    uint32_t& at = pair_index_.at(static_cast<uint64_t>(track) << 32 | low);
    if (at == 0) {
        uint32_t& group = group_index_.at(static_cast<uint64_t>(static_cast<uint32_t>(lane.shape)) << 32 | low);
        if (group == 0) {
            groups_.push_back({name, lane.shape, {}});
            group = static_cast<uint32_t>(groups_.size());
        }
        pairs_.push_back({track, name, static_cast<int32_t>(group - 1)});
        at = static_cast<uint32_t>(pairs_.size());
    }
    lane.name = name;
    lane.pair = at;
    return pairs_[at - 1];
}

void Profile::count(Lane& lane, int64_t track, int64_t row, int64_t length, bool is_closed, int32_t name) {
    if (pairs_.size() >= kMostPairs) {
        has_all_pairs_ = false;
        return;
    }
    Pair& pair = pair_of(lane, track, name);
    ++pair.count;
    if (!is_closed) return;
    ++pair.closed;
    pair.total = saturated_sum(pair.total, length);
    if (pair.sample.size() < limit_ && length > 3) {
        pair.sample.push_back(length);
        if (++sampled_ > kAllSampled && limit_ > kLeastSampled) thin();
    }
    if (length < pair.least_longest) return;
    auto& longest = groups_[static_cast<size_t>(pair.group)].longest;
    const Longest one{length, row, track};
    if (longest.size() < kLongest) {
        longest.push_back(one);
        std::push_heap(longest.begin(), longest.end(), is_longer);
    } else if (is_longer(one, longest.front())) {
        std::pop_heap(longest.begin(), longest.end(), is_longer);
        longest.back() = one;
        std::push_heap(longest.begin(), longest.end(), is_longer);
    }
    if (longest.size() == kLongest) pair.least_longest = longest.front().length;
}

void Profile::thin() {
    limit_ /= 2;
    sampled_ = 0;
    for (Pair& pair : pairs_) {
        if (pair.sample.size() > limit_) {
            pair.sample.resize(limit_);
            pair.sample.shrink_to_fit();
        }
        sampled_ += pair.sample.size();
    }
}

void Profile::instants(std::span<const int64_t> track, std::span<const int64_t> time) {
    for (size_t i = 0; i < track.size(); ++i) {
        const auto at = static_cast<uint64_t>(track[i]);
        if (at >= lanes_.size()) continue;
        LaneProfile& p = lanes_[at].profile;
        ++p.instants;
        p.first_instant = std::min(p.first_instant, time[i]);
        p.last_instant = std::max(p.last_instant, time[i]);
        divide(time[i]);
    }
}

}  // namespace lanescope::check
