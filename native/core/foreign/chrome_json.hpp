// Trace events in Chrome's JSON, read window by window into columns.
//
// A file is an array of event objects, or an object that has one as `traceEvents` among other keys. Events become rows:
// times in nanoseconds exactly as their decimal text gives them, texts by code, everything else as it is needed to draw
// them; arguments stay where they are, as places in the file. What is not JSON is stepped over up to the next event, and
// every byte of it is counted.
//
// Source: "Trace Event Format" (Chromium project), and what writers make of it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/foreign/interner.hpp"

namespace lanescope::foreign {

// Bits of `flags` above the phase, which is the low byte: 0 where an event has none of one character.
enum EventBit : uint32_t {
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
};

// What an id is: of a number (or a hexadecimal text) the value, else the code of its text.
enum IdKind : uint8_t { kNumberId = 1, kTextId = 2, kLocalId = 4, kGlobalId = 8 };

struct Ids {
    std::vector<int64_t> row;  // of the event, from the beginning of the file
    std::vector<uint64_t> value;
    std::vector<uint8_t> kind;
};

// Columns by event.
struct Events {
    std::vector<int64_t> offset;
    std::vector<uint32_t> size;
    std::vector<uint32_t> flags;
    std::vector<int64_t> ts, dur;  // ns; 0 without
    std::vector<int32_t> lane;  // of lanes()
    std::vector<int32_t> name, category;  // codes of texts(), -1: none
    std::vector<uint32_t> args_begin;  // from the offset
    std::vector<uint32_t> args_size;
    Ids ids, bind_ids;
    std::vector<int64_t> series_row;  // values of counters: the event
    std::vector<int32_t> series_name;
    std::vector<double> series_value;
};

// A key of the outermost object that is not the list of events.
struct Entry {
    std::string key;  // escapes as they stand
    int64_t begin = 0;
    int64_t end = 0;
};

struct FileTally {
    int64_t lost_bytes = 0;  // of what is not JSON, cut off, or behind the end
    int64_t broken = 0;  // passages without an event that can be read
    int64_t not_events = 0;  // elements of the list other than objects
    int64_t first_broken = -1, first_not_event = -1, first_cut = -1, first_trailing = -1;  // offsets; -1: none
    int64_t missing_commas = 0;
    bool is_cut = false;  // ends inside of an event, or of another value
    bool is_unterminated = false;  // ends before the list, or the object around it, does
    bool is_trailing_comma = false;
    bool has_trailing = false;  // there is something behind the end
    bool has_events = false;  // there is a list of events
};

class EventReader {
public:
    // Bytes of value 0 that a caller keeps behind a window.
    static constexpr size_t kPadding = 64;
    static constexpr size_t kMaxDepth = 100;

    // Reads the events of a window that continues the file; returns how many of its bytes are done with: what is left is
    // the beginning of the next window. Of the last one nothing is left.
    size_t feed(std::span<const char> window, bool is_last);
    // The events since the last call.
    Events take();

    const Interner& texts() const { return texts_; }
    // Codes of process and thread by lane, -1: not given.
    const std::vector<std::pair<int32_t, int32_t>>& lanes() const { return lanes_; }
    const std::vector<Entry>& entries() const { return entries_; }
    const FileTally& tally() const { return tally_; }

private:
    enum class State : uint8_t { start, key, value, between, list, resync, done };
    enum class Result : uint8_t { ok, incomplete, fault };
    struct Last {
        std::string text;
        int32_t code = -1;
    };
    struct Id {
        uint64_t value = 0;
        uint8_t kind = 0;
    };

    bool at_end() const { return at_ >= end_; }
    Result failed() const { return at_ >= end_ ? Result::incomplete : Result::fault; }
    int64_t offset(const char* place) const { return file_offset_ + (place - begin_); }
    void space();
    void lose(const char* begin, const char* end);
    void count(int64_t& found, int64_t& first, const char* place);
    bool step(bool is_last);
    bool step_list();
    bool step_resync(bool is_last);
    bool step_value();
    Result skip_string();
    Result skip_number();
    Result skip_word();
    Result skip_value(bool* is_deep);
    Result read_event();
    Result read_member(std::string_view key, uint32_t* seen);
    Result read_text(int32_t* code, Last* last);
    Result read_time(int64_t* out, uint32_t has, uint32_t bad);
    Result read_id(Id* out, uint8_t scope);
    Result read_scoped_id();
    Result read_truth(uint32_t bit);
    void read_series(const char* begin, const char* end);
    void keep();
    int32_t lane(int32_t process, int32_t thread);

    const char* begin_ = nullptr;
    const char* end_ = nullptr;
    const char* at_ = nullptr;
    int64_t file_offset_ = 0;
    State state_ = State::start;
    bool is_object_ = false;
    bool needs_comma_ = false;
    bool after_comma_ = false;
    uint64_t effort_ = 0, fed_ = 0;  // bytes of trials while resynchronizing, and of windows
    // Of a value of the outermost object that is stepped over.
    std::string entry_key_;
    int64_t entry_begin_ = 0;
    uint64_t entry_depth_ = 0;
    bool entry_in_string_ = false, entry_escaped_ = false, entry_is_open_ = false;

    // Of the event that is being read.
    const char* event_ = nullptr;
    uint32_t flags_ = 0;
    int64_t ts_ = 0, dur_ = 0;
    int32_t process_ = -1, thread_ = -1, name_ = -1, category_ = -1;
    const char* args_ = nullptr;
    size_t args_size_ = 0;
    Id id_, bind_id_;

    int64_t rows_ = 0;
    Events events_;
    Interner texts_;
    Last last_process_, last_thread_, last_category_;
    std::vector<std::pair<int32_t, int32_t>> lanes_;
    std::vector<uint32_t> lane_table_;
    uint64_t last_lane_ = ~uint64_t{0};
    int32_t last_lane_code_ = 0;
    std::vector<Entry> entries_;
    FileTally tally_;
};

}  // namespace lanescope::foreign
