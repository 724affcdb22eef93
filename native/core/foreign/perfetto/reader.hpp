// Packets of a Perfetto trace -> columns of events, samples and flows, and the few messages that tell what they are of.
//
// Bytes may be anything: those between packets are skipped, and each byte is counted as read, as of another
// data source, or as lost. Source of field numbers and of the order in which a packet's parts take effect: google/perfetto,
// protos/perfetto/trace/ and src/trace_processor/importers/proto/.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/wire/growing.hpp"
#include "core/foreign/perfetto/pairs.hpp"
#include "core/foreign/perfetto/texts.hpp"
#include "core/foreign/perfetto/wire.hpp"

namespace lanescope::foreign_perfetto {

struct Events {
    Growing<int64_t> ts;        // ns on the clock
    Growing<int32_t> clock;     // number of the clock; 0: that of the trace
    Growing<int32_t> track;     // number of the track
    Growing<uint8_t> type;      // EventType
    Growing<int32_t> name;      // code of a text, -1: none
    Growing<int32_t> category;  // code of a text, -1: none
};

struct Samples {
    std::vector<int64_t> ts;
    std::vector<int32_t> clock;
    std::vector<int32_t> track;
    std::vector<uint64_t> bits;      // int64 or double
    std::vector<uint8_t> is_double;
    std::vector<int32_t> series;  // samples of one sequence between two clears of its state
};

// What belongs to an event names it by its place (`Role`), or, where all events are kept, by its number.
struct FlowEnds {
    Growing<int64_t> event;
    Growing<uint64_t> id;
    Growing<uint8_t> role;  // 0: goes on, 1: ends here
};

// Debug annotations of an event: the fields in the arena from `offset` up to the next one's, and the texts that its
// sequence knew by id.
struct Annotated {
    Growing<int64_t> event;
    Growing<uint64_t> offset;
    Growing<int32_t> generation;  // -1: no ids
};

struct Correlations {
    Growing<int64_t> event;
    Growing<uint64_t> number;
    Growing<int32_t> text;  // code of `texts`, -1: the number counts
};

// What the older form of an event has beyond the newer: a row each.
struct Legacy {
    std::vector<int64_t> event;
    std::vector<int32_t> phase;
    std::vector<int64_t> dur;  // ns, -1: none
    std::vector<uint64_t> id;
    std::vector<uint8_t> id_kind;  // 0: none, 1: unscoped, 2: of the process, 3: global
    std::vector<int32_t> scope;    // code of a text, -1: none
    std::vector<uint64_t> bind_id;
    std::vector<uint8_t> flow;  // bit 0 in, bit 1 out, bit 2 binds to the enclosing slice
    std::vector<int64_t> pid, tid;  // -1: none
};

struct Tracks {
    std::vector<uint64_t> uuid;      // 0 for those of a sequence
    std::vector<uint32_t> sequence;  // of the thread that writes this sequence; 0: of its uuid
};

struct Clocks {
    std::vector<uint32_t> id;
    std::vector<uint32_t> sequence;  // 0: of the whole trace
};

// Readings of clocks at one moment: those of one snapshot have one number.
struct Snapshots {
    std::vector<int64_t> number;
    std::vector<int32_t> clock;
    std::vector<int64_t> ts;  // ns
};

// Messages as they are: descriptors of tracks, processes and threads, statistics of the recorder, what lanescope says of
// its own traces.
struct Messages {
    std::vector<int32_t> field;
    std::vector<uint32_t> sequence;
    std::vector<int64_t> offset;
    std::vector<int64_t> size;
};

// Packets that one sequence has lost, between two of its events.
struct Losses {
    std::vector<uint32_t> sequence;
    std::vector<int64_t> packets;  // in the file, but without the state they need
    std::vector<int64_t> dropped;  // times that the producer dropped some
    std::vector<int64_t> offset;
    std::vector<int64_t> before, after;              // times of the events before and after
    std::vector<int32_t> before_clock, after_clock;  // their clocks, -1: none
};

struct Stretches {
    std::vector<int64_t> offset;
    std::vector<int64_t> size;
};

// How often something was found, and where first.
struct Found {
    int64_t count = 0;
    int64_t offset = -1;
};

// Faults of packets by what is lost with them.
enum class Fault : uint8_t {
    invalid,         // no message, or a field of another type
    no_sequence,     // an event without the number of a sequence
    needs_state,     // needs state that was lost
    untyped,         // an event of no known type
    untimed,         // an event without a time
    no_value,        // a counter without a value
    stateless_text,  // texts before the state of their sequence began
    unknown_text,    // an id that no text was given for
    redefined_text,  // an id that was given a second text
    compressed,      // a packet of packets that cannot be unpacked
    damaged_text,    // an argument with a name or text that has NUL or is not UTF-8
    count,
};

// Texts that the arguments of events call by id.
struct Generation {
    Ids names;
    Ids values;
};

class Reader {
public:
    // Longer packets are taken for garbage; upstream's limit of a message.
    static constexpr uint64_t kMaxPacket = uint64_t{256} << 20;
    // Of packets that are found by searching.
    static constexpr uint64_t kMaxSearched = uint64_t{1} << 20;

    // Slices are found on the way, or all events are kept for those whose slices can only be found together.
    explicit Reader(bool keeps_events = false) : keeps_events_(keeps_events) {}
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;

    // Read packets from `at` on; return where the first that is not complete begins. `offset` is the place of data[0] in
    // the file. Where a packet of packets is found, it stops behind it: `packed` then is not empty, and the content goes
    // to `unpacked`, or `not_unpacked` is called, before the next call. In the end `is_last`: all is read or lost.
    size_t scan(ByteSpan data, size_t at, uint64_t offset, bool is_last);
    ByteSpan packed() const { return packed_; }
    bool is_zstd() const { return packed_zstd_; }
    void unpacked(ByteSpan content);
    void not_unpacked(bool is_counted_elsewhere = false);

    // So many bytes will come.
    void expect(uint64_t bytes);
    // Whether slices cannot be found on the way: a track's events are out of order or on two clocks, or of the older form.
    bool needs_events() const { return needs_events_ || pairs.is_disordered; }

    Events events;  // where they are kept
    Pairs pairs;    // where they are not
    Samples samples;
    FlowEnds flows;
    Annotated annotated;
    Correlations correlations;
    Legacy legacy;
    Tracks tracks;
    Clocks clocks;
    Snapshots snapshots;
    Messages messages;
    Losses losses;
    Stretches bad;  // bytes that are no packets
    Texts names, categories;
    Texts texts;                         // of arguments, correlations and scopes
    Growing<uint8_t> arena;              // annotations
    std::vector<uint8_t> message_bytes;  // messages
    std::deque<Generation> generations;
    Found faults[static_cast<size_t>(Fault::count)];
    std::map<uint32_t, std::pair<int64_t, int64_t>> other;  // packets and bytes by field number
    std::map<uint32_t, int64_t> unread;                     // fields of events that have no place in the model
    std::vector<int32_t> used_clocks;  // of events and samples, each once, in order of first use
    uint32_t primary_clock = 0;
    uint64_t decoded = 0, padding = 0, lost = 0;  // bytes
    uint64_t truncated = 0;                       // of those lost, in the last packet
    int64_t truncated_at = -1;
    int64_t packets = 0;

private:
    struct Clock {
        uint32_t id = 0;
        int32_t number = 0;
        bool is_incremental = false;
        uint64_t multiplier = 1;
        uint64_t last = 0;  // ns
    };
    struct Sequence {
        uint32_t id = 0;
        bool is_valid = false;
        int32_t generation = -1;
        int32_t series = -1;
        uint32_t default_clock = 0;
        bool has_default_track = false;
        uint64_t default_track = 0;
        int32_t default_number = -1;
        static constexpr size_t kRecent = 32;
        uint64_t recent[kRecent] = {};  // numbers of tracks by uuid, those used last
        int32_t recent_number[kRecent] = {};
        int32_t own_track = -1;
        int64_t last_ts = 0;
        int32_t last_clock = -1;  // of its last event, -1: none
        int64_t open_loss = -1;
        int64_t delta_ns = 0;  // the older clock of events, which counts on
        bool has_delta = false;
        Ids names, categories, correlations;
        std::vector<uint64_t> extra, extra_double;
        std::vector<std::unique_ptr<Clock>> clocks;
        Clock* used = nullptr;  // the clock found last
    };
    struct Parts;
    struct OldParts;
    struct Marks;
    enum class Kind : uint8_t { read, other, lost, packed };
    enum class Plain : uint8_t { no, read, lost };

    size_t search(ByteSpan data, size_t at, uint64_t offset, bool is_last);
    void lose(uint64_t offset, uint64_t size);
    bool parse(ByteSpan body, Parts& parts) const;
    Plain plain_event(ByteSpan body, const uint8_t* behind);  // behind the bytes that may be read
    Kind packet(ByteSpan body, const Parts& parts, bool is_nested);
    Kind fail(Fault fault);
    Sequence& sequence_of(uint32_t id);
    // Return a sequence that was seen before; null: none, or one to be looked for among all.
    Sequence* known_sequence(uint64_t id) const {
        return id < sequence_by_id_.size() ? sequence_by_id_[static_cast<size_t>(id)] : nullptr;
    }
    Clock* clock_of(Sequence* sequence, uint32_t id, bool is_made);
    int32_t clock_number(uint32_t sequence, uint32_t id);
    bool intern(Sequence& sequence, ByteSpan body);
    bool defaults(Sequence& sequence, ByteSpan body);
    bool snapshot(Sequence* sequence, ByteSpan body);
    void message(int32_t field, uint32_t sequence, ByteSpan body);
    bool thread(Sequence& sequence, ByteSpan body);
    Kind event(Sequence& sequence, ByteSpan body, bool has_ts, int64_t ts, int32_t clock);
    bool old_event(ByteSpan body, OldParts& parts) const;
    int64_t add_event(Sequence& sequence, const Event& event);
    void annotate(const Sequence& sequence, int64_t event, size_t offset);
    void look_at(const Sequence& sequence, ByteSpan notes);
    int32_t track_number(Sequence& sequence, bool has_uuid, uint64_t uuid);
    int32_t track_of_uuid(uint64_t uuid);
    void sample(Sequence& sequence, int64_t ts, int32_t clock, int32_t track, uint64_t bits, bool is_double);
    void lose_packet(Sequence& sequence, bool is_dropped);
    void note(Fault fault, int64_t count = 1);

    void use_clock(int32_t clock) {
        if (clock != last_clock_) [[unlikely]] use_other_clock(clock);
    }
    void use_other_clock(int32_t clock);

    int32_t last_clock_ = -1;
    bool keeps_events_;
    bool needs_events_ = false;
    bool is_searching_ = false;
    bool skips_first_ = false;  // the search begins behind the next byte
    uint64_t offset_ = 0;  // of the packet at hand, in the file
    ByteSpan packed_;
    uint64_t packed_size_ = 0;
    bool packed_zstd_ = false;
    std::unordered_map<uint32_t, std::unique_ptr<Sequence>> sequences_;
    static constexpr uint32_t kMostListed = 1 << 16;
    std::vector<Sequence*> sequence_by_id_;  // those of small numbers, as all are in practice
    std::unordered_map<uint64_t, int32_t> track_numbers_;
    std::map<std::pair<uint32_t, uint32_t>, int32_t> clock_numbers_;
    std::vector<std::unique_ptr<Clock>> global_clocks_;
    int64_t snapshot_count_ = 0;
    int32_t series_count_ = 0;
    std::vector<int32_t> categories_;
    std::string joined_;
};

}  // namespace lanescope::foreign_perfetto
