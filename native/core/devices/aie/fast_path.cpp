// Mode 0: packets of nothing but events, Repeats and Syncs, at which nothing has to be said. Nearly all are.
//
// Frames come in an order that no processor could guess, so no step but the last has a branch that depends on it. The
// steps: split words into frames, all words at the same time, as no frame crosses a word; tell moments at which events
// begin, each with the end of what was before (a Repeat only moves the latter); judge what each of them closes and opens,
// several at a time; write slices.
#include "core/devices/aie/timeline.hpp"

namespace lanescope::aie {
namespace {

constexpr size_t kMostFrames = 4;  // in a word, padding too
constexpr size_t kLanes = 4;       // moments that a processor judges at the same time
constexpr size_t kRoom = 1 + kMostFrames * kPayloadWords + kLanes;
constexpr uint32_t kNoSlot = 1 << 8;
// Follows on a word. Where all frames fit, what is left begins with it or with padding, and stays so: no frame begins
// with F8.
constexpr uint32_t kBehind = 0xF8F9FAFB;
constexpr uint64_t kLargestRepeat = 0xDBFF;

// What has to be known of the byte that a frame begins with. Tables of 8 bytes an entry need no address computed.
struct FrameTime {
    uint32_t value_mask;  // cycles or repeats
    uint32_t add;         // cycles that pass besides: the one of an event, those of a Sync
};
struct FrameShift {
    uint8_t value;  // from the highest bits of a word
    uint8_t mask;
};
struct FrameMask {
    uint32_t multiple;  // all ones where a mask is told
    uint32_t single;    // mask of the one slot that the byte names, or kIsMultiple; from kLeast on, what the frame is for
};
constexpr uint32_t kIsMultiple = 3 << 8;
constexpr uint32_t kLonely = 2 << 8;  // what is left of a multiple mask of less than two slots when one is taken from it
constexpr unsigned kLeast = 10;       // one more than the least idle cycles; 0 where any number is sound
// 1: an event, or a Sync, which is an event of no slot; kFrame: a frame; kRepeat: weights of Repeats; kRare: not for this
// path
constexpr uint64_t kFrame = uint64_t{1} << 32;
constexpr uint64_t kRepeat = uint64_t{1} << 38;
constexpr uint64_t kRare = uint64_t{1} << 48;
// A Repeat more weighs more than a longer one: whatever else repeats as often weighs more than what a unit writes.
constexpr uint32_t kShortWeight = 2;
constexpr uint32_t kLongWeight = 3;

// One more than the idle cycles below which a unit takes a shorter frame.
constexpr uint32_t least_of(Frame frame) {
    if (frame == Frame::single1 || frame == Frame::multiple1) return (1 << 4) + 1;
    return frame == Frame::single2 || frame == Frame::multiple2 ? (1 << 10) + 1 : 0;
}

struct Frames {
    std::array<FrameTime, 256> time{};
    std::array<FrameShift, 256> shift{};
    std::array<FrameMask, 256> mask{};
    std::array<uint64_t, 256> tally{};
    std::array<uint8_t, 256> size{};  // bits; 0: no way to go on, or behind the word
    // Negative together with the zeros of the word before where a frame had room in its padding.
    std::array<int32_t, 256> needs{};
    // What is left of a word by the zeros at its end: padding, if any, and what follows on the word. 0 where a frame goes
    // on behind the word, or all of it is padding: nothing is like that.
    std::array<uint64_t, 64> left{};
};
constexpr auto kFrames = [] {
    Frames made;
    for (size_t byte = 0; byte < made.size.size(); ++byte) {
        const Code& code = kCodes[byte];
        made.size[byte] = code.bits;
        if (code.is_common) {
            const bool is_event = code.is_repeat == 0;
            const auto shift = static_cast<uint8_t>(32 - code.bits);
            const uint32_t weight = is_event ? 0 : code.frame == Frame::repeat0 ? kShortWeight : kLongWeight;
            made.time[byte] = {.value_mask = code.value_mask, .add = is_event ? 1u : 0u};
            made.shift[byte] = {.value = shift, .mask = static_cast<uint8_t>((shift + code.value_bits) & 31)};
            made.mask[byte] = {.multiple = code.multiple,
                               .single = code.single | (code.multiple != 0 ? kIsMultiple : 0) | least_of(code.frame) << kLeast};
            made.tally[byte] = kFrame + weight * kRepeat + (is_event ? 1 : 0);
        } else if (code.frame == Frame::sync) {
            made.time[byte] = {.value_mask = 0, .add = kSyncCycles};
            made.tally[byte] = kFrame + 1;
        } else if (code.frame == Frame::padding) {
            made.size[byte] = 0;  // up to the end of the word
        } else {
            made.tally[byte] = byte == kBehind >> 24 ? 0 : kRare;
            made.size[byte] = 0;
        }
        made.needs[byte] = made.size[byte] - 33;
    }
    for (const size_t zeros : {8, 16, 24, 32}) made.left[zeros] = (static_cast<uint64_t>(kFillerWord) << 32 | kBehind) << zeros;
    return made;
}();

// 1: a Repeat; 2: no frame.
constexpr auto kKinds = [] {
    std::array<uint8_t, 256> made{};
    for (size_t byte = 0; byte < made.size(); ++byte) {
        const bool is_frame = (kFrames.tally[byte] & (kRare - kFrame)) != 0;
        made[byte] = static_cast<uint8_t>(is_frame ? kCodes[byte].is_repeat & 1 : 2);
    }
    return made;
}();

// The slots of a mask: the first two (8: there is none), how many there are, and whether these are more than two.
struct Slots {
    uint8_t first;
    uint8_t second;
    uint8_t count;
    uint8_t is_more;
    uint32_t told;  // as a frame without idle cycles tells the mask
};
constexpr auto kSlots = [] {
    std::array<Slots, 256> made{};
    for (uint32_t mask = 0; mask < made.size(); ++mask) {
        const int count = std::popcount(mask);
        made[mask] = {.first = static_cast<uint8_t>(std::countr_zero(mask | kNoSlot)),
                      .second = static_cast<uint8_t>(std::countr_zero((mask & (mask - 1)) | kNoSlot)),
                      .count = static_cast<uint8_t>(count),
                      .is_more = count > 2 ? uint8_t{1} : uint8_t{0},
                      .told = mask | (count > 1 ? kIsMultiple : 0)};
    }
    return made;
}();

// What is left of each word at each of its frames, in the upper half.
using Words = std::array<std::array<uint64_t, kMostFrames>, kPayloadWords>;

// The moments at which events begin: from number 1 on, behind the state before the packet, and behind them moments at
// which nothing passes, up to a round number. Times are counted from the last cycle of that state.
struct Timestamps {
    std::array<uint32_t, kRoom> end;    // last cycle of what was before
    std::array<uint32_t, kRoom> begin;  // first cycle
    std::array<uint32_t, kRoom> mask;
    std::array<uint32_t, kRoom> closing;
    std::array<uint32_t, kRoom> opening;
};

// Zeros at the end of what is left of each word, of the one before the packet first: 32 less the padding in it.
using Zeros = std::array<int32_t, kPayloadWords + 1>;

// Of a number that is not 0, as here none is; a test for that would be a branch.
size_t zeros_at_end(uint64_t number) {
#if defined(__GNUC__)
    return static_cast<unsigned>(__builtin_ctzll(number));
#else
    return static_cast<unsigned>(std::countr_zero(number));
#endif
}

// 0 if all words hold nothing but frames that fit, and padding behind them. Words of zeros are left to `judge`: they say
// that one event follows itself.
uint64_t split(const uint32_t* payload, Words& words, Zeros& zeros) {
    uint64_t fault = 0;
    const auto group = [&]<size_t from, size_t... i>(std::index_sequence<i...>) {
        std::array<uint64_t, sizeof...(i)> rest{static_cast<uint64_t>(payload[from + i]) << 32 | kBehind...};
        for (size_t k = 0; k < kMostFrames; ++k) {
            ((words[from + i][k] = rest[i], rest[i] <<= kFrames.size[rest[i] >> 56]), ...);
        }
        const auto end = [&](size_t word, uint64_t left) {
            const size_t count = zeros_at_end(left);
            fault |= left ^ kFrames.left[count];
            zeros[word + 1] = static_cast<int32_t>(count);
        };
        (end(from + i, rest[i]), ...);
    };
    group.template operator()<0>(std::make_index_sequence<4>{});
    group.template operator()<4>(std::make_index_sequence<3>{});
    return fault;
}

// How many moments there are, and from kFrame on, how many frames; kRare or more: this is not the path for them.
// `room` gets negative where a word's first frame has room in the padding before it.
uint64_t tell(const Words& words, const Zeros& zeros, Timestamps& moments, int32_t& room) {
    uint32_t t = 0;
    uint64_t tally = 1;
    int32_t found = 0;
    for (size_t i = 0; i < kPayloadWords; ++i) {
        found |= zeros[i] + kFrames.needs[words[i][0] >> 56];
        for (const uint64_t left : words[i]) {
            const uint32_t frame = static_cast<uint32_t>(left >> 32);
            const size_t byte = left >> 56;
            const FrameTime& time = kFrames.time[byte];
            const FrameShift& shift = kFrames.shift[byte];
            const FrameMask& mask = kFrames.mask[byte];
            const auto moment = static_cast<uint32_t>(tally);
            moments.end[moment] = t;
            t += (frame >> shift.value & time.value_mask) + time.add;
            moments.begin[moment] = t;
            moments.mask[moment] = mask.single | (frame >> shift.mask & mask.multiple);
            tally += kFrames.tally[byte];
        }
    }
    for (size_t i = 0; i < kLanes; ++i) {
        const size_t moment = static_cast<uint32_t>(tally) + i;
        moments.end[moment] = moments.begin[moment] = t;
        moments.mask[moment] = 0;
    }
    room = found;
    return tally - 1;
}

// False where something has to be said: a Repeat of more than the state, or a slot of `watch` is asserted; or an event
// that a unit would have written otherwise. `weight` is that of the Repeats that a unit would have written, as far as one
// tells each of them.
bool judge(Timestamps& moments, size_t count, uint32_t watch, uint32_t& weight) {
    uint32_t fault = 0;
    uint32_t some = 0, more = 0;
    // One more than there are: Repeats may follow the last one.
    const size_t end = (count + kLanes) & ~(kLanes - 1);
    for (size_t i = 1; i <= end; ++i) {
        const uint32_t before = moments.mask[i - 1];
        const uint32_t mask = moments.mask[i];
        const uint32_t cycles = moments.begin[i] - moments.end[i];
        const uint32_t kept = before & mask & (cycles == 1 ? ~0u : 0u);
        const uint32_t closing = before ^ kept;
        const uint32_t opening = mask ^ kept;
        moments.closing[i] = closing;
        moments.opening[i] = opening;
        const uint32_t repeats = moments.end[i] - moments.begin[i - 1];
        // What neither closes nor opens repeats what was before.
        const uint32_t is_same = (closing | opening) == 0 ? ~0u : 0u;
        const uint32_t was_near = moments.begin[i - 1] - moments.end[i - 1] == 1 ? ~0u : 0u;
        fault |= mask & watch;
        fault |= (is_same & was_near) | (repeats & ~was_near);
        some -= static_cast<int32_t>(repeats) > 0 ? ~0u : 0u;
        more -= static_cast<int32_t>(repeats) > 15 ? ~0u : 0u;
        fault |= static_cast<uint32_t>(static_cast<int32_t>(cycles - (mask >> kLeast)) >> 31);  // too few for the frame
        fault |= (mask & (mask - 1) & (kLonely | 0xFF)) == kLonely ? ~0u : 0u;
    }
    weight = some * kShortWeight + more * (kLongWeight - kShortWeight);
    return fault == 0;
}

// Repeats of more than one frame: as many of the largest ones as there can be, which are counted, and the rest.
uint32_t add_long(const Timestamps& moments, size_t count, uint32_t& weight) {
    uint32_t largest = 0;
    for (size_t i = 1; i <= count + 1; ++i) {
        const uint32_t repeats = moments.end[i] - moments.begin[i - 1];
        if (repeats < kMaxRepeat) continue;
        const uint32_t whole = repeats / kMaxRepeat, rest = repeats % kMaxRepeat;
        largest += whole;
        weight += (whole - 1) * kLongWeight;
        if (rest > 0) weight += rest > 15 ? kLongWeight : kShortWeight;
    }
    return largest;
}

// Whether so many of the largest Repeats are there, none of them behind one that had room for its cycles.
bool is_largest_first(const Words& words, uint32_t largest) {
    constexpr size_t kSlotCount = kMostFrames * kPayloadWords;
    const auto slot = [&](size_t number) { return words[number / kMostFrames][number % kMostFrames]; };
    for (size_t i = 0; i < kSlotCount; ++i) {
        if (slot(i) >> 48 != kLargestRepeat) continue;
        --largest;
        size_t before = i;
        while (before > 0 && kKinds[slot(before - 1) >> 56] == 2) --before;
        if (before > 0 && kKinds[slot(before - 1) >> 56] == 1 && slot(before - 1) >> 48 != kLargestRepeat) return false;
    }
    return largest == 0;
}

// Write slices from `row` on, and where open ones begin; `base` is the cycle that times are counted from. Returns the row
// behind them. Not inlined: all registers are needed.
[[gnu::noinline]] size_t write(const Timestamps& moments, size_t count, int64_t base, uint32_t tag_base, const Slices& slices,
                               size_t row, int64_t* __restrict const open) {
    int64_t* const begins = slices.begin.data();
    int64_t* const durations = slices.duration.data();
    uint32_t* const tags = slices.tag.data();
    for (size_t i = 1; i <= count; ++i) {
        // The lowest byte tells the slots.
        const auto closing = static_cast<uint8_t>(moments.closing[i]);
        const auto opening = static_cast<uint8_t>(moments.opening[i]);
        const Slots& closed = kSlots[closing];
        const Slots& opened = kSlots[opening];
        const int64_t known = base + 1 + moments.end[i];
        const int64_t begin = base + moments.begin[i];
        const auto slice = [&](size_t to, size_t slot) {
            const int64_t since = open[slot];
            begins[to] = since;
            durations[to] = known - since;
            tags[to] = tag_base | static_cast<uint32_t>(slot);
        };
        if ((closed.is_more | opened.is_more) != 0) [[unlikely]] {
            for (uint32_t more = closing; more != 0; more &= more - 1) {
                slice(row++, static_cast<size_t>(std::countr_zero(more)));
            }
            for (uint32_t more = opening; more != 0; more &= more - 1) open[std::countr_zero(more)] = begin;
            continue;
        }
        // Two are always written, and counted if present; slot 8 is unused.
        slice(row, closed.first);
        slice(row + 1, closed.second);
        row += closed.count;
        open[opened.first] = begin;
        open[opened.second] = begin;
    }
    return row;
}

}  // namespace

// Whether a Repeat may follow the frames before a packet: no other one that had room for its cycles.
bool Timeline::may_repeat(const Source& s) {
    return s.is_whole ? s.repeats % kMaxRepeat == 0 : s.tail.repeats != Repeats::some;
}

// False, and nothing is done, where the packet is none of that kind, or no unit would have written it.
bool Timeline::whole(Source& s, const uint32_t* payload, Output& out) {
    if (s.watch >> kFlagged != 0) return false;  // behind a Start, a gap or a Sync, or a slice is open that has flags
    Words words;
    Zeros zeros;
    zeros[0] = 32 - s.room;
    const uint64_t fault = split(payload, words, zeros);
    Timestamps moments;
    moments.end[0] = ~s.idle;  // idle cycles, and the first one, lie between this and 0
    moments.begin[0] = 0;
    moments.mask[0] = kSlots[s.mask & 0xFF].told;
    int32_t room;
    const uint64_t tally = tell(words, zeros, moments, room);
    if (fault != 0 || tally >= kRare) return false;
    const size_t count = static_cast<uint32_t>(tally);
    uint32_t weight;
    if (!judge(moments, count, s.watch, weight)) [[unlikely]] return false;
    const auto last = static_cast<uint8_t>(moments.mask[count]);
    if (room < 0 || last == 0) [[unlikely]] return false;
    if (weight != tally / kRepeat) [[unlikely]] {
        // One frame more than `judge` reckons with tells long Repeats.
        const uint32_t largest = add_long(moments, count, weight);
        if (weight != tally / kRepeat || !is_largest_first(words, largest)) return false;
    }
    if (moments.end[1] != 0 && !may_repeat(s)) return false;  // a Repeat comes first

    // Written in place: the caller cannot see it before it is counted.
    out.slice = write(moments, count, s.t, s.tag_base, out.slices, out.slice, s.begin.data());
    s.mask = last;
    s.idle = moments.begin[count] - moments.end[count] - 1;
    s.t += moments.begin[count + 1];
    s.frames += static_cast<int64_t>(tally / kFrame % (kRepeat / kFrame));
    s.is_whole = true;
    s.repeats = moments.begin[count + 1] - moments.begin[count];
    s.last_word = payload[kPayloadWords - 1];
    s.room = 32 - zeros[kPayloadWords];
    return true;
}

}  // namespace lanescope::aie
