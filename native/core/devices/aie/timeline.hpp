// Packets -> slices: the event state of every tile over time (mode 0); or points: what happened, in order (modes 1, 2).
//
// Meaning of mode 0: a frame (mask, c) says "c cycles in which nothing was asserted, then one cycle in which exactly
// the events of the mask were"; Repeat(n) says "the last frame n more times"; Sync adds 2^18 idle cycles. An event is
// active over each maximal run of consecutive cycles in which its bit is set.
// Modes 1 and 2 tell no time between Start, restart and Stop. Their ticks count the cycles with events (mode 1), or the
// decisions of the program (mode 2): an order, and the least number of cycles that have passed.
#pragma once
#include <array>
#include <vector>

#include "core/devices/aie/canonical.hpp"
#include "core/devices/aie/packets.hpp"

namespace lanescope::aie {

// One slice has three numbers. The tag holds slot (bits 0-2), kTruncated, kAfterGap, quality (bits 5-6: exact,
// estimated, inferred) and segment (bits 7-31).
inline constexpr uint32_t kTruncated = 1 << 3;
inline constexpr uint32_t kAfterGap = 1 << 4;
inline constexpr uint32_t kQualityShift = 5;
inline constexpr uint32_t kSegmentShift = 7;
inline constexpr uint32_t kExact = 0;
inline constexpr uint32_t kEstimated = 1;
inline constexpr uint32_t kInferred = 2;
inline constexpr uint32_t kAllSlots = 0xFF;
struct Slices {
    std::span<int64_t> begin;
    std::span<int64_t> duration;
    std::span<uint32_t> tag;
};

// One point has four numbers. `count` is 1 and its Repeats. `value` holds the bits of the frame behind its prefix: mode 1
// mask (18-25), reserved bits (14-17) and program counter; mode 2 program counter, or the loop's flag (28) and count. The
// tag is that of a slice, in mode 2 with the FlowKind in place of the slot.
struct Points {
    std::span<int64_t> tick;
    std::span<int64_t> count;
    std::span<uint32_t> value;
    std::span<uint32_t> tag;
};

// What the reader has to know besides slices and points, in the order of the stream.
enum class What : int64_t {
    segment,  // tick: where it begins; value: Start's timer; detail: source << 8 | mode << 1 | whether it is a restart
    slot,     // value: slot that is asserted for the first time in the segment
    restart,  // tick: where recording goes on; value: its timer
    gap,      // tick: where it begins; value: where it ends; detail: cause; lost: slices known to be missing
    open_gap, // the same, but the stream never resumed
    end,      // tick: end of what is known; value: Stop's mask; detail: Ending
};
enum class Cause : int64_t { lost_packet, bad_bytes, overrun, start_lost, repeat_limit, truncated };
enum class Ending : int64_t { stop, restarted, end_of_data, given_up };
struct Event {
    int64_t what, segment, tick, value, detail, lost, offset;
};

enum class Note {
    unknown_code, zero_word, crosses_word, misaligned, cut_start, lost_repeat, unconfirmed, repeat_limit, after_stop,
    restart, restart_timer, restart_ambiguous, other_mode, stop_mask, start_lost, given_up, reserved_bits, repeat_target,
    never_written, unseen_form,
};
inline constexpr size_t kNotes = 20;

struct Segment {
    int64_t source, ordinal, mode;
    int64_t timer;  // mode 2: the program counter
    int64_t offset, begin, packets = 0, frames = 0, restarts = 0;
    int64_t end = -1;  // last known tick; -1 while it runs
    int64_t ending = -1;
    int64_t is_exact = 1;  // no loss between its begin and its end
    std::array<Tally, kNotes> notes{};
};

// What threads write side by side lies so many bytes apart: processors fetch two lines of 64 bytes at once.
inline constexpr size_t kApart = 128;

class alignas(kApart) Timeline {
  public:
    static constexpr size_t kMaxSegments = 1 << 18;
    // Room that one packet may need. Repeat after idle cycles would write up to 1023 * 8 slices: of such slices only
    // so many are written as the stream has earned by its length.
    static constexpr size_t kSliceRoom = 1 << 17;
    static constexpr size_t kEventRoom = 256;
    static constexpr size_t kPointRoom = 128;

    // Whether this processor has a faster path for what is common.
    static bool has_wide_path();

    // Ticks stay below `tick_limit`, so that the caller can convert them without overflow. `is_plain`: decode as every
    // processor can; the same comes out.
    explicit Timeline(int64_t tick_limit, bool is_plain = false)
        : tick_limit_(tick_limit), is_wide_(!is_plain && has_wide_path()) {}

    struct Progress {
        size_t entries;  // consumed; fewer than given when room ran short: call again with fresh outputs
        size_t slices;
        size_t points;
        size_t events;
    };
    Progress decode(std::span<const uint32_t> words, std::span<const Entry> entries, const Offsets& offsets,
                    Slices slices, Points points, std::span<Event> events);
    // The end of the stream; call again while `entries` is 0.
    Progress finish(Slices slices, Points points, std::span<Event> events);

    std::span<const Segment> segments() const { return segments_; }
    // Words of payload by fate.
    int64_t decoded() const { return decoded_; }
    int64_t padding() const { return filler_; }
    int64_t lost() const { return lost_; }
    const Tally& over_limit() const { return over_limit_; }  // Starts for which no segment was left
    bool has_flags() const { return has_flags_; }           // whether any tag so far has more than slot and segment

  private:
    enum class State : uint8_t { waiting, running, stopped, other_mode };

    // What makes the next event frame, or a Repeat, a special one: bits 0 to 7 for slots that open, 8 to 15 for slots
    // that close and have flags, and:
    static constexpr uint32_t kFlagged = 8;
    static constexpr uint32_t kEdge = 1 << 16;        // what was before cycle t + 1 is unknown: Start, restart, gap
    static constexpr uint32_t kNothingYet = 1 << 17;  // no event frame since then: Repeat has nothing to repeat
    static constexpr uint32_t kSynced = 1 << 18;      // a Sync lies between the last event frame and now
    static constexpr uint32_t kUnknown = 0xFF | kEdge | kNothingYet;

    struct alignas(kApart) Source {
        int64_t t = 0;              // the last cycle that is known
        uint32_t mask = 0;          // events asserted in cycle t
        uint32_t synced_mask = 0;   // with kSynced: events of the last event frame
        uint32_t watch = kUnknown;  // slots and reasons for care
        uint32_t idle = 0;          // idle cycles of the last event frame
        uint32_t used = 0;          // slots seen in the segment
        uint32_t after_gap = 0;     // slots not seen since the last gap; mode 2: not 0 until the next row
        bool is_gap = false;        // state and time are unknown since gap_begin
        int64_t frames = 0;         // understood so far in the segment
        std::array<int64_t, 9> begin{};  // the last one is for code that writes in any case
        std::array<uint32_t, 8> flags{};  // of open slices, where `watch` says so
        State state = State::waiting;
        uint32_t mode = 0;            // of the segment
        // Modes 1 and 2: the last frame, as long as Repeats may follow it.
        bool has_point = false;
        int64_t point_tick = 0;
        int64_t point_count = 0;
        uint32_t point_value = 0;
        uint32_t point_tag = 0;       // mode 2: all of it; mode 1: slots that are the first after a gap
        bool has_start_word = false;  // Start's first word was the last of its packet
        uint32_t start_word = 0;
        int64_t start_offset = 0;
        int32_t segment = -1;
        uint32_t tag_base = 0;        // segment and quality
        int64_t start_timer = 0;
        int64_t ordinal = 0;
        int64_t credit = 0;           // slices that Repeat may still write
        int64_t gap_begin = 0;
        int64_t gap_offset = 0;
        Cause gap_cause = Cause::bad_bytes;
        Tail tail;                    // behind the last packet, if that was not a whole one
        bool is_whole = false;        // `whole` took the last packet
        uint32_t last_word = 0;       // of that
        uint32_t repeats = 0;         // of its last event, as far as it told them
        int32_t room = 0;             // bits of padding behind the last packet
        size_t breaks = 0;            // how many of the breaks that concern all it has seen
    };
    struct Output {
        Slices slices;
        Points points;
        std::span<Event> events;
        size_t slice = 0;
        size_t point = 0;
        size_t event = 0;
        bool has_room() const {
            return slices.begin.size() - slice >= kSliceRoom && points.tick.size() - point >= kPointRoom &&
                   events.size() - event >= kEventRoom;
        }
        int64_t& emit(What what, const Source& s, int64_t tick, int64_t value, int64_t detail, int64_t offset) {
            events[event] = {static_cast<int64_t>(what), s.segment, tick, value, detail, 0, offset};
            return events[event++].lost;
        }
    };

    void packet(Source& s, const uint32_t* payload, size_t first_word, const Offsets& offsets, Output& out);
    struct Packet {
        const uint32_t* payload;
        size_t first_word;
        const Offsets& offsets;
        Output& out;
        int64_t offset(size_t bit) const { return offsets(first_word + bit / 32); }
    };
    size_t run(Source& s, const Packet& packet, size_t i);
    bool whole(Source& s, const uint32_t* payload, Output& out);
    bool whole_wide(Source& s, const uint32_t* payload, Output& out);
    static bool may_repeat(const Source& s);
    void note_departures(Source& s, const uint32_t* payload, size_t first_word, const Offsets& offsets);
    static void forget_tail(Source& s);
    size_t stretch(Source& s, const Packet& packet, size_t at, size_t end);
    size_t other_frame(Source& s, const Packet& packet, size_t bit);
    size_t pc_stretch(Source& s, const Packet& packet, size_t at, size_t end);
    size_t flow_stretch(Source& s, const Packet& packet, size_t at, size_t end);
    size_t flow_frame(Source& s, const Packet& packet, size_t bit);
    bool lost_repeat(Source& s, const Packet& packet, size_t bit, uint32_t n);
    size_t not_understood(Source& s, const Packet& packet, size_t bit, const Code& code);
    size_t end_at_stop(Source& s, const Packet& packet, size_t bit, int64_t end);
    void note_published(Source& s, const Packet& packet, size_t from, int64_t count);
    void write_point(Source& s, Output& out);
    void begin_flow(Source& s, FlowKind kind, uint32_t value, Output& out);
    void write_flow(Source& s, FlowKind kind, uint32_t value, Output& out);
    bool late_repeat(Source& s, const Packet& packet, size_t bit, uint32_t n);
    size_t start(Source& s, const uint32_t* payload, size_t i, size_t first_word, const Offsets& offsets, Output& out);
    void begin_segment(Source& s, uint32_t word, int64_t timer, int64_t offset, Output& out);
    void restart(Source& s, uint32_t word, int64_t timer, int64_t offset, Output& out);
    void end_segment(Source& s, Ending ending, int64_t end, int64_t value, int64_t offset, Output& out);
    void close(Source& s, uint32_t mask, uint32_t flags, Output& out);
    void forget(Source& s);
    void damage(Source& s, Cause cause, int64_t offset, Output& out);
    void resume(Source& s, int64_t end, Output& out);
    void replay(Source& s, uint32_t n, int64_t offset, Output& out);
    void special(Source& s, uint32_t opening, uint32_t closing, int64_t known, int64_t offset, Output& out);
    void set_quality(Source& s, uint32_t quality);
    void catch_up(Source& s, Output& out);
    void lose_start(Source& s);
    bool end_sources(int64_t offset, Output& out);
    void note(const Source& s, Note which, int64_t offset, int64_t n = 1) {
        segments_[static_cast<size_t>(s.segment)].notes[static_cast<size_t>(which)].add(offset, n);
    }

    int64_t tick_limit_;
    bool is_wide_;
    std::vector<Source> sources_;
    std::vector<Segment> segments_;
    std::vector<int64_t> breaks_;  // where packets of unknown sources were lost
    size_t finished_ = 0;
    int64_t decoded_ = 0;
    int64_t filler_ = 0;
    int64_t lost_ = 0;
    Tally over_limit_;
    bool has_flags_ = false;
};

}  // namespace lanescope::aie
