// Trace events of JSON, as Chrome's format has them: an object with the list `traceEvents` among other members, or that
// list alone. Each event goes into columns; what stands before and behind the list is told by its place.
//
// The text comes in pieces of any size. An event is read when all of it is there, so how the text is cut changes nothing.
// Anything else in the list is lost: the bytes from its begin to the begin of the next event are one run.
//
// Source: "Trace Event Format" (Chromium project), and what writers make of it.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/wire/growing.hpp"
#include "core/wire/trace_events/characters.hpp"
#include "core/wire/trace_events/interner.hpp"

namespace lanescope::trace_events {

// What a wanted argument is. `integer` takes texts of digits, too; `text` takes any value as it stands in the file. A
// value of another type is counted as odd; `null` is the same as missing.
enum class ValueKind : uint8_t { integer, number, text, triple, boolean };

struct Wanted {
    std::string key;  // as it stands in the file
    uint32_t column = 0;  // several keys may share one
};

// Values of one argument, of the events that have it.
struct Values {
    explicit Values(ValueKind of) : kind(of) {}
    ValueKind kind;
    Growing<int64_t> event;
    Growing<int64_t> value;  // bits of a double; code of a text; three in a row of a triple
    Growing<int64_t> odd;  // events with a value of another type
};

// Bits of `flags` above the phase, which is the low byte: 0 where an event has none of one character.
enum Bit : uint32_t {
    kHasTime = 1u << 8,
    kHasDuration = 1u << 9,
    kBadTime = 1u << 10,  // there is one that is not a number, or does not fit
    kBadDuration = 1u << 11,
    kRounded = 1u << 12,  // finer than a nanosecond
    kRepeatedKey = 1u << 13,  // the last value is taken
    kTooDeep = 1u << 14,  // arguments are left out
    kEnclosing = 1u << 15,  // bp is "e"
    kFlowIn = 1u << 16,
    kFlowOut = 1u << 17,
    kProcessScope = 1u << 18,
    kGlobalScope = 1u << 19,
    kHasArguments = 1u << 20,
    kTextTime = 1u << 21,  // the time is a text
    kBadSeries = 1u << 22,  // a value of a counter is not a number
    kHasId = 1u << 23,
    kHasBindId = 1u << 24,
    kHasStack = 1u << 25,  // refers to stack frames
    kHasThreadTime = 1u << 26,  // tts or tdur
    kHasFacts = 1u << 27,  // arguments begin with what our own writer says of an unusual event
};

// What an id is: of a number (or a hexadecimal text) the value, else the code of its text.
enum IdKind : uint8_t { kNumberId = 1, kTextId = 2, kLocalId = 4, kGlobalId = 8 };

struct Ids {
    Growing<int64_t> event;
    Growing<uint64_t> value;
    Growing<uint8_t> kind;
};

// Columns by event.
struct Events {
    Growing<int64_t> begin;  // in the file
    Growing<uint32_t> size;
    Growing<uint32_t> flags;
    Growing<int64_t> ts, dur;  // ns; 0 without
    Growing<int32_t> place;
    Growing<int32_t> name, category;  // codes, -1: none
    Growing<uint32_t> args_begin;  // from `begin`
    Growing<uint32_t> args_size;
    std::array<int64_t, 256> by_phase{};  // how many there are of each

    template <class F>
    void each(F act) {
        act(begin, size, flags, ts, dur, place, name, category, args_begin, args_size);
    }
    // All columns have the same length: whether there is room is asked once for all.
    template <class... V>
    void add(V... values) {
        each([&](auto&... columns) {
            if (begin.size() == room_) [[unlikely]] {
                ((columns.size() == columns.room() ? columns.grow() : void()), ...);
                room_ = std::min({columns.room()...});
            }
            (columns.push_within(values), ...);
        });
    }
    void begin_again() {
        room_ = 0;
        by_phase.fill(0);
    }

private:
    size_t room_ = 0;  // of the column that has the least
};

// Values of counters.
struct Series {
    Growing<int64_t> event;
    Growing<int32_t> key;  // code of a text
    Growing<double> value;
    int64_t odd = 0;  // values that are no number
};

// A process and a thread: twice the code of a text, plus 1 if it stands in quotes; -1: none.
struct Place {
    int32_t process = -1;
    int32_t thread = -1;
    bool operator==(const Place&) const = default;
};

// Why bytes are lost: they are not JSON, and stand in the list or outside; they are an element of the list, but not an
// event; the file ends inside of them; or they follow its end.
enum class Loss : uint8_t { broken, outside, element, cut, trailing };

struct Run {
    int64_t begin = 0;
    int64_t end = 0;
    Loss loss = Loss::broken;
    bool is_in_list = false;
};

struct Member {
    int64_t key_begin = 0;  // without quotes
    int64_t key_end = 0;
    int64_t begin = 0;
    int64_t end = 0;
};

enum class Ending : uint8_t { open, whole, unterminated, foreign };

class Scanner {
public:
    // No event, and no other unit but a member's value, is longer.
    static constexpr size_t kMostUnit = size_t{256} << 20;
    // Arguments that are nested deeper are left out.
    static constexpr size_t kMostDepth = 100;

    Scanner(const std::vector<ValueKind>& kinds, const std::vector<Wanted>& args);

    // About so many bytes will be fed until the columns are taken: room for their rows is made at once.
    void expect(int64_t bytes) { expected_ = bytes; }
    void feed(std::string_view bytes);
    void finish();
    // The columns were taken: what is fed next fills new ones.
    void begin_columns() {
        columns_from_ = size;
        events.begin_again();
    }

    Events events;
    Ids ids, bind_ids;
    Series series;
    std::vector<Values> values;
    std::vector<Place> places;
    std::vector<Member> members;
    std::vector<Run> lost;
    Interner names, categories, texts;
    int64_t size = 0;
    int64_t decoded = 0;  // bytes; `size` less those of `lost` at the end
    int64_t extra_commas = 0;
    int64_t missing_commas = 0;  // between elements of the list
    int64_t missing_member_commas = 0;
    int64_t lists = 0;  // of events; more than one in a file that names its list again
    bool has_trailing_comma = false;  // at the end of the list
    bool is_bare = false;  // the list alone
    bool has_list = false;
    Ending ending = Ending::open;

private:
    enum class State : uint8_t { start, members, value, events, tail };
    enum class Step : uint8_t { done, more, bad, closed };
    // What a key of an event, or of its arguments, is.
    enum class Role : uint8_t {
        other, ph, ts, dur, pid, tid, name, cat, args, id, id2, scope, bp, s, bind_id, thread_time, flow_in, flow_out, stack, wanted
    };

    struct Key {
        std::string text;
        Role role = Role::other;
        uint32_t column = 0;
    };
    // Keys of one kind of object, and what was seen between the end of the value of each and the begin of the next value.
    // Writers repeat themselves: mostly what follows is that once more.
    class Keys {
    public:
        static constexpr int32_t kNone = -1, kClosed = -2;
        // `separator` stands from the end of one value to the begin of the next one, or behind the closing bracket. `mask`
        // has a bit for each of its first 16 bytes; while there is none, a bit that no block has.
        struct alignas(64) Following {  // of one cache line, which is found by a shift
            static constexpr size_t kMost = 48;
            char separator[kMost] = {};
            uint32_t mask = kNever;
            uint32_t size = 0;
            int32_t key = kNone;
            uint32_t last = 0;  // of the first of two

            bool is_at(const char* at) const {
                if (!is_same(at, separator, mask)) return false;
                for (size_t i = 16; i < size; i += 16) {
                    if (!is_same(at + i, separator + i, mask_of(size - i))) return false;
                }
                return true;
            }
        };
        // Two of them, as events of several kinds take turns; `last` is the one that came last.
        struct Both {
            Following of[2];
            uint32_t& last() { return of[0].last; }
        };

        Keys() : following_(1) { slots_.fill(kNone); }
        void add(std::string_view key, Role role, uint32_t column = 0);
        int32_t find(std::string_view key) const;
        int32_t find_or_add(std::string_view key);
        const Key& operator[](int32_t number) const { return keys_[static_cast<size_t>(number)]; }
        // Steps over what was seen behind the value of `previous` before; false if it is something else.
        bool skip(const char*& at, int32_t previous, int32_t* key) {
            Both& seen = following_.data()[previous + 1];
            const Following* one = &seen.of[seen.last()];
            if (!one->is_at(at)) [[unlikely]] {
                one = &seen.of[seen.last() ^ 1];
                if (!one->is_at(at)) return false;
                seen.last() ^= 1;
            }
            at += one->size;
            *key = one->key;
            return true;
        }
        void learn(int32_t previous, int32_t key, std::string_view separator);

    private:
        static constexpr size_t kMostKeys = 1024;
        static size_t slot_of(std::string_view key);
        std::vector<Key> keys_;
        std::vector<int32_t> next_;  // of the same slot
        std::array<int32_t, 512> slots_{};
        std::vector<Both> following_;  // by key + 1
    };
    struct Id {
        uint64_t value = 0;
        uint8_t kind = 0;
    };
    enum class Is : uint8_t { sound, odd, null };
    struct Found {
        Found(uint16_t of, Is what, int32_t by) : column(of), is(what), key(by) {}
        uint16_t column;
        Is is;
        int32_t key;
        int64_t value[3];
    };
    // A value that was read last, with its code: often it comes again. Of one that is longer than a block nothing is known.
    struct Last {
        Last() = default;
        Last(std::string_view value, int32_t of)
            : size(static_cast<uint32_t>(value.size())), mask(size <= sizeof text ? mask_of(size) : kNever), code(of) {
            std::copy_n(value.data(), std::min(value.size(), sizeof text), text);
        }
        char text[16] = {};
        uint32_t size = 0;
        uint32_t mask = kNever;
        int32_t code = -1;
    };
    // Which text came after each one, as often it does so again.
    struct Course {
        int32_t last = -1;
        std::vector<int32_t> next;  // by code; -1: none
    };
    struct Fresh {
        uint32_t flags = 0;
        int32_t name = -1, category = -1;
        int64_t ts = 0, dur = 0;
        Place place;
        Id id, bind_id;
        std::string_view id_scope;
        const char* args_begin = nullptr;
        const char* args_end = nullptr;
    };

    void run();
    bool step();
    bool start();
    bool member();
    bool member_value();
    bool element();
    bool enter_list(const char* at);
    bool seek(const char* from);
    bool is_out(const char* at) const { return at >= end_; }
    Step out_or_bad(const char* at) const { return at >= end_ ? Step::more : Step::bad; }
    void take(const char* to) {
        decoded += to - at_;
        at_ = to;
    }
    void lose(const char* to, Loss loss);
    void lose_member(Loss loss);
    int64_t offset(const char* at) const { return base_ + (at - buffer_.data()); }

    static void space(const char*& at) {
        while (is_space(*at)) ++at;
    }
    Step text(const char*& at, std::string_view* out) const;
    Step skip(const char*& at, bool* is_deep = nullptr) const;
    Step skip_nested(const char*& at, bool* is_deep) const;
    Step skip_word(const char*& at) const;
    Step skip_number(const char*& at) const;
    // From the end of the value of `previous`, or from behind the opening bracket, to the next value; behind the closing
    // bracket if there is none.
    Step next_value(const char*& at, Keys& keys, int32_t previous, int32_t* key) const {
        if (!keys.skip(at, previous, key)) [[unlikely]] return other_value(at, keys, previous, key);
        if (*key == Keys::kClosed) return Step::closed;
        space(at);
        return is_out(at) ? Step::more : Step::done;
    }
    Step other_value(const char*& at, Keys& keys, int32_t previous, int32_t* key) const;
    Step event(const char*& at);
    Step value_of(const char*& at, const Key& key);
    Step time(const char*& at, int64_t* out, uint32_t has, uint32_t bad);
    Step place_part(const char*& at, int32_t* out, Last& last);
    Step name_or_category(const char*& at, Interner& into, Course& course, int32_t* out);
    Step id(const char*& at, Id* out, uint8_t scope);
    Step scoped_id(const char*& at);
    Step args(const char*& at);
    Step wanted(const char*& at, int32_t key, uint32_t column);
    // The last of `found_` is whole.
    void found_one() {
        const uint64_t bit = uint64_t{1} << (found_.back().column & 63);
        if ((found_columns_ & bit) != 0) [[unlikely]] replace_found();
        found_columns_ |= bit;
    }
    void replace_found();
    void clear_found() {
        found_.clear();
        found_columns_ = 0;
    }
    bool triple(std::string_view text, int64_t* out) const;
    void counters();
    void make_room();
    int32_t place_of(const Place& place);
    Id scoped(const Id& id);
    void keep(const char* begin, const char* end);

    Keys member_keys_, arg_keys_, id_keys_;
    Fresh fresh_;  // the event being read
    uint32_t seen_ = 0;  // its keys, by role
    std::vector<Found> found_;  // its wanted arguments, at most one of each column
    uint64_t found_columns_ = 0;  // a bit for the columns of `found_`, by number modulo 64
    std::vector<int32_t> place_slots_;
    int32_t last_place_ = -1;
    Last last_process_, last_thread_;
    Course names_course_, categories_course_;

    std::string buffer_;
    const char* at_ = nullptr;
    const char* end_ = nullptr;
    int64_t base_ = 0;  // offset of the buffer in the file
    int64_t expected_ = 0;
    int64_t columns_from_ = 0;  // `size` when the columns were empty
    size_t wait_for_ = 0;  // bytes of the buffer before it is worth another try
    State state_ = State::start;
    bool is_fresh_ = true;  // no element of the innermost container yet
    bool had_comma_ = false;
    bool is_seeking_ = false;
    bool is_final_ = false;
    uint64_t effort_ = 0;  // bytes of trials while seeking
    // Of the value of a member; its end is how far it was looked at.
    Member member_;
    int64_t member_begin_ = 0;
    std::string nest_;  // the brackets that close it
    bool is_in_text_ = false;
    bool is_cut_ = false;  // the file ends in it
};

}  // namespace lanescope::trace_events
