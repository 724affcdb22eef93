// Trace events of JSON, as Chrome's format has them: an object with the list `traceEvents` among other members, or that
// list alone. Each event goes into columns; what stands before and behind the list is told by its place.
//
// The text comes in pieces of any size. An event is read when all of it is there, so how the text is cut changes nothing.
// Anything else in the list is lost: the bytes from its begin to the begin of the next event are one run.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/wire/trace_events/interner.hpp"

namespace lanescope::trace_events {

// What a wanted value is. `integer` takes texts of digits, too; `text` takes any value as it stands in the file. A value
// of another type is counted as odd; `null` is the same as missing.
enum class ValueKind : uint8_t { integer, number, text, triple, boolean };

struct Wanted {
    std::string key;  // as it stands in the file
    uint32_t column = 0;  // several keys may share one
};

// Values of one key, of the events that have it.
struct Values {
    ValueKind kind = ValueKind::integer;
    std::vector<int64_t> event;
    std::vector<int64_t> value;  // bits of a double; code of a text; three in a row of a triple
    std::vector<int64_t> odd;  // events with a value of another type
};

// Bits of an event.
enum Bit : uint16_t {
    kHasTs = 1 << 0,
    kHasDur = 1 << 1,
    kRounded = 1 << 2,  // a time has digits below a nanosecond
    kBadTs = 1 << 3,  // no number, or beyond 62 bits
    kBadDur = 1 << 4,
    kTextTime = 1 << 5,  // a time is written as a text
    kHasId = 1 << 6,
    kTextId = 1 << 7,  // `id` is the code of a text
    kHasArgs = 1 << 8,
    kOtherKeys = 1 << 9,  // it has keys besides the wanted ones
    kRepeatedKey = 1 << 10,  // a key comes twice: the last one counts
};

enum class PlaceKind : uint8_t { none, integer, text };

// A process and a thread.
struct Place {
    int64_t process = 0;  // of a text its code
    int64_t thread = 0;
    PlaceKind process_kind = PlaceKind::none;
    PlaceKind thread_kind = PlaceKind::none;
    bool operator==(const Place&) const = default;
};

struct Run {
    int64_t begin = 0;
    int64_t end = 0;
};

struct Member {
    int64_t key_begin = 0;  // without quotes
    int64_t key_end = 0;
    int64_t begin = 0;
    int64_t end = 0;
};

// A value of a counter.
struct Series {
    std::vector<int64_t> event;
    std::vector<int32_t> key;  // code of a text
    std::vector<double> value;
    int64_t odd = 0;  // values that are no number
};

struct Events {
    std::vector<int64_t> begin;  // in the file
    std::vector<uint32_t> size;
    std::vector<uint8_t> phase;  // a character; 0: missing, or more than one
    std::vector<uint16_t> bits;
    std::vector<int32_t> name;  // -1: missing
    std::vector<int32_t> category;
    std::vector<int64_t> ts;  // ns
    std::vector<int64_t> dur;
    std::vector<int32_t> place;
    std::vector<int64_t> id;
    std::vector<uint32_t> args_begin;  // from `begin`
    std::vector<uint32_t> args_size;
};

enum class Ending : uint8_t { open, whole, unterminated, foreign };

class Scanner {
public:
    // No event and no other member is longer.
    static constexpr size_t kMostUnit = size_t{256} << 20;
    static constexpr size_t kMaxDepth = 100;

    Scanner(std::vector<ValueKind> kinds, const std::vector<Wanted>& members, const std::vector<Wanted>& args);

    void feed(std::string_view bytes);
    void finish();

    Events events;
    Series series;
    std::vector<Values> values;
    std::vector<Place> places;
    std::vector<Member> members;
    std::vector<Run> lost;
    std::vector<uint8_t> lost_is_event;  // whether a run lies in the list
    Interner names, categories, texts;
    int64_t size = 0;
    int64_t decoded = 0;  // bytes; `size` less those of `lost` at the end
    int64_t extra_commas = 0;
    int64_t missing_commas = 0;
    bool is_bare = false;  // the list alone
    bool has_list = false;
    Ending ending = Ending::open;

private:
    enum class State : uint8_t { start, members, events, tail };
    enum class Step : uint8_t { done, more, bad };

    struct Key {
        std::string text;
        uint32_t column = 0;
        int32_t next = -1;  // with the same hash
    };
    struct Keys {
        static constexpr size_t kSlots = 512;
        std::vector<Key> keys;
        std::array<int32_t, kSlots> slots{};
        std::vector<int32_t> following;  // by key + 1, which one came next last time

        explicit Keys(const std::vector<Wanted>& wanted);
        int32_t find(std::string_view key, int32_t previous);
    };
    struct Fresh;

    void run();
    bool step();
    bool start();
    bool member();
    bool element();
    bool seek_event(const char* from);
    bool seek_list(const char* from);
    bool tail();
    bool is_out(const char* at) const { return at >= end_; }
    Step out_or_bad(const char* at) const { return at >= end_ ? Step::more : Step::bad; }
    void take(const char* to) {
        decoded += to - at_;
        at_ = to;
    }
    void lose(const char* to);
    int64_t offset(const char* at) const { return base_ + (at - buffer_.data()); }

    void space(const char*& at) const;
    Step text(const char*& at, std::string_view* out) const;
    Step skip(const char*& at) const;
    Step skip_nested(const char*& at) const;
    Step key(const char*& at, std::string_view* out) const;
    Step event(const char*& at);
    Step event_key(const char*& at, std::string_view key, Fresh& fresh);
    Step time(const char*& at, Fresh& fresh, int64_t* out, uint16_t has, uint16_t bad);
    Step place_part(const char*& at, int64_t* out, PlaceKind* kind);
    Step args(const char*& at, Fresh& fresh);
    Step wanted(const char*& at, uint32_t column);
    Step triple(const char*& at, uint32_t column);
    Step counters(const char* at, const char* end);
    int32_t place_of(const Place& place);
    void keep(const char* begin, const char* end, const Fresh& fresh);
    void undo();
    void forget();

    Keys member_keys_, arg_keys_;
    std::vector<uint32_t> touched_;  // columns of `values` that the event being read has a value in
    int32_t previous_member_ = -1;
    std::vector<int32_t> place_slots_;
    int32_t last_place_ = -1;

    std::string buffer_;
    const char* at_ = nullptr;
    const char* end_ = nullptr;
    int64_t base_ = 0;  // offset of the buffer in the file
    size_t wait_for_ = 0;  // bytes of the buffer before it is worth another try
    State state_ = State::start;
    bool is_fresh_ = true;  // no element of the innermost container yet
    bool had_comma_ = false;
    bool is_seeking_ = false;
    bool is_final_ = false;
};

}  // namespace lanescope::trace_events
