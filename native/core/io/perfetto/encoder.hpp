// Perfetto TrackEvent packets from placed slices, instants and counter samples.
//
// All lanes are written on one packet sequence and its incremental clock, so a packet carries the time since the one before
// it; a lane begins with a step back. Up to 64 lanes share the texts interned on the sequence, then it starts afresh.
// Source of field numbers: google/perfetto, protos/perfetto/trace/.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/io/perfetto/wire.hpp"
#include "core/trace/row_packing/pack.hpp"
#include "core/wire/large_memory.hpp"

namespace lanescope::perfetto {

struct Texts {
    std::span<const uint8_t> bytes;    // UTF-8, end to end
    std::span<const int64_t> offsets;  // [n + 1]

    size_t size() const { return offsets.empty() ? 0 : offsets.size() - 1; }
    std::span<const uint8_t> operator[](size_t i) const {
        return bytes.subspan(static_cast<size_t>(offsets[i]), static_cast<size_t>(offsets[i + 1] - offsets[i]));
    }
};

enum class ValueType : uint8_t { i64, i32, u64, u32, u16, u8, f64, boolean, text, utf8 };

// A column whose values go with events as an argument.
struct Argument {
    std::span<const uint8_t> name;
    ValueType type = ValueType::i64;
    const void* values = nullptr;  // [rows] of the type; codes into `texts` for text; unused for utf8
    size_t rows = 0;
    std::span<const uint8_t> known;  // 0 where the value is unknown; empty: all are known
    Texts texts;
    // It concerns the events base .. base + count. Event base + k has the rows row[first[k]] .. row[first[k + 1] - 1];
    // without `first` it has row k, without `row` the rows are in that order already.
    int64_t base = 0;
    int64_t count = 0;
    std::span<const int64_t> first;
    std::span<const int64_t> row;
};

// What a flow does at an event.
enum class FlowEnd : uint8_t { leaves_begin, enters_begin, enters_end };

// Slices (with an end) or instants (without). Times lie along the order, all else by index.
struct Events {
    std::span<const int64_t> order;  // indices, lane after lane, each in drawing order; empty: they count up
    std::span<const int64_t> begin;
    std::span<const int64_t> end;         // layout::kForever while it is unknown; empty for instants
    bool end_is_length = false;           // by index; then all ends are known
    std::span<const int32_t> name;        // codes into the names
    std::span<const int32_t> category;    // codes into the categories; empty: none; a single one: that of all
    std::span<const uint32_t> flow_first;  // [n + 1] into flow_id and flow_end; empty: no flows
    std::span<const uint32_t> flow_id;
    std::span<const uint8_t> flow_end;  // FlowEnd
    std::vector<Argument> arguments;

    size_t size() const { return begin.size(); }
    int32_t category_at(size_t i) const { return category[category.size() == 1 ? 0 : i]; }
    int64_t index(size_t position) const { return order.empty() ? static_cast<int64_t>(position) : order[position]; }
    int64_t end_at(size_t position) const {
        return end_is_length ? begin[position] + end[static_cast<size_t>(index(position))] : end[position];
    }
};

// Counter samples; times along the order.
struct Samples {
    std::span<const int64_t> order;
    std::span<const int64_t> ts;
    std::span<const double> value;
};

// One row of the drawing: a track, and the ranges of the three orders that lie on it.
struct Lane {
    uint64_t uuid = 0;
    int64_t slices_from = 0, slices_to = 0;
    int64_t instants_from = 0, instants_to = 0;
    int64_t samples_from = 0, samples_to = 0;
};

enum class Status : uint8_t {
    ok,
    bad_index,    // an index, code or range points outside its array
    bad_nesting,  // slices of a lane cross, or its times go back: not a valid placement
    bad_time,     // a time before the epoch
};

class Encoder {
public:
    // The sequence of the events, and its clock. A snapshot that sets the clock to `origin` comes before their packets.
    static constexpr uint32_t kSequence = 2;
    static constexpr uint32_t kClock = 64;
    // Encoders that write one file between them leave the clock at `origin` for one another. Such a `part` shares texts
    // between as many lanes as it can. `flow_base` is added to the ids of flows.
    Encoder(Events slices, Events instants, Samples samples, Texts names, Texts categories, std::vector<Lane> lanes,
            int64_t origin = 0, bool is_part = false, uint64_t flow_base = 0);
    Encoder(const Encoder&) = delete;
    Encoder& operator=(const Encoder&) = delete;

    // What another encoder of the same arrays may write at the same time: whole turns, of which no part knows anything of
    // another but the time at which it begins.
    struct Part {
        size_t first = 0, last = 0;  // lanes
        size_t events = 0;
        int64_t start = 0;  // time of the last packet before it
    };
    // Cut the lanes into parts of about so many events.
    std::vector<Part> parts(size_t events) const;
    // Write the lanes of one part only; comes before fill().
    void restrict_to(const Part& part);

    // Encode whole packets until about `target` bytes are ready; nothing at the end, or when status() is not ok.
    // The bytes stay valid until the next call; where it `keeps_last`, until the one after that, so that a block can be
    // written while the next one is encoded.
    std::span<const uint8_t> fill(size_t target, bool keeps_last = false);

    Status status() const { return status_; }
    // Whether the block that came last ends all.
    bool is_at_end() const { return lane_ == last_lane_; }

private:
    // A text as it was interned last, by the lanes of turn `owner`.
    struct Interned {
        uint32_t owner = 0;
        uint32_t iid = 0;
    };
    // A value as it is written: a field of 64 fixed bits, of a varint, or of bytes.
    struct Value {
        uint32_t tag = 0;
        uint64_t bits = 0;
        std::span<const uint8_t> bytes;
    };
    // Everything behind the timestamp of a BEGIN packet that carries nothing, or one known word, as the lanes of turn
    // `owner` write it.
    struct Tail {
        uint32_t owner = 0;
        int32_t category = -1;
        uint32_t size = 0;
        uint8_t bytes[36];
    };
    struct Open {
        int64_t end;
        int64_t index;
    };
    // Arguments that follow one another and concern the same events: most columns of a table.
    struct Group {
        int64_t base, count;
        size_t first, last;

        bool concerns(int64_t index) const { return static_cast<uint64_t>(index) - static_cast<uint64_t>(base) < static_cast<uint64_t>(count); }
    };
    static std::vector<Group> groups_of(const std::vector<Argument>& arguments);

    int64_t last_time(const Lane& lane) const;
    void start_lane(const Lane& lane);
    void move_clock(int64_t ts, std::span<const uint8_t> rest);
    bool run_lane(const Lane& lane, size_t target);
    template <bool kBare>
    void run_plain(const Lane& lane, size_t target);
    bool run_samples(const Lane& lane, size_t target);
    void begin_slice();
    void end_slice(const Lane& lane);
    void instants_before(const Lane& lane, int64_t ts);

    void event(const Events& events, int64_t position, uint8_t type);
    void remember_tail(size_t slot, int32_t category, std::span<const uint8_t> event);
    void packet(int64_t ts);
    void add_flows(const Events& events, int64_t index, bool at_end);
    void add_argument(const Argument& argument, std::vector<Interned>& texts, Interned& name, int64_t index);
    void add_rows(const Argument& argument, std::vector<Interned>& texts, Interned& name, int64_t from, int64_t to);
    bool read_value(const Argument& argument, std::vector<Interned>& texts, int64_t position, Value* out);
    uint32_t intern(Interned& entry, uint32_t field, std::span<const uint8_t> text);
    void find_word();
    size_t carried(int64_t slice) const;
    bool has_flows(int64_t slice) const {
        const auto i = static_cast<size_t>(slice);
        return !slices_.flow_first.empty() && slices_.flow_first[i] != slices_.flow_first[i + 1];
    }

    uint8_t* begin() const { return static_cast<uint8_t*>(out_.data()); }
    size_t used() const { return static_cast<size_t>(at_ - begin()); }
    void ensure(size_t bytes);
    void fail(Status status) { status_ = status; }

    Events slices_;
    Events instants_;
    Samples samples_;
    Texts names_;
    Texts categories_;
    std::vector<Lane> lanes_;
    Status status_ = Status::ok;

    // Where the encoding stands: a block may end anywhere inside a lane.
    size_t lane_ = 0;
    size_t last_lane_ = 0;
    bool inside_ = false;
    int64_t next_slice_ = 0;
    int64_t next_instant_ = 0;
    int64_t next_sample_ = 0;
    std::vector<Open> open_;  // from 1; 0 is a floor that never ends
    size_t depth_ = 0;
    int64_t last_ts_ = 0;
    int64_t last_instant_ts_ = -1;
    int64_t instants_at_once_ = 0;

    int64_t origin_ = 0;
    bool is_part_ = false;
    uint64_t flow_base_ = 0;
    uint32_t turn_ = 0;  // since the sequence started afresh the last time; from 1
    uint32_t lanes_a_turn_ = 1;

    const Argument* word_ = nullptr;  // an argument whose few texts have tails of their own: a slice's flags, say
    bool has_only_word_ = false;      // it is the only argument, and concerns all slices
    size_t tails_a_name_ = 1;         // without it, then with each of its texts
    std::vector<Tail> tails_;
    std::vector<Group> slice_groups_, instant_groups_;  // of their arguments
    std::vector<Interned> interned_names_;
    std::vector<Interned> interned_categories_;
    std::vector<Interned> interned_arguments_;             // names, by argument: slices', then instants'
    std::vector<std::vector<Interned>> interned_values_;  // texts, by argument
    uint32_t next_iid_[4] = {};

    LargeMemory out_;
    LargeMemory last_;  // the block before, where it is kept
    uint8_t* at_ = nullptr;
    Bytes event_;
    Bytes argument_;
    Bytes element_;
    Bytes interned_;
    Bytes entry_;
};

}  // namespace lanescope::perfetto
