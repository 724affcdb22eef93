#include "core/wire/trace_events/scanner.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "core/wire/trace_events/numbers.hpp"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace lanescope::trace_events {

namespace {

constexpr size_t kPadding = 64;  // zeros behind the text, which reads of 16 bytes may touch
constexpr uint32_t kOdd = uint32_t{1} << 31;
constexpr std::string_view kList = "traceEvents";

#ifdef __SSE2__
// The next '"' or '\\'.
inline const char* quote_or_escape(const char* at, const char* end) {
    const __m128i quote = _mm_set1_epi8('"'), escape = _mm_set1_epi8('\\');
    for (; at < end; at += 16) {
        const __m128i block = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
        const int found = _mm_movemask_epi8(_mm_or_si128(_mm_cmpeq_epi8(block, quote), _mm_cmpeq_epi8(block, escape)));
        if (found != 0) return std::min(at + std::countr_zero(static_cast<unsigned>(found)), end);
    }
    return end;
}

// The next '"' or bracket of either kind: with bit 5 set, square brackets are braces.
inline const char* quote_or_bracket(const char* at, const char* end) {
    const __m128i quote = _mm_set1_epi8('"'), open = _mm_set1_epi8('{'), close = _mm_set1_epi8('}'), bit = _mm_set1_epi8(0x20);
    for (; at < end; at += 16) {
        const __m128i block = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
        const __m128i folded = _mm_or_si128(block, bit);
        const __m128i bracket = _mm_or_si128(_mm_cmpeq_epi8(folded, open), _mm_cmpeq_epi8(folded, close));
        const int found = _mm_movemask_epi8(_mm_or_si128(_mm_cmpeq_epi8(block, quote), bracket));
        if (found != 0) return std::min(at + std::countr_zero(static_cast<unsigned>(found)), end);
    }
    return end;
}
#else
inline const char* quote_or_escape(const char* at, const char* end) {
    while (at < end && *at != '"' && *at != '\\') ++at;
    return at;
}

inline const char* quote_or_bracket(const char* at, const char* end) {
    while (at < end && *at != '"' && (*at | 0x20) != '{' && (*at | 0x20) != '}') ++at;
    return at;
}
#endif

inline bool is_space(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

// Characters of numbers and of words such as `true` and `NaN`.
inline bool is_word(char c) {
    const char lower = static_cast<char>(c | 0x20);
    return (c >= '0' && c <= '9') || (lower >= 'a' && lower <= 'z') || c == '-' || c == '+' || c == '.';
}

inline bool is_number_begin(char c) { return c == '-' || (c >= '0' && c <= '9'); }

// By the ends of a key and its length: keys differ in these.
inline size_t slot_of(std::string_view key) {
    if (key.empty()) return 0;
    const auto at = [&](size_t i) { return static_cast<size_t>(static_cast<unsigned char>(key[i])); };
    return (key.size() * 37 + at(0) * 5 + at(key.size() / 2) * 131 + at(key.size() - 1) * 17) & 511;
}

bool is_digits(std::string_view text) {
    const std::string_view digits = text.starts_with('-') ? text.substr(1) : text;
    return !digits.empty() && std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

struct Scanner::Fresh {
    uint16_t bits = 0;
    uint16_t seen = 0;
    uint8_t phase = 0;
    bool has_phase = false;
    int32_t name = -1;
    int32_t category = -1;
    int64_t ts = 0;
    int64_t dur = 0;
    int64_t id = 0;
    Place place;
    const char* args_begin = nullptr;
    const char* args_end = nullptr;
};

Scanner::Keys::Keys(const std::vector<Wanted>& wanted) {
    slots.fill(-1);
    for (const Wanted& key : wanted) {
        const size_t slot = slot_of(key.key);
        keys.push_back({key.key, key.column, slots[slot]});
        slots[slot] = static_cast<int32_t>(keys.size() - 1);
    }
    following.assign(keys.size() + 1, -1);
}

int32_t Scanner::Keys::find(std::string_view key, int32_t previous) {
    int32_t& guess = following[static_cast<size_t>(previous + 1)];
    if (guess >= 0 && keys[static_cast<size_t>(guess)].text == key) return guess;
    for (int32_t i = slots[slot_of(key)]; i >= 0; i = keys[static_cast<size_t>(i)].next) {
        if (keys[static_cast<size_t>(i)].text == key) return guess = i;
    }
    return -1;
}

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

void Scanner::space(const char*& at) const {
    while (is_space(*at) && at < end_) ++at;
}

Scanner::Step Scanner::text(const char*& at, std::string_view* out) const {
    const char* const begin = ++at;
    for (;;) {
        at = quote_or_escape(at, end_);
        if (is_out(at)) return Step::more;
        if (*at == '"') break;
        at += 2;
        if (at > end_) {
            at = end_;
            return Step::more;
        }
    }
    *out = {begin, static_cast<size_t>(at - begin)};
    ++at;
    return Step::done;
}

Scanner::Step Scanner::skip(const char*& at) const {
    if (*at == '"') {
        std::string_view ignored;
        return text(at, &ignored);
    }
    if (*at == '{' || *at == '[') return skip_nested(at);
    const char* const begin = at;
    while (is_word(*at) && at < end_) ++at;
    return at == begin ? out_or_bad(at) : Step::done;
}

Scanner::Step Scanner::skip_nested(const char*& at) const {
    std::array<char, kMaxDepth> closing;
    size_t depth = 0;
    for (;;) {
        at = quote_or_bracket(at, end_);
        if (is_out(at)) return Step::more;
        if (*at == '"') {
            std::string_view ignored;
            if (text(at, &ignored) != Step::done) return Step::more;
            continue;
        }
        if (*at == '{' || *at == '[') {
            if (depth == kMaxDepth) return Step::bad;
            closing[depth++] = static_cast<char>(*at + 2);  // ] and } stand two behind [ and {
        } else if (closing[--depth] != *at) {
            return Step::bad;
        }
        ++at;
        if (depth == 0) return Step::done;
    }
}

// A key with its colon and the space behind it.
Scanner::Step Scanner::key(const char*& at, std::string_view* out) const {
    if (*at != '"') return out_or_bad(at);
    if (const Step step = text(at, out); step != Step::done) return step;
    space(at);
    if (*at != ':') return out_or_bad(at);
    ++at;
    space(at);
    return is_out(at) ? Step::more : Step::done;
}

Scanner::Step Scanner::event(const char*& at) {
    const char* const begin = at;
    if (*at != '{') {
        // Not an event, but a value all the same.
        return out_or_bad(at);
    }
    touched_.clear();
    Fresh fresh;
    Step step = Step::done;
    ++at;
    space(at);
    bool is_first = true;
    previous_member_ = -1;
    while (*at != '}') {
        if (!is_first) {
            if (*at != ',') {
                step = out_or_bad(at);
                break;
            }
            ++at;
            space(at);
        }
        is_first = false;
        std::string_view name;
        step = key(at, &name);
        if (step != Step::done) break;
        step = event_key(at, name, fresh);
        if (step != Step::done) break;
        space(at);
    }
    if (step == Step::done && is_out(at)) step = Step::more;
    if (step == Step::done) {
        ++at;
        if (static_cast<size_t>(at - begin) > kMostUnit) step = Step::bad;
    } else if (step == Step::more && static_cast<size_t>(end_ - begin) > kMostUnit) {
        step = Step::bad;
    }
    if (step != Step::done) {
        undo();
        return step;
    }
    if (fresh.phase == 'C' && fresh.args_begin != nullptr) counters(fresh.args_begin, fresh.args_end);
    keep(begin, at, fresh);
    return Step::done;
}

Scanner::Step Scanner::event_key(const char*& at, std::string_view name, Fresh& fresh) {
    enum Seen : uint16_t { ph = 1, ts = 2, dur = 4, cat = 8, pid = 16, tid = 32, label = 64, args_ = 128, id = 256 };
    const auto once = [&](Seen key) {
        if (fresh.seen & key) fresh.bits |= kRepeatedKey;
        fresh.seen |= key;
    };
    switch (name.size()) {
        case 2:
            if (name == "ph") {
                once(ph);
                if (*at != '"') return skip(at);
                std::string_view phase;
                const Step step = text(at, &phase);
                fresh.phase = phase.size() == 1 ? static_cast<uint8_t>(phase[0]) : 0;
                return step;
            }
            if (name == "ts") {
                once(ts);
                return time(at, fresh, &fresh.ts, kHasTs, kBadTs);
            }
            if (name == "id") {
                once(id);
                fresh.bits &= static_cast<uint16_t>(~(kHasId | kTextId));
                if (is_number_begin(*at)) {
                    const char* const begin = at;
                    if (integer(at, end_, &fresh.id)) {
                        fresh.bits |= kHasId;
                    } else {
                        fresh.id = texts.code({begin, static_cast<size_t>(at - begin)});
                        fresh.bits |= kHasId | kTextId;
                    }
                    return at == begin ? Step::bad : Step::done;
                }
                if (*at != '"') return skip(at);
                std::string_view found;
                const Step step = text(at, &found);
                if (step == Step::done) {
                    fresh.id = texts.code(found);
                    fresh.bits |= kHasId | kTextId;
                }
                return step;
            }
            break;
        case 3:
            if (name == "dur") {
                once(dur);
                return time(at, fresh, &fresh.dur, kHasDur, kBadDur);
            }
            if (name == "cat") {
                once(cat);
                if (*at != '"') return skip(at);
                std::string_view found;
                const Step step = text(at, &found);
                if (step == Step::done) fresh.category = categories.code(found);
                return step;
            }
            if (name == "pid") {
                once(pid);
                return place_part(at, &fresh.place.process, &fresh.place.process_kind);
            }
            if (name == "tid") {
                once(tid);
                return place_part(at, &fresh.place.thread, &fresh.place.thread_kind);
            }
            break;
        case 4:
            if (name == "name") {
                once(label);
                std::string_view found;
                const char* const begin = at;
                const Step step = *at == '"' ? text(at, &found) : skip(at);
                if (begin < at && *begin != '"') found = {begin, static_cast<size_t>(at - begin)};
                if (step == Step::done) fresh.name = names.code(found);
                return step;
            }
            if (name == "args") {
                once(args_);
                return args(at, fresh);
            }
            break;
    }
    const int32_t known = member_keys_.find(name, previous_member_);
    if (known < 0) {
        fresh.bits |= kOtherKeys;
        return skip(at);
    }
    previous_member_ = known;
    return wanted(at, member_keys_.keys[static_cast<size_t>(known)].column);
}

Scanner::Step Scanner::time(const char*& at, Fresh& fresh, int64_t* out, uint16_t has, uint16_t bad) {
    fresh.bits &= static_cast<uint16_t>(~(has | bad));
    Nanoseconds found;
    if (is_number_begin(*at)) {
        const char* const begin = at;
        found = nanoseconds(at, end_);
        if (at == begin || (at == begin + 1 && *begin == '-')) return out_or_bad(at);
    } else if (*at == '"') {
        std::string_view content;
        if (const Step step = text(at, &content); step != Step::done) return step;
        const char* inner = content.data();
        const char* const stop = inner + content.size();
        if (!content.empty() && is_number_begin(*inner)) found = nanoseconds(inner, stop);
        if (inner != stop) found = {};
        fresh.bits |= kTextTime;
    } else {
        const char* const begin = at;
        if (const Step step = skip(at); step != Step::done) return step;
        if (std::string_view(begin, static_cast<size_t>(at - begin)) == "null") return Step::done;
    }
    if (found.exactness == Exactness::unusable) {
        fresh.bits |= bad;
        return Step::done;
    }
    if (found.exactness == Exactness::rounded) fresh.bits |= kRounded;
    fresh.bits |= has;
    *out = found.value;
    return Step::done;
}

Scanner::Step Scanner::place_part(const char*& at, int64_t* out, PlaceKind* kind) {
    *kind = PlaceKind::none;
    const char* const begin = at;
    if (is_number_begin(*at)) {
        if (integer(at, end_, out)) {
            *kind = PlaceKind::integer;
            return Step::done;
        }
        if (at == begin || (at == begin + 1 && *begin == '-')) return out_or_bad(at);
    } else {
        std::string_view found;
        const Step step = *at == '"' ? text(at, &found) : skip(at);
        if (step != Step::done) return step;
        if (*begin == '"') {
            *out = texts.code(found);
            *kind = PlaceKind::text;
            return Step::done;
        }
        if (std::string_view(begin, static_cast<size_t>(at - begin)) == "null") return Step::done;
    }
    *out = texts.code({begin, static_cast<size_t>(at - begin)});
    *kind = PlaceKind::text;
    return Step::done;
}

Scanner::Step Scanner::args(const char*& at, Fresh& fresh) {
    const char* const begin = at;
    fresh.bits &= static_cast<uint16_t>(~kHasArgs);
    if (*at != '{') return skip(at);
    ++at;
    space(at);
    int32_t previous = -1;
    bool is_first = true;
    while (*at != '}') {
        if (!is_first) {
            if (*at != ',') return out_or_bad(at);
            ++at;
            space(at);
        }
        is_first = false;
        std::string_view name;
        if (const Step step = key(at, &name); step != Step::done) return step;
        const int32_t known = arg_keys_.find(name, previous);
        Step step = Step::done;
        if (known < 0) {
            step = skip(at);
        } else {
            previous = known;
            step = wanted(at, arg_keys_.keys[static_cast<size_t>(known)].column);
        }
        if (step != Step::done) return step;
        space(at);
    }
    if (is_out(at)) return Step::more;
    ++at;
    fresh.bits |= kHasArgs;
    fresh.args_begin = begin;
    fresh.args_end = at;
    return Step::done;
}

Scanner::Step Scanner::wanted(const char*& at, uint32_t column) {
    Values& found = values[column];
    const char* const begin = at;
    const auto number = static_cast<int64_t>(events.begin.size());
    int64_t value = 0;
    bool is_good = false;
    if (found.kind == ValueKind::triple && *at == '[') return triple(at, column);
    if (found.kind == ValueKind::integer && is_number_begin(*at)) {
        is_good = integer(at, end_, &value);
        if (at == begin || (at == begin + 1 && *begin == '-')) return out_or_bad(at);
    } else {
        std::string_view content;
        const bool is_text = *at == '"';
        const Step step = is_text ? text(at, &content) : skip(at);
        if (step != Step::done) return step;
        if (!is_text) content = {begin, static_cast<size_t>(at - begin)};
        if (!is_text && content == "null") return Step::done;
        switch (found.kind) {
            case ValueKind::integer:
                if (is_text && is_digits(content)) {
                    const char* inner = content.data();
                    is_good = integer(inner, inner + content.size(), &value);
                }
                break;
            case ValueKind::number: {
                double parsed = 0;
                is_good = !is_text && real(content.data(), content.data() + content.size(), &parsed);
                value = std::bit_cast<int64_t>(parsed);
                break;
            }
            case ValueKind::text:
                is_good = true;
                value = texts.code(content);
                break;
            case ValueKind::boolean:
                is_good = !is_text && (content == "true" || content == "false");
                value = content == "true";
                break;
            case ValueKind::triple:
                break;
        }
    }
    if (!is_good) {
        found.odd.push_back(number);
        touched_.push_back(column | kOdd);
    } else if (!found.event.empty() && found.event.back() == number) {
        found.value.back() = value;
    } else {
        found.event.push_back(number);
        found.value.push_back(value);
        touched_.push_back(column);
    }
    return Step::done;
}

// A list of one to three integers; those that are missing are 1.
Scanner::Step Scanner::triple(const char*& at, uint32_t column) {
    Values& found = values[column];
    const auto number = static_cast<int64_t>(events.begin.size());
    const char* const begin = at;
    int64_t parts[3] = {1, 1, 1};
    size_t count = 0;
    bool is_good = true;
    ++at;
    space(at);
    while (is_good && *at != ']') {
        if (count != 0) {
            is_good = *at == ',';
            if (!is_good) break;
            ++at;
            space(at);
        }
        is_good = count < 3 && is_number_begin(*at) && integer(at, end_, &parts[count]);
        ++count;
        space(at);
    }
    if (is_out(at)) return Step::more;
    if (!is_good || count == 0) {
        at = begin;
        if (const Step step = skip_nested(at); step != Step::done) return step;
        found.odd.push_back(number);
        touched_.push_back(column | kOdd);
        return Step::done;
    }
    ++at;
    if (!found.event.empty() && found.event.back() == number) {
        std::copy(parts, parts + 3, found.value.end() - 3);
        return Step::done;
    }
    found.event.push_back(number);
    found.value.insert(found.value.end(), parts, parts + 3);
    touched_.push_back(column);
    return Step::done;
}

// Values of a counter; its arguments were stepped over before, so they are sound.
Scanner::Step Scanner::counters(const char* at, const char* end) {
    const auto number = static_cast<int64_t>(events.begin.size());
    ++at;
    space(at);
    while (at < end && *at == '"') {
        std::string_view name;
        if (const Step step = key(at, &name); step != Step::done) return step;
        const char* const begin = at;
        if (const Step step = skip(at); step != Step::done) return step;
        double value = 0;
        if (real(begin, at, &value)) {
            series.event.push_back(number);
            series.key.push_back(texts.code(name));
            series.value.push_back(value);
        } else {
            ++series.odd;
        }
        space(at);
        if (*at == ',') ++at;
        space(at);
    }
    return Step::done;
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
