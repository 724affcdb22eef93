// What no trace unit writes, though it can be read: a unit has exactly one encoding for what it saw. The reference is
// formats/canonical.py, which says where each rule comes from.
#include "core/devices/aie/canonical.hpp"

namespace lanescope::aie {
namespace {

// Least idle cycles, or repeats, for which a unit takes a frame of this kind.
constexpr uint32_t least_of(Frame frame) {
    switch (frame) {
        case Frame::repeat0: return 1;
        case Frame::single1:
        case Frame::multiple1:
        case Frame::repeat1: return 1 << 4;
        case Frame::single2:
        case Frame::multiple2: return 1 << 10;
        default: return 0;
    }
}

constexpr uint32_t kPcMaskShift = 18;

// A Repeat where a unit repeats something else, or says it otherwise.
Grade repeat(Tail& tail, uint32_t mode, Frame frame, uint32_t n) {
    const bool is_wrong = n < least_of(frame) || tail.repeats == Repeats::some || tail.is_synced;
    const bool is_late = tail.is_event && tail.idle != 0 && mode == kEventTime;
    tail.repeats = n == kMaxRepeat ? Repeats::most : Repeats::some;
    tail.is_synced = false;
    if (mode == kExecution) return is_wrong ? Grade::unseen : Grade::sound;
    return is_wrong ? Grade::never : is_late ? Grade::unseen : Grade::sound;
}

Grade event(Tail& tail, const Code& code, uint32_t bits) {
    const uint32_t cycles = bits & code.value_mask;
    const uint32_t mask = code.single | (bits >> code.value_bits & code.multiple);
    const bool is_repeated = tail.is_event && !tail.is_synced && tail.idle == 0 && cycles == 0 && mask == tail.mask;
    tail.is_event = true;
    tail.is_synced = false;
    tail.repeats = Repeats::none;
    tail.idle = cycles;
    tail.mask = mask;
    if (is_repeated || (code.multiple != 0 && (mask & (mask - 1)) == 0)) return Grade::never;
    if (cycles >= least_of(code.frame)) return Grade::sound;
    // No capture that we know holds several events after so many cycles.
    return code.frame == Frame::multiple2 && cycles >= 1 << 4 ? Grade::unseen : Grade::never;
}

Grade judge(Tail& tail, uint32_t mode, const Code& code, uint32_t bits) {
    if (code.is_repeat != 0) return repeat(tail, mode, code.frame, bits & code.value_mask);
    if (code.frame == Frame::sync) {
        tail.is_synced = true;
        return Grade::sound;
    }
    if (code.frame == Frame::stop) {
        tail = {};
        return Grade::sound;
    }
    if (mode == kEventTime) return event(tail, code, bits);
    tail.is_synced = false;
    tail.repeats = Repeats::none;
    return mode == kEventPc && bits >> kPcMaskShift == 0x3100 ? Grade::never : Grade::sound;
}

bool is_padding(Frame frame) { return frame == Frame::padding || frame == Frame::filler0 || frame == Frame::filler1; }

// The frames of one word. `found` is called with the grade of each that no unit writes there.
template <typename Found>
void judge_word(Tail& tail, uint32_t word, const Found& found) {
    const auto& codes = codes_of(tail.mode);
    unsigned padding = 0;
    for (unsigned left = 32; left > 0;) {
        const Code& code = codes[word >> 24];
        if (code.frame == Frame::unknown_code || code.bits > left) {
            tail.forget();
            return;
        }
        if (is_padding(code.frame)) {
            padding += code.bits;
        } else {
            const bool had_room = left == 32 ? code.bits <= tail.padding : padding != 0;
            const Grade grade = judge(tail, tail.mode, code, word >> (32 - code.bits));
            if (had_room) found(Grade::never);
            else if (grade != Grade::sound) found(grade);
            padding = 0;
            if (!tail.is_open) return;
        }
        left -= code.bits;
        if (left != 0) word <<= code.bits;
    }
    tail.padding = static_cast<uint8_t>(padding);
}

// Whether a word holds nothing but what most words of its mode do, and that soundly: one event with its address, or two
// addresses. Nothing lies behind it that the next frame has to regard.
bool is_plain(const Tail& tail, uint32_t word) {
    if (tail.mode == kEventPc) return word >> 26 == 0x31 && word >> kPcMaskShift != 0x3100 && tail.padding < 32;
    return tail.mode == kExecution && (word & 0xC000C000) == 0x80008000 && tail.padding < 16;
}

// A word of mode 1 with one sound Repeat and padding. False, and nothing is done, if it is none.
bool take_repeat(Tail& tail, uint32_t word) {
    const bool is_short = (word & 0xF0FFFFFF) == 0xE0FEFEFE;
    if (!is_short && (word & 0xFC00FFFF) != 0xD800FEFE) return false;
    const uint32_t n = is_short ? word >> 24 & 0xF : word >> 16 & kMaxRepeat;
    const unsigned bits = is_short ? 8 : 16;
    if (n < (is_short ? 1 : 16) || tail.repeats == Repeats::some || tail.is_synced || bits <= tail.padding) return false;
    tail.repeats = n == kMaxRepeat ? Repeats::most : Repeats::some;
    tail.padding = static_cast<uint8_t>(32 - bits);
    return true;
}

// What mode 2 mostly has, by the byte that a frame begins with: two atoms at once, where both nibbles are one.
struct Step {
    enum Kind : uint8_t { other, atoms, frame, padding, repeat } kind = other;
    uint8_t bits = 0;
    uint8_t first = 0;  // bits of the first frame; of padding more than a word has
    uint8_t least = 0;  // repeats
    uint32_t value_mask = 0;
};
constexpr auto kSteps = [] {
    std::array<Step, 256> made{};
    for (uint32_t byte = 0; byte < made.size(); ++byte) {
        const Code& code = kFlowCodes[byte];
        Step& step = made[byte];
        step.bits = step.first = code.bits;
        const bool is_atom = code.frame == Frame::taken || code.frame == Frame::not_taken;
        if (is_atom && byte % 16 < 2) {
            step.kind = Step::atoms;
            step.bits = 8;
        } else if (is_atom || code.frame == Frame::new_pc || code.frame == Frame::loop) {
            step.kind = Step::frame;
        } else if (code.frame == Frame::filler0) {
            step.kind = Step::padding;
            step.first = 64;
        } else if (code.is_repeat != 0) {
            step.kind = Step::repeat;
            step.least = static_cast<uint8_t>(least_of(code.frame));
            step.value_mask = code.value_mask;
        }
    }
    return made;
}();

// A word of mode 2 in which all is sound. False, and nothing is done, where something may not be.
bool take_flow(Tail& tail, uint32_t word) {
    if (kSteps[word >> 24].first <= tail.padding) return false;
    uint32_t padding = 0;
    Repeats repeats = tail.repeats;
    bool is_synced = tail.is_synced;
    for (int left = 32; left > 0;) {
        const Step& step = kSteps[word >> 24];
        // Behind the last nibble of a word are zeros, which look like one more atom.
        if (step.kind == Step::other || (step.bits > left && step.kind != Step::atoms)) return false;
        if (step.kind == Step::padding) {
            padding += step.bits;
        } else {
            if (padding != 0) return false;
            if (step.kind == Step::repeat) {
                const uint32_t n = word >> (32 - step.bits) & step.value_mask;
                if (n < step.least || repeats == Repeats::some || is_synced) return false;
                repeats = n == kMaxRepeat ? Repeats::most : Repeats::some;
            } else {
                repeats = Repeats::none;
                is_synced = false;
            }
        }
        left -= step.bits;
        word = left > 0 ? word << step.bits : 0;
    }
    tail.repeats = repeats;
    tail.is_synced = is_synced;
    tail.padding = static_cast<uint8_t>(padding);
    return true;
}

}  // namespace

void Tail::forget() {
    is_event = is_synced = false;
    repeats = Repeats::none;
    padding = 0;
}

Departures judge_payload(Tail& tail, const uint32_t* payload) {
    Departures result;
    for (size_t i = 0; i < kPayloadWords; ++i) {
        const uint32_t word = payload[i];
        if (tail.is_in_start) {
            tail.is_in_start = false;
            continue;
        }
        if (is_start(word)) {
            tail = {.is_open = mode_of(word) != kReservedMode, .is_in_start = has_timer(word), .mode = mode_of(word)};
            continue;
        }
        if (!tail.is_open) continue;
        if (word == 0 && tail.mode != kExecution) {
            tail.forget();
            continue;
        }
        if (is_plain(tail, word)) {
            tail.is_synced = false;
            tail.repeats = Repeats::none;
            tail.padding = 0;
            continue;
        }
        if (tail.mode == kEventPc ? take_repeat(tail, word) : tail.mode == kExecution && take_flow(tail, word)) continue;
        judge_word(tail, word, [&](Grade grade) { (grade == Grade::never ? result.never : result.unseen).add(static_cast<int64_t>(i)); });
    }
    return result;
}

Tail tail_behind(uint32_t last_word, uint32_t mask, uint32_t idle) {
    Tail tail{.is_open = true};
    judge_word(tail, last_word, [](Grade) {});
    tail.is_event = true;
    tail.mask = mask;
    tail.idle = idle;
    return tail;
}

}  // namespace lanescope::aie
