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
// Follows on a word. Where all frames fit, what is left begins with it, and stays so: no frame begins with F8.
constexpr uint32_t kBehind = 0xF8F9FAFB;

// What has to be known of the byte that a frame begins with. Tables of 8 bytes an entry need no address computed.
struct FrameTime {
    uint32_t value_mask;  // cycles or repeats
    uint32_t add;         // cycles that pass besides: the one of an event, those of a Sync
};
struct FrameMask {
    uint8_t value_shift;  // from the highest bits of a word
    uint8_t mask_shift;
    uint8_t multiple;  // all ones where a mask is told
    uint8_t single;    // mask of the one slot that the byte names
    uint32_t unused;
};
// 1: an event, or a Sync, which is an event of no slot; kFrame: a frame; kRare: not for this path
constexpr uint64_t kFrame = uint64_t{1} << 32;
constexpr uint64_t kRare = uint64_t{1} << 40;
struct Frames {
    std::array<FrameTime, 256> time{};
    std::array<FrameMask, 256> mask{};
    std::array<uint64_t, 256> tally{};
    std::array<uint8_t, 256> size{};  // bits; 0: no way to go on, or behind the word
};
constexpr auto kFrames = [] {
    Frames made;
    for (size_t byte = 0; byte < made.size.size(); ++byte) {
        const Code& code = kCodes[byte];
        made.size[byte] = code.bits;
        if (code.is_common) {
            const bool is_event = code.is_repeat == 0;
            const auto shift = static_cast<uint8_t>(32 - code.bits);
            made.time[byte] = {.value_mask = code.value_mask, .add = is_event ? 1u : 0u};
            made.mask[byte] = {.value_shift = shift,
                               .mask_shift = static_cast<uint8_t>((shift + code.value_bits) & 31),
                               .multiple = code.multiple,
                               .single = code.single,
                               .unused = 0};
            made.tally[byte] = kFrame + (is_event ? 1 : 0);
        } else if (code.frame == Frame::sync) {
            made.time[byte] = {.value_mask = 0, .add = kSyncCycles};
            made.tally[byte] = kFrame + 1;
        } else if (code.frame != Frame::padding) {
            made.tally[byte] = byte == kBehind >> 24 ? 0 : kRare;
            made.size[byte] = 0;
        }
    }
    return made;
}();

// The slots of a mask: the first two (8: there is none), how many there are, and whether these are more than two.
struct Slots {
    uint8_t first;
    uint8_t second;
    uint8_t count;
    uint8_t is_more;
    uint32_t unused;
};
constexpr auto kSlots = [] {
    std::array<Slots, 256> made{};
    for (uint32_t mask = 0; mask < made.size(); ++mask) {
        const int count = std::popcount(mask);
        made[mask] = {.first = static_cast<uint8_t>(std::countr_zero(mask | kNoSlot)),
                      .second = static_cast<uint8_t>(std::countr_zero((mask & (mask - 1)) | kNoSlot)),
                      .count = static_cast<uint8_t>(count),
                      .is_more = count > 2 ? uint8_t{1} : uint8_t{0},
                      .unused = 0};
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

// 0 if all words hold nothing but frames that fit.
uint64_t split(const uint32_t* payload, Words& words) {
    uint64_t fault = 0;
    const auto group = [&]<size_t from, size_t... i>(std::index_sequence<i...>) {
        std::array<uint64_t, sizeof...(i)> rest{static_cast<uint64_t>(payload[from + i]) << 32 | kBehind...};
        for (size_t k = 0; k < kMostFrames; ++k) {
            ((words[from + i][k] = rest[i], rest[i] <<= kFrames.size[rest[i] >> 56]), ...);
        }
        ((fault |= rest[i] ^ static_cast<uint64_t>(kBehind) << 32), ...);
    };
    group.template operator()<0>(std::make_index_sequence<4>{});
    group.template operator()<4>(std::make_index_sequence<3>{});
    for (size_t i = 0; i < kPayloadWords; ++i) {
        fault |= static_cast<uint64_t>(payload[i] == 0) | static_cast<uint64_t>(payload[i] == kFillerWord);
    }
    return fault;
}

// How many moments there are, and from kFrame on, how many frames; kRare or more: this is not the path for them.
uint64_t tell(const Words& words, Timestamps& moments) {
    uint32_t t = 0;
    uint64_t tally = 1;
    for (const auto& word : words) {
        for (const uint64_t left : word) {
            const auto frame = static_cast<uint32_t>(left >> 32);
            const size_t byte = left >> 56;
            const FrameTime& time = kFrames.time[byte];
            const FrameMask& mask = kFrames.mask[byte];
            const auto moment = static_cast<uint32_t>(tally);
            moments.end[moment] = t;
            t += (frame >> mask.value_shift & time.value_mask) + time.add;
            moments.begin[moment] = t;
            moments.mask[moment] = mask.single | (frame >> mask.mask_shift & mask.multiple);
            tally += kFrames.tally[byte];
        }
    }
    for (size_t i = 0; i < kLanes; ++i) {
        const size_t moment = static_cast<uint32_t>(tally) + i;
        moments.end[moment] = moments.begin[moment] = t;
        moments.mask[moment] = 0;
    }
    return tally - 1;
}

// False where something has to be said: a Repeat of more than the state, or a slot of `watch` is asserted.
bool judge(Timestamps& moments, size_t count, uint32_t watch) {
    uint32_t seen = 0;
    uint32_t late = 0;
    // One more than there are: Repeats may follow the last one.
    const size_t end = (count + kLanes) & ~(kLanes - 1);
    for (size_t i = 1; i <= end; ++i) {
        const uint32_t before = moments.mask[i - 1];
        const uint32_t mask = moments.mask[i];
        const uint32_t kept = before & mask & (moments.begin[i] - moments.end[i] == 1 ? ~0u : 0u);
        moments.closing[i] = before ^ kept;
        moments.opening[i] = mask ^ kept;
        seen |= mask;
        const uint32_t repeats = moments.begin[i - 1] ^ moments.end[i];
        late |= repeats & (moments.begin[i - 1] - moments.end[i - 1] == 1 ? 0u : ~0u);
    }
    return late == 0 && (seen & watch) == 0;
}

// Write slices from `row` on, and where open ones begin; `base` is the cycle that times are counted from. Returns the row
// behind them. Not inlined: all registers are needed.
[[gnu::noinline]] size_t write(const Timestamps& moments, size_t count, int64_t base, uint32_t tag_base, const Slices& slices,
                               size_t row, int64_t* __restrict const open) {
    int64_t* const begins = slices.begin.data();
    int64_t* const durations = slices.duration.data();
    uint32_t* const tags = slices.tag.data();
    for (size_t i = 1; i <= count; ++i) {
        const Slots& closed = kSlots[moments.closing[i]];
        const Slots& opened = kSlots[moments.opening[i]];
        const int64_t known = base + 1 + moments.end[i];
        const int64_t begin = base + moments.begin[i];
        const auto slice = [&](size_t to, size_t slot) {
            const int64_t since = open[slot];
            begins[to] = since;
            durations[to] = known - since;
            tags[to] = tag_base | static_cast<uint32_t>(slot);
        };
        if ((closed.is_more | opened.is_more) != 0) [[unlikely]] {
            for (uint32_t more = moments.closing[i]; more != 0; more &= more - 1) {
                slice(row++, static_cast<size_t>(std::countr_zero(more)));
            }
            for (uint32_t more = moments.opening[i]; more != 0; more &= more - 1) open[std::countr_zero(more)] = begin;
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

// False, and nothing is done, where the packet is none of that kind.
bool Timeline::whole(Source& s, const uint32_t* payload, Output& out) {
    if (s.watch >> kFlagged != 0) return false;  // behind a Start, a gap or a Sync, or a slice is open that has flags
    Words words;
    const uint64_t fault = split(payload, words);
    Timestamps moments;
    moments.end[0] = ~s.idle;  // idle cycles, and the first one, lie between this and 0
    moments.begin[0] = 0;
    moments.mask[0] = s.mask;
    const uint64_t tally = tell(words, moments);
    if (fault != 0 || tally >= kRare) return false;
    const size_t count = static_cast<uint32_t>(tally);
    if (!judge(moments, count, s.watch) || moments.mask[count] == 0) [[unlikely]] return false;

    // Written in place: the caller cannot see it before it is counted.
    out.slice = write(moments, count, s.t, s.tag_base, out.slices, out.slice, s.begin.data());
    s.mask = moments.mask[count];
    s.idle = moments.begin[count] - moments.end[count] - 1;
    s.t += moments.begin[count + 1];
    s.frames += static_cast<int64_t>(tally / kFrame);
    return true;
}

}  // namespace lanescope::aie
