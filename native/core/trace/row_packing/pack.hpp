// Drawing rows for intervals that share a lane, so that every row nests properly.
#pragma once
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace lanescope::layout {

// The end of an interval that is still open: after everything.
inline constexpr int64_t kForever = std::numeric_limits<int64_t>::max();

// Nested lanes: rows that are tried by nesting before the rest is spread over flat rows, which bounds the work.
inline constexpr int32_t kNestedRows = 8;

// Perfetto drops slices at 512 levels of a track; instants on top of the deepest slice need a few of them.
inline constexpr int32_t kMaxDepth = 480;

struct Intervals {
    std::span<const int64_t> track;  // index of the lane
    std::span<const int64_t> begin;
    std::span<const int64_t> length;
    std::span<const uint8_t> known;  // 0 where the end is unknown; empty: all ends are known

    int64_t end(size_t i) const {
        return known.empty() || known[i] != 0 ? begin[i] + length[i] : kForever;
    }
};

enum class Status : uint8_t { ok, bad_track, bad_time };

struct PackResult {
    Status status = Status::ok;
    size_t where = 0;  // the interval that is at fault
};

// Give every interval a row of its lane and put all of them in drawing order: by lane, row, time.
//
// On a nested lane a row holds a stack: outer first where begins are equal. On any other lane a row holds intervals that
// share no time; where begins are equal, those of no length come first. Ties keep the order of the input. The lowest row
// that fits is taken. Intervals never move. O(n + lanes) when each lane comes flat and in order, else O(n log n).
//
//   nested      per lane, nonzero where intervals may stack
//   order       out [n], indices of intervals
//   row         out [n], by interval
//   begin, end  out [n], times along `order`; kForever where the end is unknown
//   rows        out [lanes], number of rows of a lane; 0 where nothing lies on it
//   row_start   out, where each row of each lane begins in `order`, in that order, and n at the end
struct Drawing {
    std::span<int64_t> order;
    std::span<int32_t> row;
    std::span<int64_t> begin;
    std::span<int64_t> end;
    std::span<int32_t> rows;
};
PackResult place(const Intervals& items, std::span<const uint8_t> nested, const Drawing& out,
              std::vector<int64_t>& row_start);

// Intervals that come lane after lane: the lanes in rising order, and how many intervals each has.
struct Runs {
    std::span<const int64_t> lane;
    std::span<const int64_t> count;
};

// The same as `place` for intervals that come lane after lane, in order of their begins, each lane on one row, all ends known:
// as most decoders yield them. `items` are those of the runs, without their tracks, the first of them number `base`. `order` is
// not touched where the intervals stand in drawing order as they are; `row` would be 0 throughout. Of the lanes only those of
// the runs are filled, and `row_start` is appended to: where each row ends. Two halves of the runs may be placed at the same
// time.
enum class InTurn : uint8_t { no, as_they_are, moved };  // no: not so, or they cannot be placed at all; nothing is of use
InTurn lane_after_lane(const Intervals& items, const Runs& runs, int64_t base, std::span<const uint8_t> nested,
                       std::span<int32_t> rows, std::span<int64_t> order, std::vector<int64_t>& row_start);

// Depth of every interval on its row: how many others of the row are open around it. `begin` and `end` lie along `order`.
void depths(std::span<const int64_t> begin, std::span<const int64_t> end, std::span<const int64_t> order,
            std::span<const int64_t> row_start, std::span<int32_t> depth);

}  // namespace lanescope::layout
