// Sums over the slices and instants of each lane, from which plausibility rules judge a trace.
#pragma once
#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "core/analysis/check/sweep.hpp"

namespace lanescope::check {

// Inner gaps kept per lane, the largest first.
inline constexpr size_t kGaps = 4;
// Longest slices kept per name and shape of lane.
inline constexpr size_t kLongest = 32;
// Lengths kept per lane and name at first, at least, and altogether before fewer are kept per lane and name.
inline constexpr size_t kMostSampled = 256;
inline constexpr size_t kLeastSampled = 16;
inline constexpr size_t kAllSampled = size_t{1} << 18;
// Slices that start first, and that end last, kept for the whole trace.
inline constexpr size_t kOutermost = 64;
// Pairs of lane and name beyond which sums by name are given up.
inline constexpr size_t kMostPairs = size_t{1} << 21;
// Slices with one start on one lane that a further one is compared with.
inline constexpr size_t kMostTied = 64;
// Slices that repeat another one: as many are kept.
inline constexpr size_t kMostRepeated = size_t{1} << 20;
// A shorter slice may repeat another one by chance.
inline constexpr int64_t kLeastRepeated = 8;

struct Gap {
    int64_t start = 0;
    int64_t end = 0;
};

// What is known of the slices and instants of a lane. Fields below `is_ordered` hold for ordered lanes only.
struct LaneProfile {
    static constexpr int64_t kLowest = std::numeric_limits<int64_t>::min();
    static constexpr int64_t kHighest = std::numeric_limits<int64_t>::max();

    int64_t count = 0;
    int64_t closed = 0;
    int64_t empty = 0;  // closed, of no length
    int64_t start = kHighest;
    int64_t end = kLowest;
    int64_t busiest = 0;  // sum of the lengths of closed slices, at most kHighest
    uint64_t hash = 0;    // of (start, end, name) of the slices, in any order
    int64_t instants = 0;
    int64_t first_instant = kHighest;
    int64_t last_instant = kLowest;
    bool is_ordered = true;
    int64_t starts = 0;    // distinct starts
    int64_t distinct = 0;  // distinct starts, and ends beyond all timestamps before them
    int64_t run = 0;       // most closed slices of no length at one time
    int64_t run_at = 0;
    std::array<Gap, kGaps> gaps{};
};

struct Repeated {
    int64_t row;
    int64_t track;
    int64_t length;
};

struct Longest {
    int64_t length;
    int64_t row;
    int64_t track;
};

// A slice that starts early, or that ends late.
struct Outer {
    int64_t time;  // the start, or the complement of the end
    int64_t row;
    bool operator<(const Outer& other) const { return time != other.time ? time < other.time : row < other.row; }
};

// The least kOutermost of all that are added. In a trace in order of time every slice ends last so far: what is added goes
// to the end of an array that is cut now and then, which is less work than a heap.
class Outermost {
  public:
    // Whether nothing at that time is kept any more.
    bool is_out(int64_t time) const { return time > bound_.time; }
    void add(Outer one) {
        if (!(one < bound_)) return;
        kept_.push_back(one);
        if (kept_.size() == kRoom) cut();
    }
    // They, rising.
    std::vector<Outer> kept() const;

  private:
    static constexpr size_t kRoom = 8 * kOutermost;

    void cut();

    std::vector<Outer> kept_;
    // The greatest of those kept at the last cut.
    Outer bound_{std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::max()};
};

// One batch of slices.
struct ProfileRows {
    std::span<const int64_t> track;
    std::span<const int64_t> start;
    Nullable length;
    Nullable last_seen;
    std::span<const int32_t> name;
    std::span<const int64_t> row;  // empty: numbered on from those before
};

class Profile {
  public:
    // shapes: of all tracks so far; those that are known already stay what they are. Rows on other tracks are left out.
    void add_lanes(std::span<const int32_t> shapes);
    void slices(const ProfileRows& rows);
    void instants(std::span<const int64_t> track, std::span<const int64_t> time);
    // What needs order, and nothing else, of the slices on the wanted lanes, which `order` sorts by start.
    void ordered(const ProfileRows& rows, std::span<const int64_t> order, std::span<const uint8_t> wanted);

    const LaneProfile& lane(size_t i) const { return lanes_[i].profile; }
    size_t lanes() const { return lanes_.size(); }
    // Greatest common divisor of the differences between all timestamps; 0 without two different ones.
    uint64_t step() const { return step_; }
    const std::vector<Repeated>& repeated() const { return repeated_; }
    // The slices that start first, and those that end last, the outermost in front.
    std::vector<Outer> first_starts() const { return first_starts_.kept(); }
    std::vector<Outer> last_ends() const { return last_ends_.kept(); }
    bool has_all_pairs() const { return has_all_pairs_; }

    struct Pair {
        int64_t track;
        int32_t name;
        int32_t group;  // of (name, shape)
        int64_t count = 0;
        int64_t closed = 0;
        int64_t total = 0;
        int64_t least_longest = 0;    // no shorter one is among the longest of the group
        std::vector<int64_t> sample{};  // lengths of the first slices
    };
    struct Group {
        int32_t name;
        int32_t shape;
        std::vector<Longest> longest;  // a heap, the shortest in front
    };
    const std::vector<Pair>& pairs() const { return pairs_; }
    const std::vector<Group>& groups() const { return groups_; }

  private:
    struct Tied {
        int64_t end;
        int32_t name;
    };
    struct Lane {
        LaneProfile profile;
        int32_t shape;
        int64_t latest = LaneProfile::kLowest;  // start of the latest slice
        int64_t stamp = LaneProfile::kLowest;   // the highest timestamp
        int64_t here = 0;                       // closed slices of no length that start with it
        int64_t least_gap = 0;                  // length of the shortest gap kept
        bool has_one = false;                   // whether the first slice that starts with it may be repeated
        Tied one{};                             // that slice
        std::vector<Tied> tied;                 // further ones
        int32_t name = 0;                       // of the latest slice
        uint32_t pair = 0;                      // index + 1 of the lane and that name
    };
    // Open addressing: index + 1 of a pair or group by its key.
    class Index {
      public:
        // Return the place of the key, which holds 0 if it is new.
        uint32_t& at(uint64_t key);

      private:
        struct Slot {
            uint64_t key;
            uint32_t value;
        };
        void grow();
        std::vector<Slot> slots_ = std::vector<Slot>(64);
        size_t used_ = 0;
    };

    // Tests whether numbers are multiples of a divisor, with a product in place of a division.
    class Multiples {
      public:
        explicit Multiples(uint64_t divisor);
        bool operator()(uint64_t number) const { return std::rotr(number * inverse_, twos_) <= largest_; }

      private:
        uint64_t inverse_;  // of the odd part, modulo 2**64
        int twos_;
        uint64_t largest_;  // quotient
    };

    void divide(int64_t time);
    Pair& pair_of(Lane& lane, int64_t track, int32_t name);
    void order(Lane& lane, int64_t track, int64_t row, int64_t start, int64_t end, bool is_closed, int32_t name);
    void tie(Lane& lane, Tied slice, Repeated found);
    void count(Lane& lane, int64_t track, int64_t row, int64_t length, bool is_closed, int32_t name);
    void thin();

    std::vector<Lane> lanes_;
    std::vector<Repeated> repeated_;
    Outermost first_starts_;
    Outermost last_ends_;
    std::vector<Pair> pairs_;
    std::vector<Group> groups_;
    Index pair_index_;
    Index group_index_;
    size_t limit_ = kMostSampled;
    size_t sampled_ = 0;
    bool has_all_pairs_ = true;
    bool has_base_ = false;
    int64_t base_ = 0;
    uint64_t step_ = 0;
    Multiples is_multiple_{1};  // of the step
    int64_t seen_ = 0;
};

}  // namespace lanescope::check
