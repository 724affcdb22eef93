#include "core/wire/trace_events/scanner.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/wire/trace_events/characters.hpp"

namespace lanescope::trace_events {

namespace {

constexpr size_t kPadding = 64;  // zeros behind the text, which reads of 16 bytes may touch
constexpr std::string_view kList = "traceEvents";

}  // namespace

Scanner::Scanner(std::vector<ValueKind> kinds, const std::vector<Wanted>& wanted_members, const std::vector<Wanted>& wanted_args)
    : member_keys_(wanted_members), arg_keys_(wanted_args), place_slots_(256, -1), buffer_(kPadding, '\0') {
    for (const ValueKind kind : kinds) values.push_back({kind, {}, {}, {}});
    at_ = end_ = buffer_.data();
}

void Scanner::feed(std::string_view bytes) {
    const auto left = static_cast<size_t>(end_ - at_);
    base_ += at_ - buffer_.data();
    buffer_.erase(0, buffer_.size() - kPadding - left);
    buffer_.resize(left);
    buffer_.append(bytes);
    size += static_cast<int64_t>(bytes.size());
    const size_t there = buffer_.size();
    buffer_.append(kPadding, '\0');
    at_ = buffer_.data();
    end_ = at_ + there;
    if (there < wait_for_) return;
    run();
    // A unit that is not all there is tried again when there is twice as much of it.
    wait_for_ = 2 * static_cast<size_t>(end_ - at_);
}

void Scanner::finish() {
    is_final_ = true;
    run();
    if (at_ < end_) lose(end_);
    if (state_ == State::members || state_ == State::events) ending = Ending::unterminated;
    if (state_ == State::tail) ending = Ending::whole;
    if (state_ == State::start) ending = Ending::foreign;
}

void Scanner::run() {
    while (step()) {}
}

void Scanner::lose(const char* to) {
    if (to <= at_) return;
    const int64_t begin = offset(at_), end = offset(to);
    if (!lost.empty() && lost.back().end == begin) {
        lost.back().end = end;
    } else {
        lost.push_back({begin, end});
        lost_is_event.push_back(state_ == State::events);
    }
    at_ = to;
}

// One unit; false when there is nothing more to do for now.
bool Scanner::step() {
    if (!is_seeking_) {
        const char* begin = at_;
        space(begin);
        take(begin);
    }
    if (at_ >= end_) return false;
    switch (state_) {
        case State::start:
            return start();
        case State::members:
            return member();
        case State::events:
            return is_seeking_ ? seek_event(at_) : element();
        case State::tail:
            return tail();
    }
    return false;
}

bool Scanner::start() {
    constexpr std::string_view mark = "\xEF\xBB\xBF";
    if (offset(at_) == 0 && *at_ == mark[0]) {
        if (static_cast<size_t>(end_ - at_) < mark.size()) return false;
        if (std::string_view(at_, mark.size()) == mark) {
            take(at_ + mark.size());
            return true;
        }
    }
    if (*at_ != '{' && *at_ != '[') {
        if (is_final_) lose(end_);
        return false;
    }
    is_bare = has_list = *at_ == '[';
    state_ = is_bare ? State::events : State::members;
    take(at_ + 1);
    return true;
}

// A member of the outermost object, or its end.
bool Scanner::member() {
    if (is_seeking_) return seek_list(at_);
    const char* at = at_;
    if (*at == ',') {
        extra_commas += is_fresh_ || had_comma_;
        had_comma_ = true;
        take(at + 1);
        return true;
    }
    if (*at == '}') {
        extra_commas += had_comma_;
        state_ = State::tail;
        take(at + 1);
        return true;
    }
    Member found;
    std::string_view name;
    Step step = *at == '"' ? text(at, &name) : Step::bad;
    if (step == Step::done) {
        found.key_begin = offset(name.data());
        found.key_end = found.key_begin + static_cast<int64_t>(name.size());
        space(at);
        step = *at == ':' ? Step::done : out_or_bad(at);
    }
    if (step == Step::done) {
        ++at;
        space(at);
        if (is_out(at)) {
            step = Step::more;
        } else if (*at == '[' && name == kList) {
            missing_commas += !is_fresh_ && !had_comma_;
            take(at + 1);
            state_ = State::events;
            has_list = is_fresh_ = true;
            had_comma_ = false;
            return true;
        } else {
            found.begin = offset(at);
            step = skip(at);
            // A number that the text ends in may go on.
            if (step == Step::done && is_out(at)) step = Step::more;
        }
    }
    if (step == Step::done && static_cast<size_t>(at - at_) <= kMostUnit) {
        found.end = offset(at);
        members.push_back(found);
        missing_commas += !is_fresh_ && !had_comma_;
        is_fresh_ = had_comma_ = false;
        take(at);
        return true;
    }
    if (step == Step::more && !is_final_ && static_cast<size_t>(end_ - at_) <= kMostUnit) return false;
    is_seeking_ = true;
    return seek_list(at_ + 1);
}

// An element of the list, or its end.
bool Scanner::element() {
    if (*at_ == ',') {
        extra_commas += is_fresh_ || had_comma_;
        had_comma_ = true;
        take(at_ + 1);
        return true;
    }
    if (*at_ == ']') {
        extra_commas += had_comma_;
        state_ = is_bare ? State::tail : State::members;
        is_fresh_ = had_comma_ = false;
        take(at_ + 1);
        return true;
    }
    const char* at = at_;
    const Step step = event(at);
    if (step == Step::done) {
        missing_commas += !is_fresh_ && !had_comma_;
        is_fresh_ = had_comma_ = false;
        take(at);
        return true;
    }
    if (step == Step::more && !is_final_) return false;
    is_seeking_ = true;
    return seek_event(at_ + 1);
}

// Goes on at the next event that is one for sure: it has a phase, and what follows it is a comma or the end of the list.
bool Scanner::seek_event(const char* from) {
    for (const char* at = from; at < end_; ++at) {
        at = static_cast<const char*>(std::memchr(at, '{', static_cast<size_t>(end_ - at)));
        if (at == nullptr) break;
        const char* stop = at;
        const size_t known = events.begin.size();
        Step step = event(stop);
        if (step == Step::done) {
            const char* behind = stop;
            space(behind);
            if (is_out(behind)) {
                step = is_final_ ? Step::done : Step::more;
            } else {
                step = *behind == ',' || *behind == ']' ? Step::done : Step::bad;
            }
            if (events.phase.back() == 0) step = Step::bad;
            if (step != Step::done && events.begin.size() > known) forget();
        }
        if (step == Step::bad || (step == Step::more && is_final_)) continue;
        lose(at);
        if (step == Step::more) return false;
        is_seeking_ = is_fresh_ = had_comma_ = false;
        take(stop);
        return true;
    }
    lose(end_);
    return false;
}

// Goes on at the list of events.
bool Scanner::seek_list(const char* from) {
    const std::string_view rest{from, static_cast<size_t>(end_ - from)};
    for (size_t found = rest.find(kList); found != std::string_view::npos; found = rest.find(kList, found + 1)) {
        const char* at = from + found + kList.size();
        if (*at != '"' || *(from + found - 1) != '"') {
            if (is_out(at) && !is_final_) {
                lose(from + found - 1);
                return false;
            }
            continue;
        }
        ++at;
        space(at);
        if (*at == ':') {
            ++at;
            space(at);
        }
        if (is_out(at) && !is_final_) {
            lose(from + found - 1);
            return false;
        }
        if (*at != '[') continue;
        lose(from + found - 1);
        take(at + 1);
        state_ = State::events;
        has_list = is_fresh_ = true;
        is_seeking_ = had_comma_ = false;
        return true;
    }
    // The begin of its name may be all that is there.
    const size_t kept = is_final_ ? 0 : std::min(kList.size() + 1, static_cast<size_t>(end_ - at_));
    lose(end_ - kept);
    return false;
}

bool Scanner::tail() {
    lose(end_);
    return false;
}

int32_t Scanner::place_of(const Place& place) {
    if (last_place_ >= 0 && places[static_cast<size_t>(last_place_)] == place) return last_place_;
    constexpr uint64_t factor = 0x9E3779B97F4A7C15;
    uint64_t hash = (static_cast<uint64_t>(place.process) * factor) ^ static_cast<uint64_t>(place.thread);
    hash = (hash ^ hash >> 31) * factor;
    size_t slot = (hash >> 32) & (place_slots_.size() - 1);
    for (; place_slots_[slot] >= 0; slot = (slot + 1) & (place_slots_.size() - 1)) {
        if (places[static_cast<size_t>(place_slots_[slot])] == place) return last_place_ = place_slots_[slot];
    }
    places.push_back(place);
    place_slots_[slot] = last_place_ = static_cast<int32_t>(places.size() - 1);
    if (places.size() * 2 > place_slots_.size()) {
        place_slots_.assign(place_slots_.size() * 4, -1);
        for (size_t i = 0; i < places.size(); ++i) {
            hash = (static_cast<uint64_t>(places[i].process) * factor) ^ static_cast<uint64_t>(places[i].thread);
            hash = (hash ^ hash >> 31) * factor;
            slot = (hash >> 32) & (place_slots_.size() - 1);
            while (place_slots_[slot] >= 0) slot = (slot + 1) & (place_slots_.size() - 1);
            place_slots_[slot] = static_cast<int32_t>(i);
        }
    }
    return last_place_;
}

void Scanner::keep(const char* begin, const char* end, const Fresh& fresh) {
    events.begin.push_back(offset(begin));
    events.size.push_back(static_cast<uint32_t>(end - begin));
    events.phase.push_back(fresh.phase);
    events.bits.push_back(fresh.bits);
    events.name.push_back(fresh.name);
    events.category.push_back(fresh.category);
    events.ts.push_back(fresh.ts);
    events.dur.push_back(fresh.dur);
    events.place.push_back(place_of(fresh.place));
    events.id.push_back(fresh.id);
    const bool has_args = fresh.args_begin != nullptr && (fresh.bits & kHasArgs) != 0;
    events.args_begin.push_back(has_args ? static_cast<uint32_t>(fresh.args_begin - begin) : 0);
    events.args_size.push_back(has_args ? static_cast<uint32_t>(fresh.args_end - fresh.args_begin) : 0);
}

// Takes back what the event being read has put into columns of its keys.
void Scanner::undo() {
    for (const uint32_t column : touched_) {
        Values& found = values[column & ~kOdd];
        if (column & kOdd) {
            found.odd.pop_back();
            continue;
        }
        found.event.pop_back();
        found.value.resize(found.value.size() - (found.kind == ValueKind::triple ? 3 : 1));
    }
    touched_.clear();
}

// Takes back the event that was read last.
void Scanner::forget() {
    undo();
    const auto number = static_cast<int64_t>(events.begin.size() - 1);
    while (!series.event.empty() && series.event.back() == number) {
        series.event.pop_back();
        series.key.pop_back();
        series.value.pop_back();
    }
    events.begin.pop_back();
    events.size.pop_back();
    events.phase.pop_back();
    events.bits.pop_back();
    events.name.pop_back();
    events.category.pop_back();
    events.ts.pop_back();
    events.dur.pop_back();
    events.place.pop_back();
    events.id.pop_back();
    events.args_begin.pop_back();
    events.args_size.pop_back();
}

}  // namespace lanescope::trace_events
