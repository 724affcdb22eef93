// The rules by which the records of one lane become slices, instants and gaps. Every layout of in-kernel probes has a
// reader that gives the records of a lane in write order; what they mean is decided here, once for all layouts.
#pragma once
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

namespace lanescope::cuda {

// The bits of lanescope.trace.Flag that are set here (a test compares them).
enum Flag : uint32_t {
    unfinished = 1u << 0,
    truncated = 1u << 1,
    crosses = 1u << 2,
    below_resolution = 1u << 3,
    clock_suspect = 1u << 4,
    wrap_ambiguous = 1u << 5,
    inferred_identity = 1u << 7,
    negative = 1u << 8,
    after_gap = 1u << 9,
};

enum class Kind : uint8_t { begin = 0, end = 1, instant = 2, finalize = 3, unreadable = 4, empty = 5 };

// What stands at one position of a lane. A reader may leave out empty positions.
struct Record {
    uint64_t stamp;  // as stored: rules.stamp_bits wide
    uint32_t index;  // position in the lane
    uint16_t event;
    Kind kind;
};

// What stands at one position of a lane whose records are whole regions.
struct SpanRecord {
    uint64_t begin;  // as stored or added up: the lowest stamp_bits count
    uint64_t end;    // likewise; of no meaning in an open region or an instant
    uint32_t index;  // position in the lane
    uint16_t event;
    Kind kind;  // begin: a region; finalize: a region without an end; instant, unreadable, empty
};

struct LaneRules {
    unsigned stamp_bits = 32;
    bool split = true;        // records behind a finalize begin a further launch; else they are left out
    uint64_t step_back = 0;   // a step back by at most this much needs no other explanation than two writers
};

// Columns of the outputs; the caller allocates them. `size` counts the rows that are filled. Rows come lane after lane,
// so the caller knows their lanes from the summaries. A column marked 0 must be filled with zeros: most rows have nothing
// else there, and what is not written costs no memory.
struct Slices {
    std::span<int64_t> begin;    // ticks, unwrapped from the first record of the lane
    std::span<int64_t> dur;      // end - begin; of an open slice the time for which it is known to have run
    std::span<uint32_t> flags;   // 0
    std::span<uint32_t> launch;  // 0
    std::span<uint32_t> begin_index;
    std::span<uint32_t> end_index;  // of an open slice its own begin
    std::span<uint16_t> event;
    size_t size = 0;
    uint32_t seen = 0;  // all flags that any row has
    int64_t shortest = std::numeric_limits<int64_t>::max();  // of all rows, or less
};

struct Instants {
    std::span<int64_t> tick;
    std::span<uint32_t> flags;
    std::span<uint32_t> launch;
    std::span<uint32_t> index;
    std::span<uint16_t> event;
    std::span<uint8_t> is_end;  // 1: an end that nothing had begun
    size_t size = 0;
};

struct Gaps {
    std::span<int64_t> tick;  // of the last record before it; of the first behind it, where none is before
    std::span<int64_t> dur;   // -1: no record behind it
    std::span<uint32_t> lane;
    std::span<uint32_t> index;    // first position that is missing
    std::span<uint32_t> missing;  // positions without a readable record
    std::span<uint32_t> bad;      // those of them that hold an unreadable word
    size_t size = 0;
};

// One row of int64 for each lane.
struct Summary {
    int64_t records, first, last, min, max;  // stamps in unwrapped ticks, 0 in a lane without records
    int64_t finalizes, finalize;             // how many, and the last one's stamp
    int64_t launches, after_finalize;        // records behind a finalize
    int64_t missing, bad;
    int64_t slices, instants;                // rows, open slices and ends without begin among them
    int64_t unmatched, open, negative;
    int64_t backward, wraps, jumps;
    int64_t full;
};

// The greatest common divisor of all differences of stamps: what the clock really counts in.
class TickStep {
  public:
    // Take a stamp into account. Real clocks step by a power of two: then this is a subtraction and a test.
    void add(uint64_t stamp, uint64_t mask) noexcept {
        if (!knows(stamp)) refine(stamp, mask);
    }
    // Whether `add` has nothing more to do for this stamp.
    bool knows(uint64_t stamp) const noexcept { return ((stamp - reference_) & rest_) == 0; }
    // Take all stamps into account that another one was told of.
    void merge(const TickStep& other, uint64_t mask) noexcept;
    uint64_t step() const noexcept { return step_; }          // 0 while all stamps are equal
    unsigned distinct() const noexcept { return distinct_; }  // stops at enough
    std::span<const uint64_t> seen() const noexcept { return {seen_, distinct_}; }
    // One that was told of these stamps, among others, which share a step with the first of them.
    static TickStep of(std::span<const uint64_t> seen, uint64_t step) noexcept;

    static constexpr unsigned enough = 16;

  private:
    void refine(uint64_t stamp, uint64_t mask) noexcept;

    uint64_t seen_[enough] = {};
    uint64_t reference_ = ~uint64_t{0};  // no stamp, so that the first one is looked at
    uint64_t step_ = 0;
    uint64_t rest_ = ~uint64_t{0};  // bits that no stamp's distance has; all, while each stamp has to be looked at
    unsigned distinct_ = 0;
};

// One begin or end of a slice on the time axis, for lanes whose records are not in the order of their stamps.
struct SliceEdge {
    int64_t time;
    int64_t other;
    uint32_t row;
    bool is_end;
};

// Scratch, as long as the longest lane has records; `edges` twice as long. `top` and `used` have one place for each event
// id; `top` is filled with -1 and left so, `used` is set to 1 for events of slices.
struct Workspace {
    std::span<int32_t> below;     // the open row of the same event under a row
    std::span<int32_t> prev;      // open rows of the lane as a list, in the order of their begins
    std::span<int32_t> next;
    std::span<int32_t> unmarked;  // itself for a row that is open and not yet known to cross; else where to look on
    std::span<int32_t> number;    // open rows as a stack, as long as every end is that of the last begin
    std::span<int32_t> top;       // innermost open row of an event
    std::span<uint8_t> used;
    std::span<SliceEdge> edges;
};

class LaneDecoder {
  public:
    LaneDecoder(const LaneRules& rules, const Workspace& work, Slices& slices, Instants& instants, Gaps& gaps) noexcept
        : rules_(rules), work_(work), slices_(slices), instants_(instants), gaps_(gaps) {}

    // Decode one lane: append its rows and fill its summary. Linear in the records; n log n where stamps step back.
    //
    //   records  anything with a size() and an operator[] that returns a Record; lanes_decode.hpp has the definition for
    //            whoever needs it for other types than spans
    //   is_full  the lane's last position holds a record, so more may have been dropped
    //   cuts     which of the records are the first of an earlier launch, and of those before it, not falling: from each on
    //            they are rows of a further launch, at times before all in front of it; nothing pairs over a cut
    template <typename Records>
    void decode(uint32_t lane, const Records& records, bool is_full, Summary& result,
                std::span<const int64_t> cuts = {}) noexcept;

    // Decode a lane whose records are whole regions, in the order in which they were stored: that of their starts or of
    // their ends. Each start is the reading next to the one before it. The results are those of `decode`.
    void decode_spans(uint32_t lane, std::span<const SpanRecord> records, bool is_full, Summary& result) noexcept;

    const TickStep& resolution_ticks() const noexcept { return tick_step_; }
    bool is_whole() const noexcept { return is_whole_; }  // false: there was no room for rows, which were left out

  private:
    struct Clock;
    struct Lane;

    template <typename Records>
    size_t run(const Records& records, size_t at, size_t end, Lane& lane) noexcept;
    template <bool is_stack>
    bool step(const Record& record, Lane& lane) noexcept;
    void leave_stack(Lane& lane) noexcept;
    void go_back(const Record& first, Lane& lane, uint32_t launches) noexcept;
    void finish(Lane& lane, bool is_full, size_t lane_base, size_t instants_base, Summary& result) noexcept;
    void add_gap(Lane& lane, int64_t dur, uint32_t missing) noexcept;
    void close_row(int32_t local, const Lane& lane, int64_t last_seen, uint32_t gap_index, uint32_t flags) noexcept;
    void close_launch(Lane& lane, int64_t last_seen, uint32_t gap_index, uint32_t flags) noexcept;
    void flag(size_t row, uint32_t flags) noexcept;
    void link(int32_t row, int32_t& tail) noexcept;
    void unlink(int32_t row, int32_t& tail, size_t base, const int32_t* row_of) noexcept;
    void unlink_crossing(int32_t row, int32_t tail, size_t base, const int32_t* row_of) noexcept;
    int32_t last_unmarked(int32_t row) noexcept;
    void mark_by_time(size_t base) noexcept;

    LaneRules rules_;
    Workspace work_;
    Slices& slices_;
    Instants& instants_;
    Gaps& gaps_;
    TickStep tick_step_;
    bool is_whole_ = true;
};

extern template void LaneDecoder::decode(uint32_t, const std::span<const Record>&, bool, Summary&,
                                           std::span<const int64_t>) noexcept;

// Where a part of the lanes has its rows among those of all: from here on, and room for so many.
struct OutputSpan {
    size_t slices_from = 0, slices = 0;
    size_t instants_from = 0, instants = 0;
    size_t gaps_from = 0, gaps = 0;
};

Slices part(const Slices& all, const OutputSpan& share) noexcept;
Instants part(const Instants& all, const OutputSpan& share) noexcept;
Gaps part(const Gaps& all, const OutputSpan& share) noexcept;

// Append the rows of a part to those of the parts before it.
void append(Slices& all, const Slices& part) noexcept;
void append(Instants& all, const Instants& part) noexcept;
void append(Gaps& all, const Gaps& part) noexcept;

// Flag those of some closed slices that are shorter than two steps of the clock; return how many. Where no slice is shorter
// than `shortest` says, there may be none.
size_t mark_below_resolution(const Slices& slices, size_t from, size_t to, int64_t step) noexcept;

}  // namespace lanescope::cuda
