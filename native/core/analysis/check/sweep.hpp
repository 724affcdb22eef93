// Which rows of a trace its checks have to look at, told batch by batch, and sums over those that they need not see.
#pragma once
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace lanescope::check {

// What a lane promises about the slices on it: nothing, that no two share time, that no two cross.
enum class Nesting : uint8_t { free, disjoint, nested };

// A nested lane with more open slices than this is looked at as a whole.
inline constexpr size_t kMostOpen = 4096;

// So is one on which a slice reaches beyond more open ones than this: it bounds the work that one row can make.
inline constexpr size_t kMostCrossed = 64;

// Of a row that is kept: it ends before one that came before it on its lane, or takes no time.
inline constexpr uint8_t kWithin = 2;

// A column whose values may be unknown. Without values none is known, without a mask all are.
struct Nullable {
    std::span<const int64_t> values;
    std::span<const uint8_t> known;

    bool has(size_t i) const { return !values.empty() && (known.empty() || known[i] != 0); }
};

// One batch of slices or instants; instants have no lengths.
struct Rows {
    std::span<const int64_t> track;
    std::span<const int64_t> begin;
    Nullable length;
    Nullable last_seen;
    Nullable ticks;
    Nullable length_ticks;
    std::span<const uint32_t> flags;  // empty: none is set
};

// What is known of a lane after a sweep. Sums hold unless the lane must be looked at as a whole.
struct Result {
    int64_t covered;  // time that slices cover; wraps beyond 63 bits
    int64_t longest;  // the longest of those that were not kept
    bool is_late;     // a gap came after rows that may be the first after it
    bool is_whole;    // all rows must be looked at, whatever their order
};

// Goes once over the rows of one table.
//
// It keeps every row that a rule may find fault with by itself: flagged, open, of an impossible length, on an unknown
// track, or the first to begin at or after the end of a gap. And it keeps every row of each pair that clashes. Rows that
// come in order of begin make that possible in one pass: when a row comes, all rows that it can clash with and that
// began before it have come, and those that have ended cannot clash any more.
//
// Where the order says nothing, the lane must be looked at as a whole. Where only a gap came too late, a second sweep that
// knows all gaps from the start finds what the first could not.
class Sweep {
  public:
    // points: the table is one of instants. judged: flags for which a row is kept.
    Sweep(bool points, uint32_t judged) : points_(points), judged_(judged) {}

    // Say what the tracks promise; those that are known already stay what they are.
    void add_lanes(std::span<const Nesting> all);

    // Say, before the first row, from which length on slices of each lane are kept, and which lanes to leave out as
    // they are looked at as a whole: what a first sweep told.
    void prepare(std::span<const int64_t> longest, std::span<const uint8_t> whole);

    // Say where gaps end, before the rows of the batch with which they came.
    void add_gaps(std::span<const int64_t> track, std::span<const int64_t> end);

    // Set `wanted` for the rows that must be kept, and return how many those are. The rows are numbered on from those of
    // the batches before. Those that are known to take no time that rows before them do not take are set to `kWithin`.
    size_t pass(const Rows& rows, std::span<uint8_t> wanted);

    // Rows of batches before the last one that turned out, in it, to be worth keeping.
    std::span<const int64_t> earlier() const { return earlier_; }

    // Rows that were not kept so far and that a row to come may clash with.
    void open(std::vector<int64_t>& rows) const;

    size_t lanes() const { return lanes_.size(); }
    int64_t rows() const { return rows_; }
    Result result(size_t lane) const;

    // The first begin and the last end of all rows; the first is the larger one when there was none.
    int64_t first() const { return first_; }
    int64_t last() const { return last_; }

  private:
    static constexpr int64_t kLowest = std::numeric_limits<int64_t>::min();
    static constexpr int64_t kHighest = std::numeric_limits<int64_t>::max();

    struct Open {
        int64_t begin;
        int64_t end;
        int64_t row;
        bool is_kept;
    };

    struct Lane {
        int64_t begin = kLowest;         // of the latest row
        int64_t reach = kLowest;         // the furthest end
        uint64_t covered = 0;
        int64_t longest = 0;
        int64_t most = kHighest;         // longer slices are kept
        int64_t ticks_before = kLowest;  // the highest of the rows that begin before the latest
        int64_t ticks_here = kLowest;    // and of those that begin with it
        int64_t gap = kHighest;          // the earliest end of a gap that no row has reached
        int64_t latest = -1;             // the latest row that takes time
        Nesting nesting;
        bool is_whole = false;
        bool is_late = false;
        bool is_unordered = false;  // of points: matters only where there are ticks or gaps
        bool has_ticks = false;
        bool has_gaps = false;
        bool is_after_gap = false;  // the latest row
        bool is_latest_kept = true;
        std::vector<Open> open;     // of a nested lane, by end, the earliest last
        std::vector<int64_t> gaps;  // ends that no row has reached, a heap with the earliest in front
    };

    bool is_whole(const Lane& lane) const;
    static bool reaches_gap(Lane& lane, int64_t begin);
    bool clashes(Lane& lane, int64_t row, int64_t begin, int64_t end, bool is_kept);
    void keep(int64_t row);

    bool points_;
    uint32_t judged_;
    int64_t rows_ = 0;
    int64_t first_ = kHighest;
    int64_t last_ = kLowest;
    std::vector<Lane> lanes_;
    std::vector<int64_t> earlier_;

    // The batch at hand.
    int64_t base_ = 0;
    size_t kept_ = 0;
    std::span<uint8_t> keep_;
};

// Add the time that slices cover on wanted lanes, batch by batch: rows of a lane come in order of begin, or not at all.
//
// wanted, reach, covered: of each lane; the furthest end so far, the lowest number before the first row, and the sum.
// excluded: rows of the batch to leave out, rising.
void add_covered(const Rows& rows, std::span<const int64_t> excluded, std::span<const uint8_t> wanted,
                 std::span<int64_t> reach, std::span<int64_t> covered) noexcept;

}  // namespace lanescope::check
