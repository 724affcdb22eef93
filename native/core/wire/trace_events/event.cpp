// Reads one event: its keys, and the values of those that are wanted.
#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <string>

#include "core/wire/trace_events/characters.hpp"
#include "core/wire/trace_events/numbers.hpp"
#include "core/wire/trace_events/scanner.hpp"

namespace lanescope::trace_events {

namespace {

constexpr std::string_view content_of(std::string_view value) { return value.substr(1, value.size() - 2); }

// More digits may overflow.
constexpr ptrdiff_t kFewDigits = 18, kFewDigitsOfTime = 16;
constexpr double kRealTens[] = {1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};

// An integer that ends before any other part of a number; null if it is another value or may not fit.
const char* small_integer(const char* at, int64_t* out) {
    const bool is_negative = *at == '-';
    const char* const begin = at + is_negative;
    uint64_t value = 0;
    const char* const end = digits(begin, &value);
    if (end == begin || end - begin > kFewDigits || *end == '.' || (*end | 0x20) == 'e' || *end == '\0') return nullptr;
    *out = is_negative ? -static_cast<int64_t>(value) : static_cast<int64_t>(value);
    return end;
}

// A number of few digits without an exponent: its digits and the power of ten are exact, so their ratio is the nearest.
const char* small_real(const char* at, double* out) {
    constexpr ptrdiff_t most = 15;
    const bool is_negative = *at == '-';
    const char* const begin = at + is_negative;
    uint64_t value = 0;
    const char* end = digits(begin, &value);
    ptrdiff_t behind = 0;
    if (end == begin || end - begin > most) return nullptr;
    if (*end == '.') {
        const char* const point = end;
        end = digits(point + 1, &value);
        behind = end - point - 1;
        if (behind == 0 || end - begin - 1 > most) return nullptr;
    }
    if ((*end | 0x20) == 'e' || *end == '\0') return nullptr;
    const double magnitude = static_cast<double>(value) / kRealTens[behind];
    *out = is_negative ? -magnitude : magnitude;
    return end;
}

// What our own writer says of an unusual event comes first in its arguments, also where another program wrote them anew.
bool is_fact(std::string_view arguments) {
    const size_t name = arguments.find_first_not_of(" \t\r\n", 1);
    if (name == std::string_view::npos) return false;
    arguments.remove_prefix(name);
    return arguments.starts_with("\"flags\"") || arguments.starts_with("\"quality\"") ||
           arguments.starts_with("\"last_known_ts\"");
}

}  // namespace

Scanner::Step Scanner::event(const char*& at) {
    const char* const begin = at;
    fresh_ = {};
    seen_ = 0;
    clear_found();
    ++at;
    int32_t key = Keys::kNone;
    Step step;
    while ((step = next_value(at, member_keys_, key, &key)) == Step::done) {
        step = value_of(at, member_keys_[key]);
        if (step != Step::done) break;
    }
    const bool is_long = static_cast<size_t>((step == Step::closed ? at : end_) - begin) > kMostUnit;
    if (step == Step::closed) return is_long ? Step::bad : Step::done;
    return step == Step::more && is_long ? Step::bad : step;
}

Scanner::Step Scanner::value_of(const char*& at, const Key& key) {
    if (key.role == Role::other) return skip(at);
    const uint32_t bit = uint32_t{1} << static_cast<unsigned>(key.role);
    // Several keys are about a thread's clock, or about stacks.
    if ((seen_ & bit) != 0 && key.role != Role::thread_time && key.role != Role::stack) fresh_.flags |= kRepeatedKey;
    seen_ |= bit;
    const char* const begin = at;
    const auto value = [&] { return std::string_view(begin, static_cast<size_t>(at - begin)); };
    const auto set = [&](uint32_t flag, bool is_set) { fresh_.flags = is_set ? fresh_.flags | flag : fresh_.flags & ~flag; };
    Step step = Step::done;
    switch (key.role) {
        case Role::ph:
            fresh_.flags &= ~uint32_t{0xFF};
            if (*at == '"' && at[1] != '"' && at[1] != '\\' && at[2] == '"') {
                fresh_.flags |= static_cast<uint8_t>(at[1]);
                at += 3;
                return Step::done;
            }
            return skip(at);
        case Role::ts:
            return time(at, &fresh_.ts, kHasTime, kBadTime);
        case Role::dur:
            return time(at, &fresh_.dur, kHasDuration, kBadDuration);
        case Role::pid:
            return place_part(at, &fresh_.place.process, last_process_);
        case Role::tid:
            return place_part(at, &fresh_.place.thread, last_thread_);
        case Role::name:
            return name_or_category(at, names, names_course_, &fresh_.name);
        case Role::cat:
            return name_or_category(at, categories, categories_course_, &fresh_.category);
        case Role::args:
            return args(at);
        case Role::id:
            return id(at, &fresh_.id, 0);
        case Role::id2:
            return *at == '{' ? scoped_id(at) : skip(at);
        case Role::scope:
            step = skip(at);
            fresh_.id_scope = *begin == '"' && step == Step::done ? content_of(value()) : std::string_view();
            return step;
        case Role::bind_id:
            return id(at, &fresh_.bind_id, 0);
        case Role::bp:
            step = skip(at);
            set(kEnclosing, value() == "\"e\"");
            return step;
        case Role::s:
            step = skip(at);
            set(kProcessScope, value() == "\"p\"");
            set(kGlobalScope, value() == "\"g\"");
            return step;
        case Role::flow_in:
        case Role::flow_out:
            step = skip(at);
            set(key.role == Role::flow_in ? kFlowIn : kFlowOut, value() == "true" || value() == "1" || value() == "\"true\"");
            return step;
        case Role::thread_time:
            fresh_.flags |= kHasThreadTime;
            return skip(at);
        default:
            fresh_.flags |= kHasStack;
            return skip(at);
    }
}

Scanner::Step Scanner::time(const char*& at, int64_t* out, uint32_t has, uint32_t bad) {
    fresh_.flags &= ~(has | bad);
    *out = 0;
    const char* const begin = at;
    const bool is_negative = *at == '-';
    const int64_t most = has == kHasDuration || is_negative ? kMostDuration : kMostTime;
    // Nearly all: digits, and at most three behind a point.
    const char* p = at + is_negative;
    const char* const first = p;
    uint64_t number = 0;
    p = digits(p, &number);
    if (p != first && p - first <= kFewDigitsOfTime) {
        // Of the decimals there are none or three, mostly.
        ptrdiff_t decimals = 0;
        bool is_plain = true;
        if (*p == '.' && is_digit(p[1]) && is_digit(p[2]) && is_digit(p[3]) && !is_digit(p[4])) {
            number = number * 1000 + static_cast<uint64_t>((p[1] - '0') * 100 + (p[2] - '0') * 10 + (p[3] - '0'));
            decimals = 3;
            p += 4;
        } else if (*p == '.') {
            const char* const point = p;
            p = digits(point + 1, &number);
            decimals = p - point - 1;
            is_plain = decimals > 0 && decimals <= 3;
        }
        if (is_plain && (*p | 0x20) != 'e' && !is_out(p)) {
            number *= kTens[3 - decimals];
            if (number <= static_cast<uint64_t>(most)) {
                *out = is_negative ? -static_cast<int64_t>(number) : static_cast<int64_t>(number);
                fresh_.flags |= has;
                at = p;
                return Step::done;
            }
        }
    }
    if (const Step step = skip(at); step != Step::done) return step;
    std::string_view value(begin, static_cast<size_t>(at - begin));
    if (value == "null") return Step::done;
    if (*begin == '"') {
        value = content_of(value);
        if (has == kHasTime) fresh_.flags |= kTextTime;
    }
    const Nanoseconds found = nanoseconds(value);
    if (found.exactness == Exactness::unusable || found.value < -kMostDuration || (has == kHasDuration && found.value > kMostDuration)) {
        fresh_.flags |= bad;
        return Step::done;
    }
    *out = found.value;
    fresh_.flags |= has | (found.exactness == Exactness::rounded ? kRounded : 0u);
    return Step::done;
}

// A text as it stands; other values as their characters, and null as nothing. Often it is the one before once more.
Scanner::Step Scanner::place_part(const char*& at, int32_t* out, Last& last) {
    // What follows may be more of a number, but of nothing else: a text and a word have an end of their own.
    if (is_same(at, last.text, last.mask)) {
        const char* const end = at + last.size;
        if (!is_digit(*end) && *end != '.' && (*end | 0x20) != 'e' && !is_out(end)) {
            at = end;
            *out = last.code;
            return Step::done;
        }
    }
    const char* const begin = at;
    if (const Step step = skip(at); step != Step::done) return step;
    const std::string_view value(begin, static_cast<size_t>(at - begin));
    const bool is_text = *begin == '"';
    *out = *begin == 'n' ? -1 : texts.code(is_text ? content_of(value) : value) * 2 + is_text;
    last = Last(value, *out);
    return Step::done;
}

Scanner::Step Scanner::name_or_category(const char*& at, Interner& into, Course& course, int32_t* out) {
    if (course.last >= 0 && *at == '"') {
        const int32_t next = course.next[static_cast<size_t>(course.last)];
        if (next >= 0 && into.is_at(at + 1, next)) {
            const char* const end = at + 1 + into[static_cast<size_t>(next)].size();
            if (*end == '"' && !is_out(end)) {
                at = end + 1;
                *out = course.last = next;
                return Step::done;
            }
        }
    }
    const char* const begin = at;
    std::string_view value;
    const Step step = *at == '"' ? text(at, &value) : skip(at);
    if (step != Step::done) return step;
    if (*begin != '"') value = {begin, static_cast<size_t>(at - begin)};
    if (*begin == 'n') {
        *out = -1;
        return step;
    }
    *out = into.code(value);
    course.next.resize(into.size(), -1);
    // Only what stood in quotes is one text wherever it stands in quotes.
    if (*begin == '"' && course.last >= 0) course.next[static_cast<size_t>(course.last)] = *out;
    course.last = *out;
    return step;
}

Scanner::Step Scanner::id(const char*& at, Id* out, uint8_t scope) {
    const char* const begin = at;
    *out = {};
    int64_t number = 0;
    if (const char* const end = small_integer(at, &number); end != nullptr) {
        at = end;
        *out = {static_cast<uint64_t>(number), static_cast<uint8_t>(kNumberId | scope)};
        return Step::done;
    }
    const Step step = skip(at);
    if (step != Step::done || *begin == 'n') return step;
    std::string_view value(begin, static_cast<size_t>(at - begin));
    const bool is_text = *begin == '"';
    if (is_text) value = content_of(value);
    uint64_t read = 0;
    if (is_text ? hexadecimal(value, &read) : integer(value, &number)) {
        *out = {is_text ? read : static_cast<uint64_t>(number), static_cast<uint8_t>(kNumberId | scope)};
    } else {
        *out = {static_cast<uint64_t>(texts.code(value)), static_cast<uint8_t>(kTextId | scope)};
    }
    return step;
}

// {"local": id} or {"global": id}
Scanner::Step Scanner::scoped_id(const char*& at) {
    ++at;
    int32_t key = Keys::kNone;
    Step step;
    while ((step = next_value(at, id_keys_, key, &key)) == Step::done) {
        const bool is_scope = id_keys_[key].role == Role::wanted;
        step = is_scope ? id(at, &fresh_.id, static_cast<uint8_t>(id_keys_[key].column)) : skip(at);
        if (step != Step::done) return step;
    }
    return step == Step::closed ? Step::done : step;
}

Scanner::Step Scanner::args(const char*& at) {
    fresh_.args_begin = at;
    fresh_.flags &= ~(kTooDeep | kHasArguments);
    clear_found();
    bool is_deep = false;
    Step step = Step::done;
    if (*at == '{') {
        ++at;
        int32_t key = Keys::kNone;
        while ((step = next_value(at, arg_keys_, key, &key)) == Step::done) {
            const Key& known = arg_keys_[key];
            if (*at == '{' || *at == '[') {
                const char* inner = at;
                if (step = skip_nested(at, &is_deep); step != Step::done) return step;
                if (known.role == Role::wanted) step = wanted(inner, key, known.column);
            } else {
                step = known.role == Role::wanted ? wanted(at, key, known.column) : skip(at);
            }
            if (step != Step::done) return step;
        }
        if (step != Step::closed) return step;
    } else {
        step = skip(at, &is_deep);
        if (step != Step::done) return step;
    }
    fresh_.args_end = at;
    if (is_deep) fresh_.flags |= kTooDeep;
    if (*fresh_.args_begin != 'n') fresh_.flags |= kHasArguments;
    return Step::done;
}

// The last value of a column counts. One key that comes twice is a fault; several keys of one column are not, and where one
// of them says nothing the other one counts.
void Scanner::replace_found() {
    const Found& found = found_.back();
    for (Found& before : found_) {
        if (&before == &found) return;
        if (before.column != found.column) continue;
        if (before.key == found.key) fresh_.flags |= kRepeatedKey;
        if (before.key == found.key || found.is != Is::null) before = found;
        break;
    }
    found_.pop_back();
}

Scanner::Step Scanner::wanted(const char*& at, int32_t key, uint32_t column) {
    const ValueKind kind = values[column].kind;
    // Made where it stays: a copy of what was just written part by part waits for all of it.
    Found& found = found_.emplace_back(static_cast<uint16_t>(column), Is::sound, key);
    const char* const begin = at;
    const char* end = nullptr;
    if (kind == ValueKind::integer) end = small_integer(at, &found.value[0]);
    if (kind == ValueKind::number) {
        double number = 0;
        end = small_real(at, &number);
        found.value[0] = std::bit_cast<int64_t>(number);
    }
    if (end != nullptr) {
        at = end;
        found_one();
        return Step::done;
    }
    if (const Step step = skip(at); step != Step::done) {
        found_.pop_back();
        return step;
    }
    const bool is_text = *begin == '"';
    std::string_view value(begin, static_cast<size_t>(at - begin));
    if (value == "null") {
        found.is = Is::null;
        found_one();
        return Step::done;
    }
    if (is_text) value = content_of(value);
    double number = 0;
    bool is_odd = false;
    switch (kind) {
        case ValueKind::integer:
            is_odd = !integer(value, &found.value[0]);
            break;
        case ValueKind::number:
            is_odd = is_text || !real(value, &number);
            found.value[0] = std::bit_cast<int64_t>(number);
            break;
        case ValueKind::text:
            found.value[0] = texts.code(value);
            break;
        case ValueKind::triple:
            std::fill_n(found.value, 3, 1);
            is_odd = is_text || !triple(value, found.value);
            break;
        case ValueKind::boolean:
            is_odd = is_text || (value != "true" && value != "false");
            found.value[0] = value == "true";
            break;
    }
    if (is_odd) found.is = Is::odd;
    found_one();
    return Step::done;
}

// A list of one to three integers; those that are missing stay as they are.
bool Scanner::triple(std::string_view list, int64_t* out) const {
    if (list[0] != '[') return false;
    const char* at = list.data() + 1;
    for (size_t count = 0; count < 3; ++count) {
        space(at);
        at = small_integer(at, out + count);
        if (at == nullptr) return false;
        space(at);
        if (*at == ']') return true;
        ++at;  // the list is a sound one
    }
    return false;
}

// Values of a counter: members of its arguments that are numbers, or texts of them; they were stepped over before.
void Scanner::counters() {
    if (fresh_.args_begin == nullptr || *fresh_.args_begin != '{' || (fresh_.flags & kTooDeep) != 0) {
        fresh_.flags |= kBadSeries;
        return;
    }
    const char* at = fresh_.args_begin + 1;
    int32_t key = Keys::kNone;
    const char* before = at;
    while (next_value(at, arg_keys_, key, &key) == Step::done) {
        const char* const begin = at;
        skip(at);
        std::string_view value(begin, static_cast<size_t>(at - begin));
        if (*begin == '"') value = content_of(value);
        double number = 0;
        if (real(value, &number)) {
            while (*before != '"') ++before;
            std::string_view name;
            text(before, &name);
            series.event.push_back(static_cast<int64_t>(events.begin.size()));
            series.key.push_back(texts.code(name));
            series.value.push_back(number);
        } else {
            fresh_.flags |= kBadSeries;
            ++series.odd;
        }
        before = at;
    }
}

int32_t Scanner::place_of(const Place& place) {
    if (last_place_ >= 0 && places[static_cast<size_t>(last_place_)] == place) return last_place_;
    const auto slot_of = [&](const Place& of) {
        const auto key = static_cast<uint64_t>(static_cast<uint32_t>(of.process)) << 32 | static_cast<uint32_t>(of.thread);
        size_t slot = (key * 0x9E3779B97F4A7C15 >> 20) & (place_slots_.size() - 1);
        while (place_slots_[slot] >= 0 && places[static_cast<size_t>(place_slots_[slot])] != of) slot = (slot + 1) & (place_slots_.size() - 1);
        return slot;
    };
    if (2 * (places.size() + 1) > place_slots_.size()) {
        place_slots_.assign(std::max<size_t>(256, 2 * place_slots_.size()), -1);
        for (size_t i = 0; i < places.size(); ++i) place_slots_[slot_of(places[i])] = static_cast<int32_t>(i);
    }
    const size_t slot = slot_of(place);
    if (place_slots_[slot] < 0) {
        place_slots_[slot] = static_cast<int32_t>(places.size());
        places.push_back(place);
    }
    return last_place_ = place_slots_[slot];
}

// The id of an asynchronous event with a scope: a text, as the same id in another scope is another one.
Scanner::Id Scanner::scoped(const Id& id) {
    constexpr std::string_view asynchronous = "benSFTp";
    if (id.kind == 0 || asynchronous.find(static_cast<char>(fresh_.flags & 0xFF)) == asynchronous.npos) return id;
    std::string text;
    if ((id.kind & kNumberId) != 0) {
        char digits[16];
        const auto end = std::to_chars(digits, digits + sizeof digits, id.value, 16).ptr;
        text.append("0x").append(digits, end);
    } else {
        text = texts[id.value];
    }
    text.append("@").append(fresh_.id_scope);
    return {static_cast<uint64_t>(texts.code(text)), static_cast<uint8_t>((id.kind & ~kNumberId) | kTextId)};
}

// Puts the event that was read last into the columns.
void Scanner::keep(const char* begin, const char* end) {
    const auto number = static_cast<int64_t>(events.begin.size());
    if ((fresh_.flags & 0xFF) == 'C') counters();
    const auto add_id = [&](Ids& to, const Id& one, uint32_t bit) {
        if (one.kind == 0) return;
        fresh_.flags |= bit;
        to.event.push_back(number);
        to.value.push_back(one.value);
        to.kind.push_back(one.kind);
    };
    add_id(ids, fresh_.id_scope.empty() ? fresh_.id : scoped(fresh_.id), kHasId);
    add_id(bind_ids, fresh_.bind_id, kHasBindId);
    for (const Found& found : found_) {
        Values& column = values[found.column];
        if (found.is == Is::sound) {
            const size_t count = column.kind == ValueKind::triple ? 3 : 1;
            column.event.push_back(number);
            for (size_t i = 0; i < count; ++i) column.value.push_back(found.value[i]);
        } else if (found.is == Is::odd) {
            column.odd.push_back(number);
        }
    }
    const bool has_args = (fresh_.flags & kHasArguments) != 0;
    const std::string_view arguments(fresh_.args_begin, has_args ? static_cast<size_t>(fresh_.args_end - fresh_.args_begin) : 0);
    if (has_args && is_fact(arguments)) fresh_.flags |= kHasFacts;
    ++events.by_phase[fresh_.flags & 0xFF];
    events.add(offset(begin), static_cast<uint32_t>(end - begin), fresh_.flags, fresh_.ts, fresh_.dur, place_of(fresh_.place),
               fresh_.name, fresh_.category, has_args ? static_cast<uint32_t>(fresh_.args_begin - begin) : 0,
               static_cast<uint32_t>(arguments.size()));
}

}  // namespace lanescope::trace_events
