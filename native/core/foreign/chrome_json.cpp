#include "core/foreign/chrome_json.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "core/foreign/json_text.hpp"

namespace lanescope::foreign {
namespace {

constexpr size_t kKeptLevels = 1 << 16;  // brackets beyond are a fault
constexpr uint64_t kSpareEffort = 64 << 20;  // bytes of trials that any file may cost
constexpr uint64_t kEffortRatio = 4;

}  // namespace

void EventReader::space() {
    while (is_space(*at_)) ++at_;
}

void EventReader::lose(const char* begin, const char* end) { tally_.lost_bytes += end - begin; }

void EventReader::count(int64_t& found, int64_t& first, const char* place) {
    if (found++ == 0) first = offset(place);
}

size_t EventReader::feed(std::span<const char> window, bool is_last) {
    begin_ = at_ = window.data();
    end_ = begin_ + window.size();
    fed_ += window.size();
    while (at_ < end_ && step(is_last)) {
    }
    if (is_last) {
        if (at_ < end_) {  // a value that the file does not finish
            lose(at_, end_);
            tally_.is_cut = true;
            tally_.first_cut = offset(at_);
            at_ = end_;
        }
        if (entry_is_open_) {
            tally_.is_cut = true;
            tally_.first_cut = entry_begin_;
            entries_.push_back({entry_key_, entry_begin_, offset(end_)});
            entry_is_open_ = false;
        }
        if (state_ != State::done) tally_.is_unterminated = true;
        if (state_ == State::list && after_comma_) tally_.is_trailing_comma = true;
    }
    const auto done = static_cast<size_t>(at_ - begin_);
    file_offset_ += static_cast<int64_t>(done);
    return done;
}

Events EventReader::take() {
    Events taken = std::exchange(events_, {});
    const size_t count = taken.offset.size() + taken.offset.size() / 8;  // the next window will hold about as many
    events_.offset.reserve(count);
    events_.size.reserve(count);
    events_.flags.reserve(count);
    events_.ts.reserve(count);
    events_.dur.reserve(count);
    events_.lane.reserve(count);
    events_.name.reserve(count);
    events_.category.reserve(count);
    events_.args_begin.reserve(count);
    events_.args_size.reserve(count);
    return taken;
}

// One unit of the file; false if the window ends inside of it.
bool EventReader::step(bool is_last) {
    if (state_ == State::value) return step_value();
    if (state_ == State::resync) return step_resync(is_last);
    const char* before = at_;
    space();
    if (at_end()) return true;
    switch (state_) {
        case State::start:
            if (file_offset_ == 0 && at_ == begin_ && std::memcmp(at_, "\xEF\xBB\xBF", 3) == 0) {
                at_ += 3;
            } else if (*at_ == '[') {
                ++at_;
                tally_.has_events = true;
                state_ = State::list;
            } else if (*at_ == '{') {
                ++at_;
                is_object_ = true;
                state_ = State::key;
            } else {
                state_ = State::done;
            }
            return true;
        case State::key: {
            if (*at_ == '}') {
                ++at_;
                state_ = State::done;
                return true;
            }
            if (*at_ == ',') {
                ++at_;
                return true;
            }
            const char* key = at_;
            Result result = *at_ == '"' ? skip_string() : failed();
            const char* end = at_;
            if (result == Result::ok) {
                space();
                result = *at_ == ':' ? Result::ok : failed();
            }
            if (result == Result::incomplete) {
                at_ = key;
                return false;
            }
            if (result == Result::fault) {  // nothing tells what this object goes on with
                count(tally_.broken, tally_.first_broken, key);
                lose(key, key + 1);
                at_ = key + 1;
                state_ = State::resync;
                return true;
            }
            ++at_;
            entry_key_.assign(key + 1, end - 1);
            state_ = State::between;
            return true;
        }
        case State::between:
            if (*at_ == '[' && unescaped(entry_key_) == "traceEvents") {
                ++at_;
                tally_.has_events = true;
                needs_comma_ = after_comma_ = false;
                state_ = State::list;
            } else {
                entry_begin_ = offset(at_);
                entry_depth_ = 0;
                entry_in_string_ = entry_escaped_ = false;
                entry_is_open_ = true;
                state_ = State::value;
            }
            return true;
        case State::list: return step_list();
        default:
            if (!tally_.has_trailing) tally_.first_trailing = offset(before);
            tally_.has_trailing = true;
            lose(before, end_);
            at_ = end_;
            return true;
    }
}

// A value of the outermost object: only its brackets and texts are looked at, so that it may be larger than a window.
bool EventReader::step_value() {
    while (at_ < end_) {
        if (entry_in_string_) {
            if (entry_escaped_) {
                entry_escaped_ = false;
                ++at_;
                continue;
            }
            at_ = std::min(string_stop(at_), end_);
            if (at_end()) return true;
            if (*at_ == '\\') entry_escaped_ = true;
            if (*at_ == '"') entry_in_string_ = false;
            ++at_;
            if (entry_in_string_ || entry_depth_ != 0) continue;
        } else {
            const char c = *at_;
            if (c == '"') {
                entry_in_string_ = true;
                ++at_;
                continue;
            }
            if (entry_depth_ == 0 && (c == ',' || c == '}')) {
                // behind a number or a word
            } else {
                ++at_;
                if (c == '[' || c == '{') ++entry_depth_;
                if ((c == ']' || c == '}') && entry_depth_ != 0 && --entry_depth_ == 0) {
                    // the end of a list or an object
                } else {
                    continue;
                }
            }
        }
        entries_.push_back({entry_key_, entry_begin_, offset(at_)});
        entry_is_open_ = false;
        state_ = State::key;
        return true;
    }
    return true;
}

bool EventReader::step_list() {
    const char c = *at_;
    if (c == ',') {
        ++at_;
        after_comma_ = true;
        needs_comma_ = false;
        return true;
    }
    if (c == ']') {
        ++at_;
        if (after_comma_) tally_.is_trailing_comma = true;
        state_ = is_object_ ? State::key : State::done;
        return true;
    }
    const char* begin = at_;
    const bool had_comma = !needs_comma_;
    bool is_deep = false;
    const Result result = c == '{' ? read_event() : skip_value(&is_deep);
    if (result == Result::incomplete) {
        at_ = begin;
        return false;
    }
    if (result == Result::fault) {
        count(tally_.broken, tally_.first_broken, begin);
        effort_ += static_cast<uint64_t>(at_ - begin);
        lose(begin, begin + 1);
        at_ = begin + 1;
        state_ = State::resync;
        return true;
    }
    if (!had_comma) ++tally_.missing_commas;
    needs_comma_ = true;
    after_comma_ = false;
    if (c == '{') {
        keep();
    } else {
        count(tally_.not_events, tally_.first_not_event, begin);
        lose(begin, at_);
    }
    return true;
}

// Looks for the next event behind something that is not JSON: an object that can be read, and has a phase.
bool EventReader::step_resync(bool is_last) {
    const char* begin = at_;
    if (effort_ > kSpareEffort + kEffortRatio * fed_) {
        lose(begin, end_);
        at_ = end_;
        return true;
    }
    const auto* found = static_cast<const char*>(std::memchr(at_, '{', static_cast<size_t>(end_ - at_)));
    if (found == nullptr) {
        lose(begin, end_);
        at_ = end_;
        return true;
    }
    lose(begin, found);
    at_ = found;
    const Result result = read_event();
    const char* tried = at_;
    at_ = found;
    if (result == Result::incomplete && !is_last) return false;
    effort_ += static_cast<uint64_t>(tried - found);
    if (result == Result::ok && (flags_ & 0xFF) != 0) {
        at_ = tried;
        tally_.has_events = true;
        needs_comma_ = true;
        after_comma_ = false;
        state_ = State::list;
        keep();
        return true;
    }
    lose(found, found + 1);
    at_ = found + 1;
    return true;
}

EventReader::Result EventReader::skip_string() {
    ++at_;
    while (true) {
        at_ = string_stop(at_);
        if (at_ >= end_) {
            at_ = end_;
            return Result::incomplete;
        }
        if (*at_ == '"') {
            ++at_;
            return Result::ok;
        }
        at_ += *at_ == '\\' ? 2 : 1;  // a NUL inside of a text is a character like any other
    }
}

EventReader::Result EventReader::skip_number() {
    if (*at_ == '-') ++at_;
    if (*at_ == 'I') return skip_word();
    const char* digits = at_;
    while (is_digit(*at_)) ++at_;
    if (at_ == digits) return failed();
    if (*at_ == '.') {
        digits = ++at_;
        while (is_digit(*at_)) ++at_;
        if (at_ == digits) return failed();
    }
    if ((*at_ | 0x20) == 'e') {
        ++at_;
        if (*at_ == '+' || *at_ == '-') ++at_;
        digits = at_;
        while (is_digit(*at_)) ++at_;
        if (at_ == digits) return failed();
    }
    return at_ >= end_ ? Result::incomplete : Result::ok;
}

EventReader::Result EventReader::skip_word() {
    for (const std::string_view word : {"true", "false", "null", "NaN", "Infinity"}) {
        if (*at_ != word[0]) continue;
        const size_t there = std::min(word.size(), static_cast<size_t>(end_ - at_));
        if (std::memcmp(at_, word.data(), there) != 0) continue;
        if (there < word.size()) {
            at_ = end_;
            return Result::incomplete;
        }
        at_ += word.size();
        return Result::ok;
    }
    return failed();
}

// Steps over any value. Brackets nest without recursion: one bit a level.
EventReader::Result EventReader::skip_value(bool* is_deep) {
    std::array<uint64_t, 4> levels{};
    std::vector<bool> more;  // levels beyond those
    size_t depth = 0;
    const auto push = [&](bool is_object) {
        if (depth < 256) {
            const uint64_t bit = uint64_t{1} << (depth % 64);
            levels[depth / 64] = is_object ? levels[depth / 64] | bit : levels[depth / 64] & ~bit;
        } else {
            more.push_back(is_object);
        }
        ++depth;
    };
    const auto in_object = [&] {
        return depth <= 256 ? ((levels[(depth - 1) / 64] >> ((depth - 1) % 64)) & 1) != 0 : static_cast<bool>(more.back());
    };
    const auto pop = [&] {
        if (depth > 256) more.pop_back();
        --depth;
    };
    Result result = Result::ok;
    bool wants_key = false;
    while (true) {
        space();
        if (wants_key) {
            if (*at_ != '"') return failed();
            if ((result = skip_string()) != Result::ok) return result;
            space();
            if (*at_ != ':') return failed();
            ++at_;
            space();
        }
        const char c = *at_;
        bool is_closed = true;
        if (c == '"') {
            result = skip_string();
        } else if (c == '{' || c == '[') {
            ++at_;
            push(c == '{');
            if (depth > kMaxDepth) *is_deep = true;
            if (depth > kKeptLevels) return Result::fault;
            space();
            if (*at_ == (c == '{' ? '}' : ']')) {
                ++at_;
                pop();
            } else {
                is_closed = false;
            }
        } else if (is_digit(c) || c == '-') {
            result = skip_number();
        } else {
            result = skip_word();
        }
        if (result != Result::ok) return result;
        if (!is_closed) {
            wants_key = c == '{';
            continue;
        }
        while (true) {
            if (depth == 0) return Result::ok;
            space();
            if (*at_ == ',') {
                ++at_;
                wants_key = in_object();
                break;
            }
            if (*at_ != (in_object() ? '}' : ']')) return failed();
            ++at_;
            pop();
        }
    }
}

}  // namespace lanescope::foreign
