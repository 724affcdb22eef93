// Where knowledge of a source ends and begins again: gaps, and segments from Start over restarts to Stop. All of it is
// rare; what happens in every packet is in timeline.cpp.
#include <algorithm>

#include "core/devices/aie/timeline.hpp"

namespace lanescope::aie {

void Timeline::set_quality(Source& s, uint32_t quality) {
    s.tag_base = static_cast<uint32_t>(s.segment) << kSegmentShift | quality << kQualityShift;
    if (quality != kExact) {
        has_flags_ = true;
        segments_[static_cast<size_t>(s.segment)].is_exact = 0;
    }
}

// What was asserted is not known any more; nothing is open.
void Timeline::forget(Source& s) {
    s.mask = 0;
    s.watch = kUnknown;
    s.after_gap = kAllSlots;
}

// From here on neither state nor time is known, until a frame is understood again; a restart also tells the time.
void Timeline::damage(Source& s, Cause cause, int64_t offset, Output& out) {
    write_point(s, out);
    if (!s.is_gap) {
        close(s, s.mask, kTruncated, out);
        s.gap_begin = s.t + 1;
        s.gap_cause = cause;
        s.gap_offset = offset;
    }
    forget(s);
    s.is_gap = true;
    set_quality(s, std::max(kEstimated, s.tag_base >> kQualityShift & 3));
}

void Timeline::resume(Source& s, int64_t end, Output& out) {
    out.emit(What::gap, s, s.gap_begin, end, static_cast<int64_t>(s.gap_cause), s.gap_offset);
    s.is_gap = false;
}

// --- segments: from Start to Stop ------------------------------------------------------------------------------------

void Timeline::end_segment(Source& s, Ending ending, int64_t end, int64_t value, int64_t offset, Output& out) {
    Segment& segment = segments_[static_cast<size_t>(s.segment)];
    write_point(s, out);
    if (s.is_gap) {
        end = s.gap_begin;
        out.emit(What::open_gap, s, end, end, static_cast<int64_t>(s.gap_cause), s.gap_offset);
        s.is_gap = false;
    }
    segment.frames = s.frames;
    segment.end = end;
    segment.ending = static_cast<int64_t>(ending);
    out.emit(What::end, s, end, value, segment.ending, offset);
}

void Timeline::begin_segment(Source& s, uint32_t word, int64_t timer, int64_t offset, Output& out) {
    if (s.state == State::running || s.state == State::other_mode) {
        close(s, s.mask, kTruncated, out);
        end_segment(s, Ending::restarted, s.t + 1, 0, offset, out);
    }
    s.t = s.frames = 0;
    s.mask = s.used = s.after_gap = 0;
    s.watch = kUnknown;
    s.is_gap = false;
    if (segments_.size() == kMaxSegments) {
        over_limit_.add(offset);
        s.state = State::waiting;
        s.segment = -1;
        return;
    }
    const uint32_t mode = mode_of(word);
    const bool is_restart_frame = is_restart(word);
    const bool is_known = mode != kReservedMode;
    s.segment = static_cast<int32_t>(segments_.size());
    s.state = is_known ? State::running : State::other_mode;
    s.mode = mode;
    s.start_timer = is_restart_frame ? 0 : timer;
    segments_.push_back({.source = &s - sources_.data(),
                         .ordinal = ++s.ordinal,
                         .mode = mode,
                         .timer = mode == kExecution ? word & kPcOfStart : timer,
                         .offset = offset,
                         .begin = 0});
    set_quality(s, kExact);
    if (is_restart_frame) {
        note(s, Note::start_lost, offset);
        if (is_known) {
            const bool is_sane = timer <= tick_limit_;
            if (is_sane) s.t = timer;
            else note(s, Note::restart_timer, offset);
            s.after_gap = kAllSlots;
            segments_.back().begin = s.t;
            set_quality(s, is_sane ? kInferred : kEstimated);
        }
    }
    out.emit(What::segment, s, s.t, timer, (&s - sources_.data()) << 8 | mode << 1 | is_restart_frame, offset);
    if (is_restart_frame && is_known) {
        out.emit(What::gap, s, 0, s.t, static_cast<int64_t>(Cause::start_lost), offset);
    }
    if (mode == kExecution) write_flow(s, is_restart_frame ? FlowKind::restart : FlowKind::start, word, out);
}

// The unit lost frames and goes on. Its timer tells where, counted from Start if Start resets it (which is what the
// hardware captures show) or else from the same zero as Start's own value.
void Timeline::restart(Source& s, uint32_t word, int64_t timer, int64_t offset, Output& out) {
    const bool has_time = has_timer(word);
    const bool fits = has_time && timer > s.t && timer <= tick_limit_;
    const int64_t since_start = timer - s.start_timer;
    const bool fits_free_running = has_time && since_start > s.t && since_start <= tick_limit_;
    write_point(s, out);
    if (!s.is_gap) {
        close(s, s.mask, kTruncated, out);
        s.gap_begin = s.t + 1;
        s.gap_cause = Cause::overrun;
        s.gap_offset = offset;
    }
    note(s, Note::restart, offset);
    if (has_time && !fits && !fits_free_running) note(s, Note::restart_timer, offset);
    if (fits && fits_free_running && s.start_timer != 0) note(s, Note::restart_ambiguous, offset);
    if (fits) s.t = timer;
    else if (fits_free_running) s.t = since_start;
    else if (!has_time) ++s.t;
    resume(s, std::max(s.t, s.gap_begin), out);
    out.emit(What::restart, s, s.t, timer, 0, offset);
    ++segments_[static_cast<size_t>(s.segment)].restarts;
    forget(s);
    set_quality(s, fits || fits_free_running ? kInferred : std::max(kEstimated, s.tag_base >> kQualityShift & 3));
    if (!has_time) write_flow(s, FlowKind::restart, word, out);
}

// A Start frame at word i, or the second word of one; returns the index behind it.
size_t Timeline::start(Source& s, const uint32_t* payload, size_t i, size_t first_word, const Offsets& offsets, Output& out) {
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
    const bool is_odd = mode_of(word) == kExecution && (word & kFlowReserved) != 0;
    const bool goes_on = is_restart(word) && s.segment >= 0 && segments_[static_cast<size_t>(s.segment)].mode == mode_of(word);
    if (goes_on && s.state == State::running) {
        restart(s, word, timer, offset, out);
    } else if (goes_on && s.state == State::other_mode) {
        note(s, Note::restart, offset);
        ++segments_[static_cast<size_t>(s.segment)].restarts;
    } else {
        begin_segment(s, word, timer, offset, out);
    }
    if (is_odd && s.segment >= 0) note(s, Note::reserved_bits, offset);
    ++s.frames;
    return i + 1;
}

}  // namespace lanescope::aie
