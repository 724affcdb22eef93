#include "core/foreign/chrome_json.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <utility>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace lanescope::foreign {
namespace {

constexpr size_t kKeptLevels = 1 << 16;  // brackets beyond are a fault
constexpr uint64_t kSpareEffort = 64 << 20;  // bytes of trials that any file may cost
constexpr uint64_t kEffortRatio = 4;
constexpr uint64_t kMostNanoseconds = uint64_t{1} << 62;  // differences of two fit

bool is_space(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }
bool is_digit(char c) { return static_cast<unsigned char>(c - '0') < 10; }

uint64_t hash_of(std::string_view text) {
    uint64_t hash = 0x9E3779B97F4A7C15u ^ text.size();
    const char* at = text.data();
    size_t left = text.size();
    const auto mix = [&](uint64_t word) {
        hash = (hash ^ word) * 0xFF51AFD7ED558CCDu;
        hash ^= hash >> 32;
    };
    for (; left >= 8; at += 8, left -= 8) {
        uint64_t word;
        std::memcpy(&word, at, 8);
        mix(word);
    }
    if (left != 0) {
        uint64_t word = 0;
        std::memcpy(&word, at, left);
        mix(word);
    }
    return hash ^ hash >> 29;
}

// The first quote, backslash or NUL at or behind a place; there is one, as NULs follow every window.
const char* string_stop(const char* at) {
#ifdef __SSE2__
    const __m128i quote = _mm_set1_epi8('"'), backslash = _mm_set1_epi8('\\'), zero = _mm_setzero_si128();
    while (true) {
        const __m128i block = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
        const __m128i found =
            _mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(block, quote), _mm_cmpeq_epi8(block, backslash)), _mm_cmpeq_epi8(block, zero));
        const int mask = _mm_movemask_epi8(found);
        if (mask != 0) return at + __builtin_ctz(static_cast<unsigned>(mask));
        at += 16;
    }
#else
    while (*at != '"' && *at != '\\' && *at != '\0') ++at;
    return at;
#endif
}

// A hexadecimal number of at most 64 bits, with or without 0x before it.
bool hexadecimal(std::string_view text, uint64_t* out) {
    if (text.size() > 2 && text[0] == '0' && (text[1] | 0x20) == 'x') text.remove_prefix(2);
    const auto read = std::from_chars(text.data(), text.data() + text.size(), *out, 16);
    return !text.empty() && text[0] != '-' && read.ec == std::errc() && read.ptr == text.data() + text.size();
}

// What an escape of one character stands for; of \u only what is ASCII is of interest to keys.
std::string unescaped(std::string_view text) {
    std::string out;
    for (size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '\\' || i + 1 >= text.size()) {
            out += text[i];
            continue;
        }
        const char c = text[++i];
        uint64_t value = 0;
        if (c == 'u' && i + 4 < text.size() && hexadecimal(text.substr(i + 1, 4), &value) && value < 0x80) {
            out += static_cast<char>(value);
            i += 4;
        } else {
            out += '\\';
            out += c;
        }
    }
    return out;
}

}  // namespace

Interner::Interner() : table_(1024) {}

std::string_view Interner::text(size_t code) const {
    return std::string_view(arena_).substr(entries_[code].begin, entries_[code].size);
}

int32_t Interner::code(std::string_view text) {
    const uint64_t hash = hash_of(text);
    const size_t mask = table_.size() - 1;
    size_t at = hash & mask;
    for (; table_[at] != 0; at = (at + 1) & mask) {
        const Entry& entry = entries_[table_[at] - 1];
        if (entry.hash == hash && entry.size == text.size() &&
            std::memcmp(arena_.data() + entry.begin, text.data(), text.size()) == 0) {
            return static_cast<int32_t>(table_[at] - 1);
        }
    }
    entries_.push_back({hash, arena_.size(), text.size()});
    arena_.append(text);
    table_[at] = static_cast<uint32_t>(entries_.size());
    if (2 * entries_.size() > table_.size()) grow();
    return static_cast<int32_t>(entries_.size() - 1);
}

void Interner::grow() {
    table_.assign(2 * table_.size(), 0);
    const size_t mask = table_.size() - 1;
    for (size_t i = 0; i < entries_.size(); ++i) {
        size_t at = entries_[i].hash & mask;
        while (table_[at] != 0) at = (at + 1) & mask;
        table_[at] = static_cast<uint32_t>(i + 1);
    }
}

bool nanoseconds_of(std::string_view text, int64_t* out, bool* is_rounded) {
    size_t at = 0;
    const bool is_negative = at < text.size() && text[at] == '-';
    if (is_negative || (at < text.size() && text[at] == '+')) ++at;
    std::string digits;
    int64_t scale = 3;  // of the last digit, as a power of ten of nanoseconds
    bool has_digits = false, has_point = false;
    for (; at < text.size() && (is_digit(text[at]) || (text[at] == '.' && !has_point)); ++at) {
        if (text[at] == '.') {
            has_point = true;
            continue;
        }
        has_digits = true;
        if (has_point) --scale;
        if (text[at] != '0' || !digits.empty()) digits += text[at];
    }
    if (!has_digits) return false;
    if (at < text.size() && (text[at] | 0x20) == 'e') {
        ++at;
        if (at < text.size() && text[at] == '+') ++at;
        int64_t exponent = 0;
        const auto read = std::from_chars(text.data() + at, text.data() + text.size(), exponent);
        if (read.ec == std::errc::result_out_of_range) {
            exponent = text[at] == '-' ? -1'000'000'000 : 1'000'000'000;
        } else if (read.ec != std::errc()) {
            return false;
        }
        at = static_cast<size_t>(read.ptr - text.data());
        scale += std::clamp<int64_t>(exponent, -1'000'000'000, 1'000'000'000);
    }
    if (at != text.size()) return false;
    *out = 0;
    if (digits.empty()) return true;
    const auto count = static_cast<int64_t>(digits.size());
    if (count + scale > 19) return false;
    const int64_t kept = std::clamp<int64_t>(count + scale, 0, count);
    uint64_t value = 0;
    for (int64_t i = 0; i < kept; ++i) value = value * 10 + static_cast<uint64_t>(digits[static_cast<size_t>(i)] - '0');
    for (int64_t i = 0; i < scale; ++i) value *= 10;
    if (scale < 0) {
        const bool is_whole = std::all_of(digits.begin() + kept, digits.end(), [](char c) { return c == '0'; });
        if (!is_whole) *is_rounded = true;
        if (count + scale >= 0 && digits[static_cast<size_t>(kept)] >= '5') ++value;
    }
    if (value > kMostNanoseconds) return false;
    *out = is_negative ? -static_cast<int64_t>(value) : static_cast<int64_t>(value);
    return true;
}

void EventReader::space() {
    while (is_space(*at_)) ++at_;
}

void EventReader::lose(const char* begin, const char* end) {
    if (begin == end) return;
    if (tally_.first_lost < 0) tally_.first_lost = offset(begin);
    tally_.lost_bytes += end - begin;
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
            at_ = end_;
        }
        if (entry_is_open_) {
            tally_.is_cut = true;
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
                ++tally_.broken;
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
        ++tally_.broken;
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
        ++tally_.not_events;
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

EventReader::Result EventReader::read_event() {
    event_ = at_;
    flags_ = 0;
    ts_ = dur_ = 0;
    process_ = thread_ = name_ = category_ = -1;
    args_ = nullptr;
    id_ = bind_id_ = {};
    uint32_t seen = 0;
    ++at_;
    space();
    if (*at_ == '}') {
        ++at_;
        return Result::ok;
    }
    std::string plain;
    while (true) {
        if (*at_ != '"') return failed();
        const char* key = at_ + 1;
        Result result = skip_string();
        if (result != Result::ok) return result;
        std::string_view name(key, static_cast<size_t>(at_ - key) - 1);
        if (name.size() <= 64 && std::memchr(name.data(), '\\', name.size()) != nullptr) {
            plain = unescaped(name);
            name = plain;
        }
        space();
        if (*at_ != ':') return failed();
        ++at_;
        space();
        if (at_end()) return Result::incomplete;
        result = read_member(name, &seen);
        if (result != Result::ok) return result;
        space();
        if (*at_ == ',') {
            ++at_;
            space();
            continue;
        }
        if (*at_ != '}') return failed();
        ++at_;
        return Result::ok;
    }
}

EventReader::Result EventReader::read_member(std::string_view key, uint32_t* seen) {
    enum Key { none, ph, ts, dur, pid, tid, name, cat, args, id, id2, bp, s, bind_id, thread_time, flow_in, flow_out, stack };
    const auto one_of = [&](std::string_view word, Key found) { return key == word ? found : none; };
    Key which = none;
    switch (key.size()) {
        case 1: which = one_of("s", s); break;
        case 2:
            which = key[0] == 'p' ? one_of("ph", ph) : key[0] == 't' ? one_of("ts", ts) : key[0] == 'i' ? one_of("id", id) : one_of("bp", bp);
            if (which == none) which = one_of("sf", stack);
            break;
        case 3:
            which = key[0] == 'd'   ? one_of("dur", dur)
                    : key[0] == 'p' ? one_of("pid", pid)
                    : key[0] == 'c' ? one_of("cat", cat)
                    : key[0] == 'i' ? one_of("id2", id2)
                    : key[0] == 'e' ? one_of("esf", stack)
                    : key[1] == 'i' ? one_of("tid", tid)
                                    : one_of("tts", thread_time);
            break;
        case 4: which = key[0] == 'n' ? one_of("name", name) : key[0] == 'a' ? one_of("args", args) : one_of("tdur", thread_time); break;
        case 5: which = one_of("stack", stack); break;
        case 6: which = one_of("estack", stack); break;
        case 7: which = key[0] == 'b' ? one_of("bind_id", bind_id) : one_of("flow_in", flow_in); break;
        case 8: which = one_of("flow_out", flow_out); break;
        default: break;
    }
    bool is_deep = false;
    if (which == none) return skip_value(&is_deep);
    const uint32_t bit = uint32_t{1} << which;
    if ((*seen & bit) != 0 && which != thread_time && which != stack) flags_ |= kRepeatedKey;  // these are several keys
    *seen |= bit;
    switch (which) {
        case ph: {
            const char* begin = at_;
            flags_ &= ~uint32_t{0xFF};
            const Result result = skip_value(&is_deep);
            if (result == Result::ok && at_ - begin == 3 && *begin == '"') flags_ |= static_cast<uint8_t>(begin[1]);
            return result;
        }
        case ts: return read_time(&ts_, kHasTime, kBadTime);
        case dur: return read_time(&dur_, kHasDuration, kBadDuration);
        case pid: return read_text(&process_, &last_process_);
        case tid: return read_text(&thread_, &last_thread_);
        case name: return read_text(&name_, nullptr);
        case cat: return read_text(&category_, &last_category_);
        case id: return read_id(&id_, 0);
        case id2: return read_scoped_id();
        case bind_id: return read_id(&bind_id_, 0);
        case flow_in: return read_truth(kFlowIn);
        case flow_out: return read_truth(kFlowOut);
        case args: {
            args_ = at_;
            flags_ &= ~(kTooDeep | kHasArguments);
            const Result result = skip_value(&is_deep);
            args_size_ = static_cast<size_t>(at_ - args_);
            if (is_deep) flags_ |= kTooDeep;
            if (*args_ != 'n') flags_ |= kHasArguments;
            return result;
        }
        case thread_time: flags_ |= kHasThreadTime; return skip_value(&is_deep);
        case bp:
        case s: {
            const char* begin = at_;
            const Result result = skip_value(&is_deep);
            const std::string_view value(begin, static_cast<size_t>(at_ - begin));
            if (which == bp) {
                flags_ = value == "\"e\"" ? flags_ | kEnclosing : flags_ & ~kEnclosing;
            } else {
                flags_ &= ~(kProcessScope | kGlobalScope);
                if (value == "\"p\"") flags_ |= kProcessScope;
                if (value == "\"g\"") flags_ |= kGlobalScope;
            }
            return result;
        }
        default: flags_ |= kHasStack; return skip_value(&is_deep);
    }
}

// A text as it stands; other values as their characters, and null as nothing. Often it is the one before once more.
EventReader::Result EventReader::read_text(int32_t* code, Last* last) {
    const char* begin = at_;
    Result result = Result::ok;
    const bool is_text = *at_ == '"';
    bool is_deep = false;
    if (is_text) {
        result = skip_string();
    } else if (is_digit(*at_)) {
        result = skip_number();
    } else {
        result = skip_value(&is_deep);
    }
    if (result != Result::ok) return result;
    const std::string_view text(begin + (is_text ? 1 : 0), static_cast<size_t>(at_ - begin) - (is_text ? 2 : 0));
    if (*begin == 'n') {
        *code = -1;
        return result;
    }
    if (last == nullptr) {
        *code = texts_.code(text);
        return result;
    }
    if (text != last->text) {
        last->text.assign(text);
        last->code = texts_.code(text);
    }
    *code = last->code;
    return result;
}

EventReader::Result EventReader::read_time(int64_t* out, uint32_t has, uint32_t bad) {
    flags_ &= ~(has | bad);
    *out = 0;
    const char* begin = at_;
    // Nearly all: digits, and at most three behind a point.
    const char* at = at_ + (*at_ == '-' ? 1 : 0);
    const char* digits = at;
    uint64_t value = 0;
    while (is_digit(*at)) value = value * 10 + static_cast<uint64_t>(*at++ - '0');
    if (at != digits && at - digits <= 16) {
        int decimals = 0;
        bool is_plain = true;
        if (*at == '.') {
            ++at;
            for (; decimals < 3 && is_digit(*at); ++decimals) value = value * 10 + static_cast<uint64_t>(*at++ - '0');
            is_plain = decimals > 0;
        }
        static constexpr uint64_t kScale[] = {1000, 100, 10, 1};
        value *= kScale[decimals];
        if (is_plain && value <= kMostNanoseconds && !is_digit(*at) && (*at | 0x20) != 'e' && at < end_) {
            *out = *begin == '-' ? -static_cast<int64_t>(value) : static_cast<int64_t>(value);
            flags_ |= has;
            at_ = at;
            return Result::ok;
        }
    }
    const bool is_text = *at_ == '"';
    bool is_deep = false, is_rounded = false;
    const Result result = skip_value(&is_deep);
    if (result != Result::ok) return result;
    std::string_view text(begin, static_cast<size_t>(at_ - begin));
    if (text == "null") return result;
    if (is_text) {
        text = text.substr(1, text.size() - 2);
        if (has == kHasTime) flags_ |= kTextTime;
    }
    if (nanoseconds_of(text, out, &is_rounded)) {
        flags_ |= has | (is_rounded ? kRounded : 0u);
    } else {
        flags_ |= bad;
    }
    return result;
}

EventReader::Result EventReader::read_id(Id* out, uint8_t scope) {
    const char* begin = at_;
    bool is_deep = false;
    const Result result = skip_value(&is_deep);
    if (result != Result::ok) return result;
    std::string_view text(begin, static_cast<size_t>(at_ - begin));
    *out = {};
    if (*begin == 'n') return result;
    uint64_t value = 0;
    if (*begin == '"') {
        text = text.substr(1, text.size() - 2);
        if (hexadecimal(text, &value)) {
            *out = {value, static_cast<uint8_t>(kNumberId | scope)};
            return result;
        }
    } else {
        int64_t number = 0;
        const auto end = text.data() + text.size();
        if (const auto read = std::from_chars(text.data(), end, value); read.ec == std::errc() && read.ptr == end) {
            *out = {value, static_cast<uint8_t>(kNumberId | scope)};
            return result;
        }
        if (const auto read = std::from_chars(text.data(), end, number); read.ec == std::errc() && read.ptr == end) {
            *out = {static_cast<uint64_t>(number), static_cast<uint8_t>(kNumberId | scope)};
            return result;
        }
    }
    *out = {static_cast<uint64_t>(texts_.code(text)), static_cast<uint8_t>(kTextId | scope)};
    return result;
}

// {"local": id} or {"global": id}
EventReader::Result EventReader::read_scoped_id() {
    if (*at_ != '{') {
        bool is_deep = false;
        return skip_value(&is_deep);
    }
    ++at_;
    space();
    if (*at_ == '}') {
        ++at_;
        return Result::ok;
    }
    while (true) {
        if (*at_ != '"') return failed();
        const char* key = at_ + 1;
        Result result = skip_string();
        if (result != Result::ok) return result;
        const std::string_view name(key, static_cast<size_t>(at_ - key) - 1);
        space();
        if (*at_ != ':') return failed();
        ++at_;
        space();
        bool is_deep = false;
        if (name == "local" || name == "global") {
            result = read_id(&id_, name == "local" ? kLocalId : kGlobalId);
        } else {
            result = skip_value(&is_deep);
        }
        if (result != Result::ok) return result;
        space();
        if (*at_ == ',') {
            ++at_;
            space();
            continue;
        }
        if (*at_ != '}') return failed();
        ++at_;
        return Result::ok;
    }
}

EventReader::Result EventReader::read_truth(uint32_t bit) {
    const char* begin = at_;
    bool is_deep = false;
    const Result result = skip_value(&is_deep);
    const std::string_view value(begin, static_cast<size_t>(at_ - begin));
    const bool is_true = value == "true" || value == "1" || value == "\"true\"";
    flags_ = is_true ? flags_ | bit : flags_ & ~bit;
    return result;
}

// The values of a counter: members of its arguments that are numbers, or texts of them.
void EventReader::read_series(const char* begin, const char* end) {
    if (*begin != '{') return void(flags_ |= kBadSeries);
    const char* kept = at_;
    at_ = begin + 1;
    space();
    while (at_ < end && *at_ != '}') {
        const char* key = at_ + 1;
        skip_string();
        const std::string_view name(key, static_cast<size_t>(at_ - key) - 1);
        space();
        ++at_;
        space();
        const char* value = at_;
        bool is_deep = false;
        skip_value(&is_deep);
        std::string_view text(value, static_cast<size_t>(at_ - value));
        if (text.size() > 1 && text[0] == '"') text = text.substr(1, text.size() - 2);
        double number = 0;
        const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
        // Neither NaN nor infinities: they are no samples.
        if (read.ec == std::errc() && read.ptr == text.data() + text.size() && number - number == 0) {
            events_.series_row.push_back(rows_);
            events_.series_name.push_back(texts_.code(name));
            events_.series_value.push_back(number);
        } else {
            flags_ |= kBadSeries;
        }
        space();
        if (*at_ == ',') ++at_;
        space();
    }
    at_ = kept;
}

void EventReader::keep() {
    const char* end = at_;
    if ((flags_ & 0xFF) == 'C') {
        if (args_ != nullptr && (flags_ & kTooDeep) == 0) {
            read_series(args_, args_ + args_size_);
        } else {
            flags_ |= kBadSeries;
        }
    }
    const auto add_id = [&](Ids& ids, const Id& id, uint32_t bit) {
        if (id.kind == 0) return;
        flags_ |= bit;
        ids.row.push_back(rows_);
        ids.value.push_back(id.value);
        ids.kind.push_back(id.kind);
    };
    add_id(events_.ids, id_, kHasId);
    add_id(events_.bind_ids, bind_id_, kHasBindId);
    const bool has_args = args_ != nullptr && (flags_ & (kHasArguments | kTooDeep)) == kHasArguments;
    events_.offset.push_back(offset(event_));
    events_.size.push_back(static_cast<uint32_t>(end - event_));
    events_.flags.push_back(flags_);
    events_.ts.push_back(ts_);
    events_.dur.push_back(dur_);
    events_.lane.push_back(lane(process_, thread_));
    events_.name.push_back(name_);
    events_.category.push_back(category_);
    events_.args_begin.push_back(has_args ? static_cast<uint32_t>(args_ - event_) : 0);
    events_.args_size.push_back(has_args ? static_cast<uint32_t>(args_size_) : 0);
    ++rows_;
}

int32_t EventReader::lane(int32_t process, int32_t thread) {
    const uint64_t key = static_cast<uint64_t>(static_cast<uint32_t>(process)) << 32 | static_cast<uint32_t>(thread);
    if (key == last_lane_ && !lanes_.empty()) return last_lane_code_;
    if (2 * (lanes_.size() + 1) > lane_table_.size()) {
        lane_table_.assign(std::max<size_t>(256, 2 * lane_table_.size()), 0);
        for (size_t i = 0; i < lanes_.size(); ++i) {
            const uint64_t other = static_cast<uint64_t>(static_cast<uint32_t>(lanes_[i].first)) << 32 | static_cast<uint32_t>(lanes_[i].second);
            size_t at = (other * 0x9E3779B97F4A7C15u >> 20) & (lane_table_.size() - 1);
            while (lane_table_[at] != 0) at = (at + 1) & (lane_table_.size() - 1);
            lane_table_[at] = static_cast<uint32_t>(i + 1);
        }
    }
    size_t at = (key * 0x9E3779B97F4A7C15u >> 20) & (lane_table_.size() - 1);
    for (; lane_table_[at] != 0; at = (at + 1) & (lane_table_.size() - 1)) {
        if (lanes_[lane_table_[at] - 1] == std::pair(process, thread)) break;
    }
    if (lane_table_[at] == 0) {
        lanes_.emplace_back(process, thread);
        lane_table_[at] = static_cast<uint32_t>(lanes_.size());
    }
    last_lane_ = key;
    last_lane_code_ = static_cast<int32_t>(lane_table_[at] - 1);
    return last_lane_code_;
}

}  // namespace lanescope::foreign
