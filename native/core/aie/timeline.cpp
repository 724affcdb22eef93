#include "core/aie/timeline.hpp"

#include <algorithm>

namespace lanescope::aie {
namespace {

constexpr uint32_t kExact = 0;
constexpr uint32_t kEstimated = 1;
constexpr uint32_t kInferred = 2;
constexpr uint32_t kAllSlots = 0xFF;
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
        out.slices.begin[out.slice] = s.begin[slot];
        out.slices.duration[out.slice] = s.hot.t + 1 - s.begin[slot];
        out.slices.tag[out.slice++] = s.tag[slot] | flags;
    }
}

void Timeline::set_quality(Source& s, uint32_t quality) {
    s.tag_base = static_cast<uint32_t>(s.segment) << kSegmentShift | quality << kQualityShift;
    if (quality != kExact) {
        has_flags_ = true;
        segments_[static_cast<size_t>(s.segment)].is_exact = 0;
    }
}

// From here on neither state nor time is known, until a frame is understood again; a restart also tells the time.
void Timeline::damage(Source& s, Cause cause, int64_t offset, Output& out) {
    Hot& h = s.hot;
    if (!h.is_gap) {
        close(s, h.mask, kTruncated, out);
        s.gap_begin = h.t + 1;
        s.gap_cause = cause;
        s.gap_offset = offset;
    }
    h.mask = 0;
    h.has_last = false;
    h.is_edge = h.is_gap = true;
    h.after_gap = kAllSlots;
    set_quality(s, std::max(kEstimated, s.tag_base >> kQualityShift & 3));
}

void Timeline::resume(Source& s, int64_t end, Output& out) {
    out.emit(What::gap, s, s.gap_begin, end, static_cast<int64_t>(s.gap_cause), s.gap_offset);
    s.hot.is_gap = false;
}

// Slices that open where something before them is unknown carry flags.
void Timeline::open_special(Source& s, uint32_t mask, bool is_contiguous) {
    for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
        const auto slot = static_cast<size_t>(std::countr_zero(rest));
        uint32_t flags = s.hot.is_edge && is_contiguous ? kTruncated : 0;
        if ((s.hot.after_gap >> slot & 1) != 0) flags |= kAfterGap;
        s.tag[slot] |= flags;
        if (flags != 0) has_flags_ = true;
    }
    s.hot.after_gap &= static_cast<uint8_t>(~mask);
    s.hot.is_edge = false;
}

void Timeline::first_use(Source& s, uint32_t mask, int64_t offset, Output& out) {
    for (mask &= ~static_cast<uint32_t>(s.hot.used); mask != 0; mask &= mask - 1) {
        out.emit(What::slot, s, s.hot.t, std::countr_zero(mask), 0, offset);
        s.hot.used |= static_cast<uint8_t>(mask & -mask);
    }
}

// Repeat where it is not simply "the state goes on": after idle cycles, or behind a Sync.
void Timeline::replay(Source& s, uint32_t n, int64_t offset, Output& out) {
    Hot& h = s.hot;
    const uint32_t mask = h.last_mask;
    const int64_t period = static_cast<int64_t>(h.last_idle) + 1;
    const int64_t rows = static_cast<int64_t>(n) * std::popcount(mask);
    if (h.last_idle != 0) note(s, Note::late_repeat, offset);
    const auto open = [&] {
        h.t += period;
        for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
            const auto slot = static_cast<size_t>(std::countr_zero(rest));
            s.begin[slot] = h.t;
            s.tag[slot] = s.tag_base | static_cast<uint32_t>(slot);
        }
        h.mask = mask;
    };
    if (h.last_idle == 0) {
        close(s, h.mask, 0, out);
        open();
        h.t += n - 1;
    } else if (rows <= s.credit) {
        s.credit -= rows;
        for (uint32_t i = 0; i < n; ++i) {
            close(s, h.mask, 0, out);
            open();
        }
    } else {
        close(s, h.mask, 0, out);
        note(s, Note::repeat_limit, offset, rows);
        const int64_t begin = h.t + 1;
        h.t += n * period;
        out.emit(What::gap, s, begin, h.t + 1, static_cast<int64_t>(Cause::repeat_limit), offset) = rows;
        h.mask = 0;
        h.is_edge = true;
        h.after_gap = kAllSlots;
    }
}

// --- segments: from Start to Stop ------------------------------------------------------------------------------------

void Timeline::end_segment(Source& s, Ending ending, int64_t end, int64_t value, int64_t offset, Output& out) {
    Segment& segment = segments_[static_cast<size_t>(s.segment)];
    if (s.hot.is_gap) {
        end = s.gap_begin;
        out.emit(What::open_gap, s, end, end, static_cast<int64_t>(s.gap_cause), s.gap_offset);
        s.hot.is_gap = false;
    }
    segment.end = end;
    segment.ending = static_cast<int64_t>(ending);
    out.emit(What::end, s, end, value, segment.ending, offset);
}

void Timeline::begin_segment(Source& s, uint32_t word, int64_t timer, int64_t offset, Output& out) {
    if (s.state == State::running || s.state == State::other_mode) {
        close(s, s.hot.mask, kTruncated, out);
        end_segment(s, Ending::restarted, s.hot.t + 1, 0, offset, out);
    }
    s.hot = {};
    if (segments_.size() == kMaxSegments) {
        over_limit_.add(offset);
        s.state = State::waiting;
        s.segment = -1;
        return;
    }
    const uint32_t mode = mode_of(word);
    const bool is_restart_frame = is_restart(word);
    s.segment = static_cast<int32_t>(segments_.size());
    s.state = mode == 0 ? State::running : State::other_mode;
    s.start_timer = is_restart_frame ? 0 : timer;
    s.hot.is_edge = true;
    segments_.push_back({.source = &s - sources_.data(),
                         .ordinal = ++s.ordinal,
                         .mode = mode,
                         .timer = timer,
                         .offset = offset,
                         .begin = 0});
    set_quality(s, kExact);
    if (is_restart_frame) {
        note(s, Note::start_lost, offset);
        if (mode == 0) {
            const bool is_sane = timer <= tick_limit_;
            if (is_sane) s.hot.t = timer;
            else note(s, Note::restart_timer, offset);
            s.hot.after_gap = kAllSlots;
            segments_.back().begin = s.hot.t;
            set_quality(s, is_sane ? kInferred : kEstimated);
        }
    }
    out.emit(What::segment, s, s.hot.t, timer, (&s - sources_.data()) << 8 | mode << 1 | is_restart_frame, offset);
    if (is_restart_frame && mode == 0) {
        out.emit(What::gap, s, 0, s.hot.t, static_cast<int64_t>(Cause::start_lost), offset);
    }
}

// The unit lost frames and goes on. Its timer tells where, counted from Start if Start resets it (which is what the
// hardware captures show) or else from the same zero as Start's own value.
void Timeline::restart(Source& s, int64_t timer, int64_t offset, Output& out) {
    Hot& h = s.hot;
    const bool fits = timer > h.t && timer <= tick_limit_;
    const int64_t since_start = timer - s.start_timer;
    const bool fits_free_running = since_start > h.t && since_start <= tick_limit_;
    if (!h.is_gap) {
        close(s, h.mask, kTruncated, out);
        s.gap_begin = h.t + 1;
        s.gap_cause = Cause::overrun;
        s.gap_offset = offset;
    }
    note(s, Note::restart, offset);
    if (!fits && !fits_free_running) note(s, Note::restart_timer, offset);
    if (fits && fits_free_running && s.start_timer != 0) note(s, Note::restart_ambiguous, offset);
    if (fits) h.t = timer;
    else if (fits_free_running) h.t = since_start;
    resume(s, std::max(h.t, s.gap_begin), out);
    out.emit(What::restart, s, h.t, timer, 0, offset);
    ++segments_[static_cast<size_t>(s.segment)].restarts;
    h.mask = 0;
    h.has_last = false;
    h.is_edge = true;
    h.after_gap = kAllSlots;
    set_quality(s, fits || fits_free_running ? kInferred : std::max(kEstimated, s.tag_base >> kQualityShift & 3));
}

// A Start frame at word i, or the second word of one; returns the index behind it.
size_t Timeline::start(Source& s, const uint32_t* payload, size_t i, size_t first_word, Offsets offsets, Output& out) {
    uint32_t word = payload[i];
    int64_t offset = offsets(first_word + i);
    int64_t timer = 0;
    int64_t length = 1;
    if (s.has_start_word) {
        word = s.start_word;
        offset = s.start_offset;
        s.has_start_word = false;
        length = 2;
    } else if (has_timer(word)) {
        if (++i == kPayloadWords) {
            s.has_start_word = true;
            s.start_word = word;
            s.start_offset = offset;
            return i;
        }
        length = 2;
    }
    if (length == 2) {
        if (offsets.is_placeholder(payload[i])) {
            lost_ += length;
            if (s.segment >= 0) note(s, Note::cut_start, offset);
            if (s.state == State::running) damage(s, Cause::bad_bytes, offset, out);
            return i + 1;
        }
        timer = timer_of(word, payload[i]);
    }
    decoded_ += length;
    const bool goes_on = is_restart(word) && s.segment >= 0 && segments_[static_cast<size_t>(s.segment)].mode == mode_of(word);
    if (goes_on && s.state == State::running) {
        restart(s, timer, offset, out);
    } else if (goes_on && s.state == State::other_mode) {
        note(s, Note::restart, offset);
        ++segments_[static_cast<size_t>(s.segment)].restarts;
    } else {
        begin_segment(s, word, timer, offset, out);
    }
    if (s.segment >= 0) ++segments_[static_cast<size_t>(s.segment)].frames;
    return i + 1;
}

// --- words -----------------------------------------------------------------------------------------------------------

// Mode 0: frames from word i on, until the packet ends, a Start begins or Stop ends the segment. Returns where.
size_t Timeline::run(Source& s, const uint32_t* payload, size_t i, size_t first_word, Offsets offsets, Output& out) {
    // Locals: the outputs are int64 too, so the compiler must assume that each store to them changes a member.
    Hot h = s.hot;
    int64_t* const begins = out.slices.begin.data();
    int64_t* const durations = out.slices.duration.data();
    uint32_t* const tags = out.slices.tag.data();
    size_t row = out.slice;
    int64_t frames = 0;
    const auto leave = [&] {
        s.hot = h;
        out.slice = row;
    };
    const auto enter = [&] {
        h = s.hot;
        row = out.slice;
    };

    for (; i < kPayloadWords; ++i) {
        uint32_t word = payload[i];
        if (word == kFillerWord) {
            ++filler_;
            continue;
        }
        if (is_start(word)) break;
        // Four equal masks in a row would have been a Repeat, so the hardware never writes a zero word.
        Note problem = Note::zero_word;
        bool is_bad = word == 0;
        for (unsigned left = 32; !is_bad;) {
            const Code code = kCodes[word >> 24];
            if (code.frame == Frame::unknown_code || code.bits > left) [[unlikely]] {
                is_bad = true;
                problem = code.frame == Frame::unknown_code ? Note::unknown_code
                          : code.frame == Frame::start      ? Note::misaligned
                                                            : Note::crosses_word;
                break;
            }
            const uint32_t bits = word >> (32 - code.bits);
            const uint32_t value = bits & ((1u << code.value_bits) - 1);
            if (code.frame <= Frame::multiple2) {
                const uint32_t id = bits >> code.value_bits;
                const uint32_t mask = code.frame <= Frame::single2 ? 1u << (id & 7) : id & 0xFF;
                const uint32_t kept = value == 0 ? h.mask & mask : 0;
                const int64_t end = h.t + 1;
                for (uint32_t rest = h.mask & ~kept; rest != 0; rest &= rest - 1) {
                    const auto slot = static_cast<size_t>(std::countr_zero(rest));
                    begins[row] = s.begin[slot];
                    durations[row] = end - s.begin[slot];
                    tags[row++] = s.tag[slot];
                }
                const int64_t now = end + value;
                for (uint32_t rest = mask & ~kept; rest != 0; rest &= rest - 1) {
                    const auto slot = static_cast<size_t>(std::countr_zero(rest));
                    s.begin[slot] = now;
                    s.tag[slot] = s.tag_base | static_cast<uint32_t>(slot);
                }
                if (h.is_edge || (mask & (h.after_gap | ~static_cast<uint32_t>(h.used))) != 0) [[unlikely]] {
                    leave();
                    if (h.is_gap) resume(s, end, out);
                    first_use(s, mask, offsets(first_word + i), out);
                    open_special(s, mask & ~kept, value == 0);
                    enter();
                }
                h.t = now;
                h.mask = h.last_mask = mask;
                h.last_idle = value;
                h.has_last = true;
            } else if (code.frame == Frame::repeat0 || code.frame == Frame::repeat1) {
                if (!h.has_last) [[unlikely]] {
                    // What it repeats is lost; at least that many cycles passed.
                    problem = Note::lost_repeat;
                    leave();
                    damage(s, Cause::bad_bytes, offsets(first_word + i), out);
                    s.hot.t += value;
                    enter();
                    is_bad = true;
                    break;
                }
                if ((h.last_idle == 0 && h.mask == h.last_mask) || value == 0) [[likely]] {
                    h.t += value;
                } else {
                    leave();
                    replay(s, value, offsets(first_word + i), out);
                    enter();
                }
            } else if (code.frame == Frame::sync) {
                leave();
                if (h.is_gap) resume(s, h.t + 1, out);
                close(s, h.mask, 0, out);
                enter();
                h.mask = 0;
                h.is_edge = false;
                h.t += kSyncCycles;
            } else if (code.frame == Frame::stop) {
                const int64_t end = h.t + value + 1;
                const uint32_t mask = bits >> code.value_bits & 0xFF;
                const int64_t offset = offsets(first_word + i);
                leave();
                if (h.is_gap) resume(s, h.t + 1, out);
                close(s, s.hot.mask, value == 0 ? kTruncated : 0, out);
                s.hot.mask = 0;
                if (mask != 0) note(s, Note::stop_mask, offset);
                end_segment(s, Ending::stop, end, mask, offset, out);
                s.state = State::stopped;
                segments_[static_cast<size_t>(s.segment)].frames += frames + 1;
                ++decoded_;
                return i + 1;
            }
            frames += code.frame != Frame::filler;
            left -= code.bits;
            if (left == 0) break;
            word <<= code.bits;
        }
        if (is_bad) [[unlikely]] {
            // Frames do not cross words: the next word is in step again, but time is missing.
            const int64_t offset = offsets(first_word + i);
            note(s, problem, offset);
            leave();
            damage(s, Cause::bad_bytes, offset, out);
            enter();
            ++lost_;
        } else {
            ++decoded_;
        }
    }
    leave();
    segments_[static_cast<size_t>(s.segment)].frames += frames;
    return i;
}

void Timeline::packet(Source& s, const uint32_t* payload, size_t first_word, Offsets offsets, Output& out) {
    ++decoded_;  // the header
    s.credit = std::min(s.credit + kCreditPerWord * static_cast<int64_t>(kPayloadWords), kMaxCredit);
    catch_up(s, out);
    if (s.state == State::running && s.hot.t > tick_limit_) {
        note(s, Note::given_up, offsets(first_word));
        close(s, s.hot.mask, kTruncated, out);
        s.hot.mask = 0;
        end_segment(s, Ending::given_up, s.hot.t + 1, 0, offsets(first_word), out);
        s.state = State::waiting;
    }
    size_t i = 0;
    if (s.has_start_word) i = start(s, payload, i, first_word, offsets, out);
    while (i < kPayloadWords) {
        if (is_start(payload[i])) {
            i = start(s, payload, i, first_word, offsets, out);
        } else if (s.state == State::running) {
            i = run(s, payload, i, first_word, offsets, out);
        } else {
            if (payload[i] == kFillerWord && s.state != State::other_mode) {
                ++filler_;
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
}

// Packets that nobody knows the source of may have been this one's.
void Timeline::catch_up(Source& s, Output& out) {
    if (s.breaks == breaks_.size()) return;
    const int64_t offset = breaks_[s.breaks];
    s.breaks = breaks_.size();
    if (s.state == State::running) damage(s, Cause::lost_packet, offset, out);
    lose_start(s);
}

// Start's second word never came.
void Timeline::lose_start(Source& s) {
    if (!s.has_start_word) return;
    s.has_start_word = false;
    ++lost_;
    if (s.segment >= 0) note(s, Note::cut_start, s.start_offset);
}

Timeline::Progress Timeline::decode(std::span<const uint32_t> words, std::span<const Entry> entries, Offsets offsets,
                                    Slices slices, std::span<Event> events) {
    Output out{slices, events};
    size_t done = 0;
    for (; done < entries.size(); ++done) {
        if (slices.begin.size() - out.slice < kSliceRoom || events.size() - out.event < kEventRoom) break;
        const Entry& entry = entries[done];
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
            }
        } else if (run == Run::lost) {
            breaks_.push_back(offsets(word));
        }
    }
    return {done, out.slice, out.event};
}

Timeline::Progress Timeline::finish(Slices slices, std::span<Event> events) {
    Output out{slices, events};
    for (; finished_ < sources_.size(); ++finished_) {
        if (slices.begin.size() - out.slice < 8 || events.size() - out.event < 8) return {0, out.slice, out.event};
        Source& s = sources_[finished_];
        catch_up(s, out);
        lose_start(s);
        if (s.state == State::running || s.state == State::other_mode) {
            close(s, s.hot.mask, kTruncated, out);
            s.hot.mask = 0;
            end_segment(s, Ending::end_of_data, s.hot.t + 1, 0, 0, out);
            s.state = State::waiting;
        }
    }
    return {1, out.slice, out.event};
}

}  // namespace lanescope::aie
