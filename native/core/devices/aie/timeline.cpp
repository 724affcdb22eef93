// The state of every source over time: what each packet does to it. Gaps and segments are in timeline_gaps.cpp.
#include "core/devices/aie/timeline.hpp"

#include <algorithm>

namespace lanescope::aie {
namespace {

constexpr uint32_t kNoSlot = 1 << 8;
constexpr uint32_t kNoRepeat = 1u << 31;   // beside idle cycles: the next Repeat does not just say that the state goes on
constexpr size_t kLost = size_t{1} << 32;  // added to a position: its content is lost, up to the next word
// What the common path of mode 0 has to know of a code, in one load: the next lookup waits for its lowest byte.
enum FastCode : uint64_t {
    kSize = 0,        // 8 bits each: size of the frame; 128: not for the common path
    kValueBits = 8,   // lowest bits: cycles or repeats; slot or mask lie above them
    kSingle = 16,     // mask of the one slot that the first byte names
    kMultiple = 24,   // all ones where a mask lies above the value
    kRepeat = 32,     // 32 bits: all ones for a Repeat
};
constexpr uint64_t kNotCommon = 128;
struct FastCodes {
    std::array<uint64_t, 256> code{};
    std::array<uint32_t, 256> value_mask{};
};
constexpr auto kFast = [] {
    FastCodes made;
    for (size_t i = 0; i < made.code.size(); ++i) {
        const Code& code = kCodes[i];
        made.value_mask[i] = code.value_mask;
        made.code[i] = (code.is_common ? uint64_t{code.bits} : kNotCommon) << kSize | uint64_t{code.value_bits} << kValueBits |
                       uint64_t{code.single} << kSingle | uint64_t{code.multiple} << kMultiple |
                       uint64_t{code.is_repeat} << kRepeat;
    }
    return made;
}();
// What is left of a word when it is filled up behind a frame, by bytes: in the highest places.
constexpr std::array<uint64_t, 4> kFilled = {0, 0xFEull << 56, 0xFEFEull << 48, 0xFEFEFEull << 40};

constexpr int64_t kFirstCredit = 1024;
constexpr int64_t kCreditPerWord = 16;
constexpr int64_t kMaxCredit = 1 << 16;

}  // namespace

// --- what happens to the state of a source ---------------------------------------------------------------------------

// Write the slices of `mask` out: they end with cycle t.
void Timeline::close(Source& s, uint32_t mask, uint32_t flags, Output& out) {
    if (mask != 0 && flags != 0) has_flags_ = true;
    for (; mask != 0; mask &= mask - 1) {
        const auto slot = static_cast<size_t>(std::countr_zero(mask));
        const bool is_flagged = (s.watch >> kFlagged >> slot & 1) != 0;
        out.slices.begin[out.slice] = s.begin[slot];
        out.slices.duration[out.slice] = s.t + 1 - s.begin[slot];
        out.slices.tag[out.slice++] =
            s.tag_base | static_cast<uint32_t>(slot) | flags | (is_flagged ? s.flags[slot] : 0);
        s.watch &= ~(1u << kFlagged << slot);
    }
}

// An event frame at which something has to be said: it ends a gap, asserts a slot for the first time, opens slices where
// it is not known what was before, or has closed such slices. The frame is applied already; `known` is the cycle after
// the one before it.
void Timeline::special(Source& s, uint32_t opening, uint32_t closing, int64_t known, int64_t offset, Output& out) {
    size_t row = out.slice - static_cast<size_t>(std::popcount(closing));
    for (uint32_t rest = closing; rest != 0; rest &= rest - 1, ++row) {
        const auto slot = static_cast<size_t>(std::countr_zero(rest));
        if ((s.watch >> kFlagged >> slot & 1) != 0) out.slices.tag[row] |= s.flags[slot];
    }
    uint32_t flagged = (s.watch >> kFlagged & 0xFF) & ~closing;
    if (s.is_gap) resume(s, known, out);
    for (uint32_t rest = opening & ~s.used; rest != 0; rest &= rest - 1) {
        out.emit(What::slot, s, s.t, std::countr_zero(rest), 0, offset);
    }
    s.used |= opening;
    const bool is_cut = (s.watch & kEdge) != 0 && s.idle == 0;
    for (uint32_t rest = opening; rest != 0; rest &= rest - 1) {
        const auto slot = static_cast<size_t>(std::countr_zero(rest));
        s.flags[slot] = (is_cut ? kTruncated : 0) | ((s.after_gap >> slot & 1) != 0 ? kAfterGap : 0);
        if (s.flags[slot] != 0) {
            flagged |= 1u << slot;
            has_flags_ = true;
        }
    }
    s.after_gap &= ~opening;
    s.watch = s.after_gap | (~s.used & kAllSlots) | flagged << kFlagged;
}

// Repeat where it is not simply "the state goes on": after idle cycles, or behind a Sync.
void Timeline::replay(Source& s, uint32_t n, int64_t offset, Output& out) {
    const uint32_t mask = (s.watch & kSynced) != 0 ? s.synced_mask : s.mask;
    const int64_t period = static_cast<int64_t>(s.idle) + 1;
    const int64_t rows = static_cast<int64_t>(n) * std::popcount(mask);
    const auto open = [&] {
        close(s, s.mask, 0, out);
        s.t += period;
        for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
            const auto slot = static_cast<size_t>(std::countr_zero(rest));
            s.begin[slot] = s.t;
        }
        s.mask = mask;
    };
    if (s.idle == 0) {
        open();
        s.t += n - 1;
    } else {
        note(s, Note::unconfirmed, offset);
        if (rows <= s.credit) {
            s.credit -= rows;
            for (uint32_t i = 0; i < n; ++i) open();
        } else {
            close(s, s.mask, 0, out);
            note(s, Note::repeat_limit, offset, rows);
            const int64_t begin = s.t + 1;
            s.t += n * period;
            out.emit(What::gap, s, begin, s.t + 1, static_cast<int64_t>(Cause::repeat_limit), offset) = rows;
            forget(s);
            s.watch = (s.watch & ~kNothingYet) | kSynced;
            s.synced_mask = mask;
            return;
        }
    }
    s.watch &= ~kSynced;
}

// --- words -----------------------------------------------------------------------------------------------------------

// What is neither an event frame nor a Repeat, or has no room in its word. Returns where to go on: behind it, or at a
// later word's begin if the rest of this word is lost; behind the whole payload after Stop.
[[gnu::noinline]] size_t Timeline::other_frame(Source& s, const Packet& packet, size_t bit) {
    const uint32_t window = packet.payload[bit / 32] << bit % 32;
    const Code& code = kCodes[window >> 24];
    if (code.frame == Frame::unknown_code || bit % 32 + code.bits > 32) return not_understood(s, packet, bit, code);
    if (code.frame == Frame::padding) return bit + code.bits;
    if (code.is_repeat != 0) {
        const uint32_t n = window >> code.shift & code.value_mask;
        return late_repeat(s, packet, bit, n) ? bit + code.bits : kLost;
    }
    if (s.is_gap) resume(s, s.t + 1, packet.out);
    ++s.frames;
    if (code.frame == Frame::sync) {
        close(s, s.mask, 0, packet.out);
        if ((s.watch & kSynced) == 0) s.synced_mask = s.mask;
        s.watch = (s.watch & ~kEdge) | kSynced;
        s.mask = 0;
        s.t += kSyncCycles;
        return bit + 8;
    }
    const uint32_t cycles = window & code.value_mask;
    close(s, s.mask, cycles == 0 ? kTruncated : 0, packet.out);
    s.mask = 0;
    return end_at_stop(s, packet, bit, s.t + cycles + 1);
}

// Stop at `bit`, `end` its cycle.
size_t Timeline::end_at_stop(Source& s, const Packet& packet, size_t bit, int64_t end) {
    const uint32_t mask = packet.payload[bit / 32] >> 18 & 0xFF;
    if (mask != 0) note(s, Note::stop_mask, packet.offset(bit));
    end_segment(s, Ending::stop, end, mask, packet.offset(bit), packet.out);
    s.state = State::stopped;
    return bit + 32;
}

// No frame, or one without room in its word: the rest of the word is lost.
size_t Timeline::not_understood(Source& s, const Packet& packet, size_t bit, const Code& code) {
    const Note why = code.frame == Frame::unknown_code ? Note::unknown_code
                     : code.bits > 32                  ? Note::misaligned
                                                       : Note::crosses_word;
    note(s, why, packet.offset(bit));
    damage(s, Cause::bad_bytes, packet.offset(bit), packet.out);
    return kLost;
}

// A Repeat whose frame is lost.
bool Timeline::lost_repeat(Source& s, const Packet& packet, size_t bit, uint32_t n) {
    note(s, Note::lost_repeat, packet.offset(bit));
    damage(s, Cause::bad_bytes, packet.offset(bit), packet.out);
    s.t += n;  // at least so many cycles passed
    return false;
}

// A Repeat that does not just say that the state goes on. False if what it repeats is lost.
[[gnu::noinline]] bool Timeline::late_repeat(Source& s, const Packet& packet, size_t bit, uint32_t n) {
    if ((s.watch & kNothingYet) != 0) return lost_repeat(s, packet, bit, n);
    ++s.frames;
    if (n != 0) replay(s, n, packet.offset(bit), packet.out);
    return true;
}

// Mode 0: the frames from bit `at` to bit `end`, all of them whole words that are neither Start nor zero. Returns where it
// came to: `end`; behind Stop; or the bit of what could not be understood, with kLost.
//
// Most frames are events and Repeats in an order that no processor could guess, so the common path has no branch between
// them: a Repeat is an event frame that opens and closes nothing. All else is done out of line, which leaves the
// registers to the common path.
size_t Timeline::stretch(Source& s, const Packet& packet, size_t at, const size_t end) {
    // Locals: the outputs are int64 too, so the compiler must assume that each store to them changes a member.
    Output& out = packet.out;
    int64_t t;
    uint32_t state, idle, watch;
    size_t row;
    uint64_t frames = 0;
    const auto enter = [&] {
        t = s.t;
        state = s.mask;
        watch = s.watch;
        idle = s.idle | ((watch & (kNothingYet | kSynced)) != 0 ? kNoRepeat : 0);
        row = out.slice;
    };
    const auto leave = [&] {
        s.t = t;
        s.mask = state;
        s.idle = idle & ~kNoRepeat;
        s.frames += static_cast<int64_t>(frames);
        frames = 0;
        out.slice = row;
    };
    enter();
    int64_t* const begins = out.slices.begin.data();
    int64_t* const durations = out.slices.duration.data();
    uint32_t* const tags = out.slices.tag.data();
    const uint32_t tag_base = s.tag_base;  // its quality changes only where the stretch ends
    // The word behind the last one is read, but not used.
    std::array<uint32_t, kPayloadWords + 1> payload;
    std::copy_n(packet.payload, kPayloadWords, payload.begin());
    payload[kPayloadWords] = 0;
    // The bits of word `word` that are left, in the highest places; zeros below.
    const size_t end_word = end / 32;
    size_t word;
    uint64_t left, rest;
    const auto seek = [&](size_t bit) {
        word = bit / 32;
        left = 32 - bit % 32;
        rest = static_cast<uint64_t>(payload[word]) << (64 - left);
    };
    const auto place = [&] { return 32 * word + 32 - left; };
    const auto write = [&](uint32_t slot, int64_t known) {
        begins[row] = s.begin[slot];
        durations[row] = known - s.begin[slot];
        tags[row] = tag_base | slot;
    };
    seek(at);
    while (word < end_word) {
        const size_t first = rest >> 56;
        const uint64_t code = kFast.code[first];
        const uint64_t size = code & 0xFF;
        const auto is_repeat = static_cast<uint32_t>(code >> kRepeat);
        const uint64_t left_then = left - size;
        if (static_cast<int64_t>(left_then) < 0 || (idle & is_repeat) != 0) [[unlikely]] {
            at = place();
            leave();
            const size_t next = other_frame(s, packet, at);
            if (next == kLost) return at | kLost;
            at = next;
            if (s.state != State::running) return at;
            seek(at);
            enter();
            continue;
        }
        const auto bits = static_cast<uint32_t>(rest >> (64 - size));
        const uint64_t following = static_cast<uint64_t>(payload[word + 1]) << 32;
        rest <<= size;
        // Behind the last frame of a word there is nothing, or padding up to its end.
        uint64_t is_empty = rest == kFilled[left_then / 8];
        keep_branchless(is_empty);
        rest = (rest & (is_empty - 1)) | (following & (0 - is_empty));
        left = (left_then & (is_empty - 1)) + (is_empty << 5);
        word += is_empty;

        const uint32_t value = bits & kFast.value_mask[first];
        const uint32_t told = static_cast<uint32_t>(code >> kSingle & 0xFF) |
                              (bits >> (code >> kValueBits & 0xFF) & static_cast<uint32_t>(code >> kMultiple & 0xFF));
        const uint32_t mask = told | (state & is_repeat);
        const uint32_t cycles = value & ~is_repeat;
        const uint32_t kept = state & mask & static_cast<uint32_t>(static_cast<int32_t>(cycles - 1) >> 31);  // if it is 0
        idle = cycles;
        const uint32_t closing = state ^ kept;
        const uint32_t opening = mask ^ kept;
        const int64_t known = t + 1;
        t += value + 1 + is_repeat;  // all ones are -1
        state = mask;

        // The first one is always written, and counted if present; slot 8 is unused.
        write(static_cast<uint32_t>(std::countr_zero(closing | kNoSlot)), known);
        row += (closing + 0xFF) >> 8;
        for (uint32_t more = closing & (closing - 1); more != 0; more &= more - 1) {
            write(static_cast<uint32_t>(std::countr_zero(more)), known);
            ++row;
        }
        s.begin[static_cast<uint32_t>(std::countr_zero(opening | kNoSlot))] = t;
        // Of these the first two: two at once are frequent enough to be no surprise.
        const uint32_t opening2 = opening & (opening - 1);
        s.begin[static_cast<uint32_t>(std::countr_zero(opening2 | kNoSlot))] = t;
        for (uint32_t more = opening2 & (opening2 - 1); more != 0; more &= more - 1) {
            s.begin[static_cast<uint32_t>(std::countr_zero(more))] = t;
        }
        ++frames;
        if (watch != 0 && ((opening | closing << kFlagged | kEdge | kNothingYet | kSynced) & watch) != 0) [[unlikely]] {
            leave();
            special(s, opening, closing, known, packet.offset(32 * word - (left == 32 ? 1 : 0)), out);
            enter();
        }
    }
    leave();
    return 32 * word;
}

// From word i on, until the packet ends, a Start begins or Stop ends the segment. Returns where.
size_t Timeline::run(Source& s, const Packet& packet, size_t i) {
    const uint32_t* const payload = packet.payload;
    // In mode 2 a word of zeros is eight branches that were not taken.
    const auto is_none = [&](uint32_t word) { return word == 0 && s.mode != kExecution; };
    const auto frames = [&](size_t from, size_t to) {
        return s.mode == kEventTime ? stretch(s, packet, 32 * from, 32 * to)
               : s.mode == kEventPc ? pc_stretch(s, packet, 32 * from, 32 * to)
                                    : flow_stretch(s, packet, 32 * from, 32 * to);
    };
    if (i == 0) {
        // Most packets hold nothing else than frames.
        uint32_t odd = 0, padding = 0;
        for (size_t k = 0; k < kPayloadWords; ++k) {
            odd |= static_cast<uint32_t>(payload[k] == 0) | static_cast<uint32_t>(is_start(payload[k]));
            padding += static_cast<uint32_t>(payload[k] == kFillerWord) | static_cast<uint32_t>(payload[k] == kFlowFillerWord);
        }
        if ((odd | padding) == 0) {
            const size_t bit = frames(0, kPayloadWords);
            if (bit == 32 * kPayloadWords) {
                decoded_ += kPayloadWords;
                return kPayloadWords;
            }
            const size_t reached = (bit & ~kLost) / 32;
            decoded_ += static_cast<int64_t>(reached);
            if (s.state != State::running) return reached;
            ++lost_;
            i = reached + 1;
        }
    }
    while (i < kPayloadWords && !is_start(payload[i])) {
        size_t end = i;
        for (; end < kPayloadWords && !is_none(payload[end]) && !is_start(payload[end]); ++end) {}
        const size_t bit = frames(i, end);
        const size_t reached = (bit & ~kLost) / 32;
        for (; i < reached; ++i) ++(is_filler_word(payload[i], s.mode) ? filler_ : decoded_);
        if (s.state != State::running) break;
        if (reached == end && (bit & kLost) == 0 && (end == kPayloadWords || !is_none(payload[end]))) continue;
        // Frames do not cross words: the next word is in step again, but time is missing.
        if ((bit & kLost) == 0) {
            // Four equal masks in a row would have been a Repeat, so the hardware never writes a zero word.
            note(s, Note::zero_word, packet.offset(32 * end));
            damage(s, Cause::bad_bytes, packet.offset(32 * end), packet.out);
        }
        ++lost_;
        i = reached + 1;
    }
    return i;
}

void Timeline::packet(Source& s, const uint32_t* payload, size_t first_word, const Offsets& offsets, Output& out) {
    ++decoded_;  // the header
    s.credit = std::min(s.credit + kCreditPerWord * static_cast<int64_t>(kPayloadWords), kMaxCredit);
    catch_up(s, out);
    if (s.state == State::running && s.t > tick_limit_) {
        note(s, Note::given_up, offsets(first_word));
        close(s, s.mask, kTruncated, out);
        s.mask = 0;
        end_segment(s, Ending::given_up, s.t + 1, 0, offsets(first_word), out);
        s.state = State::waiting;
    }
    if (s.state == State::running && s.mode == kEventTime && !s.has_start_word &&
        ((is_wide_ && whole_wide(s, payload, out)) || whole(s, payload, out))) {
        decoded_ += kPayloadWords;
        ++segments_[static_cast<size_t>(s.segment)].packets;
        return;
    }
    if (s.is_whole) s.tail = tail_behind(s.last_word, s.mask, s.idle);
    s.is_whole = false;
    size_t i = 0;
    if (s.has_start_word) i = start(s, payload, i, first_word, offsets, out);
    while (i < kPayloadWords) {
        if (is_start(payload[i])) {
            i = start(s, payload, i, first_word, offsets, out);
        } else if (s.state == State::running) {
            i = run(s, {payload, first_word, offsets, out}, i);
        } else {
            if (s.state != State::other_mode && is_filler_word(payload[i], s.mode)) {
                ++filler_;
                if (s.mode == kExecution && payload[i] == kFillerWord && s.segment >= 0) {
                    note(s, Note::unconfirmed, offsets(first_word + i), 4);
                }
            } else {
                ++lost_;
                const Note why = s.state == State::stopped      ? Note::after_stop
                                 : s.state == State::other_mode ? Note::other_mode
                                                                : Note::given_up;
                if (s.segment >= 0) note(s, why, offsets(first_word + i));
            }
            ++i;
        }
    }
    if (s.segment >= 0) ++segments_[static_cast<size_t>(s.segment)].packets;
    note_departures(s, payload, first_word, offsets);
}

// Frames of a packet that no unit writes where they are.
void Timeline::note_departures(Source& s, const uint32_t* payload, size_t first_word, const Offsets& offsets) {
    const Departures found = judge_payload(s.tail, payload);
    s.room = s.tail.padding;
    if (s.segment < 0) return;
    const auto tell = [&](Note which, const Tally& tally) {
        if (tally.count != 0) note(s, which, offsets(first_word + static_cast<size_t>(tally.first)), tally.count);
    };
    tell(Note::never_written, found.never);
    tell(Note::unseen_form, found.unseen);
}

// Frames of the source are missing here.
void Timeline::forget_tail(Source& s) {
    s.is_whole = false;
    s.room = 0;
    s.tail.is_in_start = false;
    s.tail.forget();
}

// Packets of an unknown source may belong to this one.
void Timeline::catch_up(Source& s, Output& out) {
    if (s.breaks == breaks_.size()) return;
    const int64_t offset = breaks_[s.breaks];
    s.breaks = breaks_.size();
    if (s.state == State::running) damage(s, Cause::lost_packet, offset, out);
    lose_start(s);
    forget_tail(s);
}

// Start's second word never came.
void Timeline::lose_start(Source& s) {
    if (!s.has_start_word) return;
    s.has_start_word = false;
    ++lost_;
    if (s.segment >= 0) note(s, Note::cut_start, s.start_offset);
}

Timeline::Progress Timeline::decode(std::span<const uint32_t> words, std::span<const Entry> entries, const Offsets& offsets,
                                    Slices slices, Points points, std::span<Event> events) {
    Output out{slices, points, events};
    size_t done = 0;
    for (; done < entries.size(); ++done) {
        const Entry& entry = entries[done];
        if (!out.has_room()) break;
        const auto run = static_cast<Run>(entry.run);
        const auto word = static_cast<size_t>(entry.word);
        if (entry.source >= 0) {
            while (sources_.size() <= static_cast<size_t>(entry.source)) {
                sources_.emplace_back();
                sources_.back().breaks = breaks_.size();
                sources_.back().credit = kFirstCredit;
            }
            Source& s = sources_[static_cast<size_t>(entry.source)];
            if (run == Run::packet) {
                packet(s, words.data() + word + 1, word + 1, offsets, out);
            } else {
                catch_up(s, out);
                lose_start(s);
                const Cause cause = run == Run::incomplete ? Cause::truncated : Cause::lost_packet;
                if (s.state == State::running) damage(s, cause, offsets(word), out);
                forget_tail(s);
            }
        } else if (run == Run::lost) {
            breaks_.push_back(offsets(word));
        } else if (run == Run::cut && !end_sources(word == 0 ? 0 : offsets(word - 1), out)) {
            break;
        }
    }
    return {done, out.slice, out.point, out.event};
}

// The end of all sources so far; false if room ran short: call again.
bool Timeline::end_sources(int64_t offset, Output& out) {
    for (; finished_ < sources_.size(); ++finished_) {
        if (!out.has_room()) return false;
        Source& s = sources_[finished_];
        catch_up(s, out);
        lose_start(s);
        if (s.state == State::running || s.state == State::other_mode) {
            close(s, s.mask, kTruncated, out);
            s.mask = 0;
            end_segment(s, Ending::end_of_data, s.t + 1, 0, offset, out);
            s.state = State::waiting;
        }
    }
    return true;
}

Timeline::Progress Timeline::finish(Slices slices, Points points, std::span<Event> events) {
    Output out{slices, points, events};
    if (!end_sources(0, out)) return {0, out.slice, out.point, out.event};
    return {1, out.slice, out.point, out.event};
}

}  // namespace lanescope::aie
