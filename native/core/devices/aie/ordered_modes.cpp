// Modes 1 and 2: what happened, in order. No time lies between the frames.
#include <algorithm>

#include "core/devices/aie/timeline.hpp"

namespace lanescope::aie {
namespace {

constexpr size_t kLost = size_t{1} << 32;
constexpr uint32_t kPcBits = 0x3FFF;
constexpr uint32_t kPcReserved = 0x3C000;
constexpr unsigned kPcMaskShift = 18;

// What the fast path of mode 2 has to know of a code, in one load: the next lookup waits for its lowest byte.
enum FlowCode : uint64_t {
    kBits = 0,         // 8 bits: size of the frame, and of a padding behind it
    kRoom = 8,         // 8 bits: needed in the word; 255: not for the fast path
    kShift = 16,       // 8 bits: from the most significant bits of a word to the lowest
    kKind = 24,        // 8 bits: a FlowKind
    kIsRow = 32,       // one bit each
    kIsRepeat = 33,
    kIsTarget = 34,
    kIsFrame = 40,     // to be summed up over a packet
    kIsPublished = 52,
};
constexpr uint8_t kNotCommon = 255;
struct FlowCodes {
    std::array<uint64_t, 256> code{};
    std::array<uint32_t, 256> value_mask{};
};
constexpr auto kFast = [] {
    FlowCodes made;
    for (size_t i = 0; i < made.code.size(); ++i) {
        const Code& code = kFlowCodes[i];
        // The lookup sees two nibbles: a padding behind an atom or another padding is taken with it.
        const bool is_filled = code.bits == 4 && code.is_common && i % 16 == 2;
        const unsigned bits = code.bits + (is_filled ? 4 : 0);
        made.value_mask[i] = code.value_mask;
        made.code[i] = uint64_t{bits} << kBits | uint64_t{code.is_common ? code.bits : kNotCommon} << kRoom | uint64_t{code.shift} << kShift |
                       static_cast<uint64_t>(code.kind) << kKind | uint64_t{code.is_row & 1} << kIsRow |
                       uint64_t{code.is_repeat & 1} << kIsRepeat | uint64_t{code.is_target & 1} << kIsTarget |
                       uint64_t{code.is_frame} << kIsFrame | uint64_t{code.is_published} << kIsPublished;
    }
    return made;
}();

bool is_atom(uint32_t tag) {
    const auto kind = static_cast<FlowKind>(tag & 7);
    return kind == FlowKind::taken || kind == FlowKind::not_taken;
}

}  // namespace

// The last frame is complete: nothing that follows repeats it.
void Timeline::write_point(Source& s, Output& out) {
    if (!s.has_point) return;
    s.has_point = false;
    const auto put = [&](uint32_t tag) {
        out.points.tick[out.point] = s.point_tick;
        out.points.count[out.point] = s.point_count;
        out.points.value[out.point] = s.point_value;
        out.points.tag[out.point++] = tag;
    };
    if (s.mode == kExecution) {
        put(s.point_tag);
        return;
    }
    for (uint32_t rest = s.point_value >> kPcMaskShift; rest != 0; rest &= rest - 1) {
        const auto slot = static_cast<uint32_t>(std::countr_zero(rest));
        put(s.tag_base | slot | ((s.point_tag >> slot & 1) != 0 ? kAfterGap : 0));
    }
}

// A row at tick t; Repeats may follow.
void Timeline::begin_flow(Source& s, FlowKind kind, uint32_t value, Output& out) {
    write_point(s, out);
    if (s.after_gap != 0) has_flags_ = true;
    s.has_point = true;
    s.point_tick = s.t;
    s.point_count = 1;
    s.point_value = value;
    s.point_tag = s.tag_base | static_cast<uint32_t>(kind) | (s.after_gap != 0 ? kAfterGap : 0);
    s.after_gap = 0;
}

// A row that no frame repeats.
void Timeline::write_flow(Source& s, FlowKind kind, uint32_t value, Output& out) {
    begin_flow(s, kind, value & kPcBits, out);
    write_point(s, out);
}

// Mode 1. Few frames a cycle: nothing here is worth a trick.
size_t Timeline::pc_stretch(Source& s, const Packet& packet, size_t at, size_t end) {
    for (size_t bit = at; bit < end;) {
        const uint32_t window = packet.payload[bit / 32] << bit % 32;
        const Code& code = kPcCodes[window >> 24];
        if (code.frame == Frame::unknown_code || bit % 32 + code.bits > 32) {
            not_understood(s, packet, bit, code);
            return bit | kLost;
        }
        const uint32_t value = window >> (32 - code.bits) & code.value_mask;
        const size_t here = bit;
        bit += code.bits;
        if (code.frame == Frame::padding) continue;
        if (code.is_repeat != 0) {
            if (!s.has_point) {
                lost_repeat(s, packet, here, value);
                return here | kLost;
            }
            ++s.frames;
            s.point_count += value;
            s.t += value;
            continue;
        }
        if (s.is_gap) resume(s, s.t + 1, packet.out);
        ++s.frames;
        if (code.frame == Frame::sync) {
            note(s, Note::unconfirmed, packet.offset(here));
            s.t += kSyncCycles;
            continue;
        }
        if (code.frame == Frame::stop) return end_at_stop(s, packet, here, s.t + value + 1);
        write_point(s, packet.out);
        s.has_point = true;
        s.point_tick = ++s.t;
        s.point_count = 1;
        s.point_value = window & 0x3FFFFFF;
        const uint32_t mask = s.point_value >> kPcMaskShift;
        s.point_tag = mask & s.after_gap;
        if (s.point_tag != 0) has_flags_ = true;
        s.after_gap &= ~mask;
        if ((s.point_value & kPcReserved) != 0) note(s, Note::reserved_bits, packet.offset(here));
        for (uint32_t rest = mask & ~s.used; rest != 0; rest &= rest - 1) {
            packet.out.emit(What::slot, s, s.t, std::countr_zero(rest), 0, packet.offset(here));
        }
        s.used |= mask;
    }
    return end;
}

// Mode 2: one frame, whatever it is. Returns where to go on: behind it, or kLost if the rest of its word is.
[[gnu::noinline]] size_t Timeline::flow_frame(Source& s, const Packet& packet, size_t bit) {
    const uint32_t window = packet.payload[bit / 32] << bit % 32;
    const Code& code = kFlowCodes[window >> 24];
    if (code.frame == Frame::unknown_code || bit % 32 + code.bits > 32) return not_understood(s, packet, bit, code);
    const uint32_t value = window >> (32 - code.bits) & code.value_mask;
    const size_t next = bit + code.bits;
    if (code.is_published != 0) note(s, Note::unconfirmed, packet.offset(bit));
    if (code.frame == Frame::filler0 || code.frame == Frame::filler1) return next;
    if (code.is_repeat != 0) {
        if (!s.has_point) {
            lost_repeat(s, packet, bit, value);
            return kLost;
        }
        if (!is_atom(s.point_tag)) note(s, Note::repeat_target, packet.offset(bit));
        ++s.frames;
        s.point_count += value;
        s.t += value;
        return next;
    }
    if (s.is_gap) resume(s, s.t + 1, packet.out);
    ++s.frames;
    if (code.frame == Frame::sync) return next;
    ++s.t;
    if (code.frame == Frame::stop) {
        write_flow(s, FlowKind::stop, 0, packet.out);
        return end_at_stop(s, packet, bit, s.t);
    }
    begin_flow(s, code.kind, value, packet.out);
    return next;
}

// Count rows that were never seen in a capture; the first may be any frame from bit `from` on.
[[gnu::noinline]] void Timeline::note_published(Source& s, const Packet& packet, size_t from, int64_t count) {
    size_t bit = from;
    const auto& tally = segments_[static_cast<size_t>(s.segment)].notes[static_cast<size_t>(Note::unconfirmed)];
    while (tally.count == 0) {
        const Code& code = kFlowCodes[(packet.payload[bit / 32] << bit % 32) >> 24];
        if (code.is_published != 0) break;
        bit += code.bits;
    }
    note(s, Note::unconfirmed, packet.offset(bit), count);
}

// Mode 2: the frames from bit `at` to bit `end`. As in mode 0, the common frames need no branch: each writes a row
// after the last one, which the next frame overwrites if it was none, and Repeats add to the last one. A last one
// there must be; without, and for all that is rare, frames are done one by one.
size_t Timeline::flow_stretch(Source& s, const Packet& packet, size_t at, const size_t end) {
    Output& out = packet.out;
    const uint32_t tag_base = s.tag_base;
    int64_t* const ticks = out.points.tick.data();
    int64_t* const counts = out.points.count.data();
    uint32_t* const values = out.points.value.data();
    uint32_t* const tags = out.points.tag.data();
    // The word behind the last one is read, but not used.
    std::array<uint32_t, kPayloadWords + 1> payload;
    std::copy_n(packet.payload, kPayloadWords, payload.begin());
    payload[kPayloadWords] = 0;

    while (at < end) {
        if (s.has_point) {
            // The last row waits in its place among the outputs.
            size_t row = out.point;
            ticks[row] = s.point_tick;
            counts[row] = s.point_count;
            values[row] = s.point_value;
            tags[row] = s.point_tag;
            int64_t t = s.t;
            int64_t count = s.point_count;
            uint64_t is_fixed = is_atom(s.point_tag) ? 0 : 1;
            uint64_t tallies = 0;
            // The bits of a word that are left, in the highest places; zeros below.
            size_t word = at / 32;
            uint64_t left = 32 - at % 32;
            uint64_t rest = static_cast<uint64_t>(payload[word]) << (64 - left);
            const size_t end_word = end / 32;
            while (word < end_word) {
                const size_t first = rest >> 56;
                const uint64_t code = kFast.code[first];
                const uint64_t is_repeat = code >> kIsRepeat & 1;
                const bool is_large = left < (code >> kRoom & 0xFF);
                if ((static_cast<uint64_t>(is_large) | (is_fixed & is_repeat)) != 0) [[unlikely]] break;
                const uint64_t bits = rest >> 32 >> (code >> kShift & 0xFF) & kFast.value_mask[first];
                const uint64_t size = code & 0xFF;
                const uint64_t following = static_cast<uint64_t>(payload[word + 1]) << 32;
                uint64_t is_empty = left == size;
                keep_branchless(is_empty);
                rest = rest << size | (following & (0 - is_empty));
                left = left - size + (is_empty << 5);
                word += is_empty;
                const uint64_t is_row = code >> kIsRow & 1;
                const uint64_t repeats = bits & (0 - is_repeat);
                ticks[row + 1] = t + 1;
                values[row + 1] = static_cast<uint32_t>(bits);
                tags[row + 1] = tag_base | static_cast<uint32_t>(code >> kKind & 0xFF);
                row += is_row;
                count = (count & static_cast<int64_t>(is_row - 1)) + static_cast<int64_t>(is_row + repeats);
                counts[row] = count;
                t += static_cast<int64_t>(is_row + repeats);
                is_fixed = (is_fixed & ~is_row) | (code >> kIsTarget & 1);
                tallies += code >> kIsFrame;
            }
            const size_t entered = at;
            at = 32 * word + 32 - left;
            s.point_tick = ticks[row];
            s.point_count = counts[row];
            s.point_value = values[row];
            s.point_tag = tags[row];
            out.point = row;
            s.t = t;
            s.frames += static_cast<int64_t>(tallies & 0xFFF);
            const auto published = static_cast<int64_t>(tallies >> (kIsPublished - kIsFrame));
            if (published != 0) note_published(s, packet, entered, published);
            if (at >= end) break;
        }
        const size_t next = flow_frame(s, packet, at);
        if (next == kLost) return at | kLost;
        at = next;
        if (s.state != State::running) return at;
    }
    return end;
}

}  // namespace lanescope::aie
