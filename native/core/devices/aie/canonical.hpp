// What no trace unit writes, though it can be read.
#pragma once
#include "core/devices/aie/frame_format.hpp"

namespace lanescope::aie {

// How sure it is that no unit writes a frame: captures of hardware show what it writes instead, or none shows the case.
enum class Grade : uint8_t { sound, never, unseen };
enum class Repeats : uint8_t { none, some, most };

// What the frames before say about the next one.
struct Tail {
    bool is_open = false;      // between Start and Stop
    bool is_in_start = false;  // the next word is the second one of a Start
    bool is_event = false;     // `mask` and `idle` are those of the last event frame; mode 0
    bool is_synced = false;    // a Sync lies between it and now
    Repeats repeats = Repeats::none;  // of the last frame
    uint8_t padding = 0;              // bits at the end of the word before
    uint32_t mode = 0;
    uint32_t mask = 0;
    uint32_t idle = 0;

    void forget();  // what could not be read follows
};

// Frames by grade, and the word of the payload that holds the first one.
struct Departures {
    Tally never;
    Tally unseen;
};

Departures judge_payload(Tail& tail, const uint32_t* payload);

// The tail behind a packet whose last word is this one, `mask` and `idle` of its last event frame.
Tail tail_behind(uint32_t last_word, uint32_t mask, uint32_t idle);

}  // namespace lanescope::aie
