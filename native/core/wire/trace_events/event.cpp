// Reads one event: its keys, and the values of those that are wanted.
#include <algorithm>
#include <array>
#include <bit>

#include "core/wire/trace_events/characters.hpp"
#include "core/wire/trace_events/numbers.hpp"
#include "core/wire/trace_events/scanner.hpp"

namespace lanescope::trace_events {

namespace {

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

}  // namespace lanescope::trace_events
