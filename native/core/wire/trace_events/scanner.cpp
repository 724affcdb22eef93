#include "core/wire/trace_events/scanner.hpp"

#include <algorithm>
#include <cstring>

#include "core/wire/trace_events/characters.hpp"

namespace lanescope::trace_events {

namespace {

constexpr std::string_view kQuotedList = "\"traceEvents\"", kList = kQuotedList.substr(1, kQuotedList.size() - 2);
constexpr uint64_t kSpareEffort = 64 << 20;  // bytes of trials that any file may cost
constexpr uint64_t kEffortRatio = 4;
constexpr size_t kMostNesting = 1 << 16;  // of the value of a member
constexpr int64_t kMostKept = int64_t{64} << 20;  // bytes of the value of a member

}  // namespace

Scanner::Scanner(const std::vector<ValueKind>& kinds, const std::vector<Wanted>& wanted_args)
    : buffer_(kPadding, '\0') {
    values.reserve(kinds.size());
    for (const ValueKind kind : kinds) values.emplace_back(kind);
    for (Keys* const keys : {&member_keys_, &arg_keys_, &id_keys_}) keys->add("", Role::other);  // any that is not kept
    const std::pair<std::string_view, Role> known[] = {
        {"ph", Role::ph}, {"ts", Role::ts}, {"dur", Role::dur}, {"pid", Role::pid}, {"tid", Role::tid}, {"name", Role::name},
        {"cat", Role::cat}, {"args", Role::args}, {"id", Role::id}, {"id2", Role::id2}, {"scope", Role::scope}, {"bp", Role::bp}, {"s", Role::s},
        {"bind_id", Role::bind_id}, {"tts", Role::thread_time}, {"tdur", Role::thread_time}, {"flow_in", Role::flow_in},
        {"flow_out", Role::flow_out}, {"sf", Role::stack}, {"esf", Role::stack}, {"stack", Role::stack}, {"estack", Role::stack},
    };
    for (const auto& [key, role] : known) member_keys_.add(key, role);
    for (const Wanted& one : wanted_args) arg_keys_.add(one.key, Role::wanted, one.column);
    id_keys_.add("local", Role::wanted, kLocalId);
    id_keys_.add("global", Role::wanted, kGlobalId);
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
    make_room();
    // A unit that is not all there is tried again when there is twice as much of it.
    wait_for_ = 2 * static_cast<size_t>(end_ - at_);
}

// As many rows as there will be when the rest of the text is like what was read of it.
void Scanner::make_room() {
    const auto read = static_cast<double>(size - columns_from_);
    if (read <= 0 || static_cast<double>(expected_) <= read) return;
    constexpr double spare = 1.1;
    const double ratio = spare * static_cast<double>(expected_) / read;
    const auto expect = [&](auto&... columns) {
        (columns.expect(static_cast<size_t>(ratio * static_cast<double>(columns.size()))), ...);
    };
    events.each(expect);
    expect(ids.event, ids.value, ids.kind, bind_ids.event, bind_ids.value, bind_ids.kind, series.event, series.key,
           series.value);
    for (Values& column : values) expect(column.event, column.value);
}

void Scanner::finish() {
    is_final_ = true;
    run();
    lose(end_, is_seeking_ && !is_cut_ ? (state_ == State::events ? Loss::broken : Loss::outside) : Loss::cut);
    has_trailing_comma |= state_ == State::events && had_comma_;
    if (ending == Ending::open) {
        ending = state_ == State::tail ? Ending::whole : state_ == State::start ? Ending::foreign : Ending::unterminated;
    }
}

void Scanner::run() {
    while (step()) {
    }
}

void Scanner::lose(const char* to, Loss loss) {
    if (to <= at_) return;
    const int64_t begin = offset(at_), end = offset(to);
    const bool is_in_list = state_ == State::events;
    // Elements are counted one by one.
    if (!lost.empty() && loss != Loss::element && lost.back().end == begin && lost.back().loss == loss &&
        lost.back().is_in_list == is_in_list) {
        lost.back().end = end;
    } else {
        lost.push_back({begin, end, loss, is_in_list});
    }
    at_ = to;
}

// One unit; false when there is nothing more to do for now.
bool Scanner::step() {
    const bool is_behind = state_ == State::tail && !lost.empty() && lost.back().loss == Loss::trailing;
    if (!is_seeking_ && state_ != State::value && !is_behind) {
        const char* begin = at_;
        space(begin);
        take(begin);
    }
    if (at_ >= end_) return false;
    if (is_seeking_) return seek(at_);
    switch (state_) {
        case State::start:
            return start();
        case State::members:
            return member();
        case State::value:
            return member_value();
        case State::events:
            return element();
        case State::tail:
            lose(end_, Loss::trailing);
            return false;
    }
    return false;
}

bool Scanner::start() {
    constexpr std::string_view mark = "\xEF\xBB\xBF";
    const std::string_view rest{at_, static_cast<size_t>(end_ - at_)};
    if (offset(at_) == 0 && rest[0] == mark[0]) {
        if (rest.size() < mark.size() && !is_final_) return false;
        if (rest.starts_with(mark)) {
            take(at_ + mark.size());
            return true;
        }
    }
    if (rest[0] != '{' && rest[0] != '[') {
        ending = Ending::foreign;
        state_ = State::tail;
        return true;
    }
    is_bare = has_list = rest[0] == '[';
    lists += is_bare;
    state_ = is_bare ? State::events : State::members;
    take(at_ + 1);
    return true;
}

// The key of a member of the outermost object, or its end.
bool Scanner::member() {
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
    std::string_view name;
    Step step = *at == '"' ? text(at, &name) : Step::bad;
    if (step == Step::done) {
        space(at);
        step = *at == ':' ? Step::done : out_or_bad(at);
    }
    if (step == Step::done) {
        ++at;
        space(at);
        if (is_out(at)) step = Step::more;
    }
    if (step == Step::more && static_cast<size_t>(end_ - at_) <= kMostUnit) return false;
    if (step != Step::done) {
        is_seeking_ = true;
        return seek(at_);
    }
    missing_member_commas += !is_fresh_ && !had_comma_;
    if (*at == '[' && name == kList) return enter_list(at);
    member_begin_ = offset(at_);
    member_ = {offset(name.data()), offset(name.data() + name.size()), offset(at), offset(at)};
    nest_.clear();
    is_in_text_ = false;
    state_ = State::value;
    return true;
}

bool Scanner::enter_list(const char* at) {
    take(at + 1);
    state_ = State::events;
    has_list = is_fresh_ = true;
    ++lists;
    is_seeking_ = had_comma_ = false;
    return true;
}

// The value of a member: only its brackets and texts are looked at. It is kept until it is whole, as what comes behind a
// broken one lies within it; but what is longer than others are is not.
bool Scanner::member_value() {
    const char* at = buffer_.data() + (member_.end - base_);
    Step step = Step::more;
    while (at < end_) {
        if (is_in_text_) {
            at = std::min(text_stop(at), end_);
            if (at == end_ || (*at == '\\' && at + 1 == end_)) break;
            is_in_text_ = *at != '"';
            at += *at == '\\' ? 2 : 1;
            if (is_in_text_ || !nest_.empty()) continue;
            step = Step::done;
            break;
        }
        if (!nest_.empty()) at = std::min(bracket_stop(at), end_);
        if (at == end_) break;
        const bool opens = *at == '{' || *at == '[';
        if (*at == '"') {
            is_in_text_ = true;
        } else if (opens) {
            if (nest_.size() == kMostNesting) {
                step = Step::bad;
                break;
            }
            nest_.push_back(static_cast<char>(*at + 2));  // ] and } are two behind [ and {
        } else if (nest_.empty()) {
            const char* const word = at;
            step = skip(at);
            if (step == Step::more) at = word;
            break;
        } else if (*at != '\0') {
            if (nest_.back() != *at) {
                step = Step::bad;
                break;
            }
            nest_.pop_back();
        }
        ++at;
        if (nest_.empty() && !is_in_text_) {
            step = Step::done;
            break;
        }
    }
    member_.end = offset(at);
    const bool is_long = member_.end - member_begin_ > kMostKept;
    if (is_long) take(at);
    if (step == Step::more && !is_final_) return false;
    state_ = State::members;
    if (step == Step::done) {
        take(at);
        members.push_back(member_);
        is_fresh_ = had_comma_ = false;
        return true;
    }
    is_seeking_ = true;
    is_cut_ = step == Step::more;
    if (is_long) lose_member(is_cut_ ? Loss::cut : Loss::outside);
    return is_cut_ && is_long ? false : seek(at_);
}

// What was read of a member is lost, as its value cannot be read.
void Scanner::lose_member(Loss loss) {
    decoded -= offset(at_) - member_begin_;
    lost.push_back({member_begin_, offset(at_), loss, false});
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
        has_trailing_comma |= had_comma_;
        state_ = is_bare ? State::tail : State::members;
        is_fresh_ = had_comma_ = false;
        take(at_ + 1);
        return true;
    }
    const char* at = at_;
    const bool is_event = *at == '{';
    const Step step = is_event ? event(at) : skip(at);
    if (step == Step::more && (is_final_ || static_cast<size_t>(end_ - at_) <= kMostUnit)) return false;
    if (step != Step::done) {
        is_seeking_ = true;
        return seek(at_ + 1);
    }
    missing_commas += !is_fresh_ && !had_comma_;
    is_fresh_ = had_comma_ = false;
    if (is_event) {
        keep(at_, at);
        take(at);
    } else {
        lose(at, Loss::element);
    }
    return true;
}

// Goes on at the next event that is one for sure: it has a phase, and what follows it is a comma or the end of the list.
// Outside of the list at the list, too.
bool Scanner::seek(const char* from) {
    const bool is_in_list = state_ == State::events;
    const Loss loss = is_in_list ? Loss::broken : Loss::outside;
    const std::string_view all{from, static_cast<size_t>(end_ - from)};
    size_t list = is_in_list ? std::string_view::npos : all.find(kQuotedList);
    for (size_t place = 0;; ++place) {
        size_t brace = is_in_list || !has_list ? all.find('{', place) : std::string_view::npos;
        if (effort_ > kSpareEffort + kEffortRatio * static_cast<uint64_t>(size)) brace = std::string_view::npos;
        place = std::min(list, brace);
        if (place == std::string_view::npos) break;
        const char* const begin = from + place;
        const char* at = begin;
        Step step = Step::done;
        if (place == list) {
            at += kQuotedList.size();
            space(at);
            if (*at == ':') ++at;
            space(at);
            if (is_out(at)) step = is_final_ ? Step::bad : Step::more;
            if (step == Step::done && *at == '[') {
                lose(begin, loss);
                is_cut_ = false;
                return enter_list(at);
            }
            if (step == Step::done) step = Step::bad;
            if (step == Step::bad) list = all.find(kQuotedList, list + 1);
        } else {
            step = event(at);
            effort_ += static_cast<uint64_t>(at - begin);
            if (step == Step::done) {
                const char* behind = at;
                space(behind);
                const bool is_next = is_out(behind) ? is_final_ : *behind == ',' || *behind == ']';
                if (!is_next) step = is_out(behind) ? Step::more : Step::bad;
                if ((fresh_.flags & 0xFF) == 0) step = Step::bad;
            }
            if (step == Step::done) {
                lose(begin, loss);
                state_ = State::events;
                has_list = true;
                is_seeking_ = is_cut_ = is_fresh_ = had_comma_ = false;
                keep(begin, at);
                take(at);
                return true;
            }
        }
        if (step == Step::more && !is_final_) {
            lose(begin, loss);
            return false;
        }
    }
    // The begin of the list's name may be all that is there.
    const size_t kept = is_final_ || is_in_list ? 0 : std::min(kQuotedList.size() - 1, static_cast<size_t>(end_ - at_));
    lose(end_ - kept, is_cut_ ? Loss::cut : loss);
    return false;
}

}  // namespace lanescope::trace_events
