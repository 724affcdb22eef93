// Modes 1 and 2: what happened, in order. No time lies between the frames.
#include "core/aie/timeline.hpp"

namespace lanescope::aie {
namespace {

constexpr size_t kLost = size_t{1} << 32;
constexpr uint32_t kPcBits = 0x3FFF;
constexpr uint32_t kPcReserved = 0x3C000;
constexpr unsigned kPcMaskShift = 18;
constexpr uint32_t kFlowPoint = 1;  // in the arguments of mode 2: whether there is a last frame

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

// A row that no frame repeats.
void Timeline::write_flow(Source& s, FlowKind kind, uint32_t value, Output& out) {
    write_point(s, out);
    if (s.after_gap != 0) has_flags_ = true;
    s.has_point = true;
    s.point_tick = s.t;
    s.point_count = 1;
    s.point_value = value & kPcBits;
    s.point_tag = s.tag_base | static_cast<uint32_t>(kind) | (s.after_gap != 0 ? kAfterGap : 0);
    s.after_gap = 0;
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
        if (code.frame == Frame::filler) continue;
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

// Mode 2: what is neither an atom, an address, a loop nor a Repeat, or has no room. Returns as `other_frame` does.
[[gnu::noinline]] size_t Timeline::other_flow_frame(Source& s, const Packet& packet, size_t bit) {
    const uint32_t window = packet.payload[bit / 32] << bit % 32;
    const Code& code = kFlowCodes[window >> 24];
    if (code.frame == Frame::unknown_code || bit % 32 + code.bits > 32) return not_understood(s, packet, bit, code);
    note(s, Note::unconfirmed, packet.offset(bit));
    if (code.frame == Frame::filler1) return bit + 8;
    if (s.is_gap) resume(s, s.t + 1, packet.out);
    ++s.frames;
    if (code.frame == Frame::sync) return bit + 8;
    ++s.t;
    write_flow(s, FlowKind::stop, 0, packet.out);
    return end_at_stop(s, packet, bit, s.t);
}

// A Repeat of something else than an atom. False if what it repeats is lost.
[[gnu::noinline]] bool Timeline::late_flow_repeat(Source& s, const Packet& packet, size_t bit, uint32_t n) {
    if (!s.has_point) return lost_repeat(s, packet, bit, n);
    note(s, Note::unconfirmed, packet.offset(bit));
    note(s, Note::repeat_target, packet.offset(bit));
    ++s.frames;
    s.point_count += n;
    s.t += n;
    return true;
}

// Count rows that no capture of ours holds; the first may be any frame from bit `from` on.
[[gnu::noinline]] void Timeline::note_published(Source& s, const Packet& packet, size_t from, int64_t count) {
    size_t bit = from;
    while (true) {
        const Code& code = kFlowCodes[(packet.payload[bit / 32] << bit % 32) >> 24];
        if (code.is_published != 0) break;
        bit += code.bits;
    }
    note(s, Note::unconfirmed, packet.offset(bit), count);
}

// Mode 2: the frames from bit `at` to bit `end`. As for mode 0 there is no branch between the common frames: each writes the
// row of the one before it, which stays if it is a row itself.
size_t Timeline::flow_stretch(Source& s, const Packet& packet, size_t at, const size_t end) {
    Output& out = packet.out;
    int64_t* const ticks = out.points.tick.data();
    int64_t* const counts = out.points.count.data();
    uint32_t* const values = out.points.value.data();
    uint32_t* const tags = out.points.tag.data();
    const uint32_t tag_base = s.tag_base;
    const uint32_t* const payload = packet.payload;
    const size_t end_word = end / 32;

    int64_t t, tick, count;
    uint32_t value, tag, has_point, is_fixed;
    size_t row;
    int64_t frames = 0, published = 0;
    size_t entered = at;
    const auto enter = [&](size_t bit) {
        entered = bit;
        t = s.t;
        tick = s.point_tick;
        count = s.point_count;
        value = s.point_value;
        tag = s.point_tag;
        has_point = s.has_point ? kFlowPoint : 0;
        const auto kind = static_cast<FlowKind>(tag & 7);
        is_fixed = has_point == 0 || (kind != FlowKind::taken && kind != FlowKind::not_taken) ? ~0u : 0;
        row = out.point;
    };
    const auto leave = [&] {
        s.t = t;
        s.point_tick = tick;
        s.point_count = count;
        s.point_value = value;
        s.point_tag = tag;
        s.has_point = has_point != 0;
        out.point = row;
        s.frames += frames;
        if (published != 0) note_published(s, packet, entered, published);
        frames = published = 0;
    };
    enter(at);
    size_t word = at / 32;
    uint64_t rest_bits = static_cast<uint64_t>(payload[word]) << 32;
    uint32_t left = 32;
    while (word < end_word) {
        const Code& code = kFlowCodes[rest_bits >> 56];
        if (left < code.room) [[unlikely]] {
            at = 32 * word + 32 - left;
            leave();
            const size_t next = other_flow_frame(s, packet, at);
            if (next == kLost) return at | kLost;
            if (s.state != State::running) return next;
            enter(next);
            word = next / 32;
            left = 32 - static_cast<uint32_t>(next % 32);
            if (word < end_word) rest_bits = static_cast<uint64_t>(payload[word]) << (64 - left);
            continue;
        }
        const uint32_t bits = static_cast<uint32_t>(rest_bits >> 32) >> code.shift & code.value_mask;
        const uint64_t following = static_cast<uint64_t>(payload[word + (word + 1 < end_word)]) << 32;
        left -= code.bits;
        rest_bits = left == 0 ? following : rest_bits << code.bits;
        word += left == 0;
        left = left == 0 ? 32 : left;
        if ((is_fixed & code.is_repeat) != 0) [[unlikely]] {
            leave();
            const size_t next = 32 * word + 32 - left;
            if (!late_flow_repeat(s, packet, next - code.bits, bits)) return (next - code.bits) | kLost;
            enter(next);
            continue;
        }
        ticks[row] = tick;
        counts[row] = count;
        values[row] = value;
        tags[row] = tag;
        const uint32_t is_row = code.is_row;
        const uint32_t repeats = bits & code.is_repeat;
        row += has_point & is_row;
        has_point |= is_row & kFlowPoint;
        t += (is_row & 1) + repeats;
        tick = is_row != 0 ? t : tick;
        count = is_row != 0 ? 1 : count + repeats;
        value = is_row != 0 ? bits : value;
        tag = is_row != 0 ? tag_base | static_cast<uint32_t>(code.kind) : tag;
        is_fixed = (is_fixed & ~is_row) | code.is_target;
        frames += code.is_frame;
        published += code.is_published;
        if (((s.after_gap | static_cast<uint32_t>(s.is_gap)) & is_row) != 0) [[unlikely]] {
            leave();
            if (s.is_gap) resume(s, s.point_tick, out);
            if (s.after_gap != 0) {
                s.point_tag |= kAfterGap;
                s.after_gap = 0;
                has_flags_ = true;
            }
            enter(32 * word + 32 - left);
        }
    }
    leave();
    return 32 * word;
}

}  // namespace lanescope::aie
