// Steps over values of JSON, and from one value of an object to the next.
#include <algorithm>
#include <array>

#include "core/wire/trace_events/characters.hpp"
#include "core/wire/trace_events/numbers.hpp"
#include "core/wire/trace_events/scanner.hpp"

namespace lanescope::trace_events {

namespace {

constexpr size_t kKeptLevels = 1 << 16;  // brackets beyond are a fault

// A key with its escapes resolved, as far as they are of ASCII: others are not looked for.
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

// By the ends of a key and its length: keys differ in these.
size_t Scanner::Keys::slot_of(std::string_view key) {
    if (key.empty()) return 0;
    const auto at = [&](size_t i) { return static_cast<size_t>(static_cast<unsigned char>(key[i])); };
    return (key.size() * 37 + at(0) * 5 + at(key.size() / 2) * 131 + at(key.size() - 1) * 17) & 511;
}

void Scanner::Keys::add(std::string_view key, Role role, uint32_t column) {
    int32_t& slot = slots_[slot_of(key)];
    keys_.push_back({std::string(key), role, column});
    next_.push_back(slot);
    slot = static_cast<int32_t>(keys_.size() - 1);
    following_.emplace_back();
}

int32_t Scanner::Keys::find(std::string_view key) const {
    int32_t found = slots_[slot_of(key)];
    while (found >= 0 && (*this)[found].text != key) found = next_[static_cast<size_t>(found)];
    return found;
}

int32_t Scanner::Keys::find_or_add(std::string_view key) {
    int32_t found = find(key);
    if (found < 0 && key.find('\\') != std::string_view::npos) found = find(unescaped(key));
    if (found >= 0) return found;
    if (keys_.empty() || (keys_.size() < kMostKeys && key.size() < Following::kMost)) {
        add(key, Role::other);
        return static_cast<int32_t>(keys_.size() - 1);
    }
    return 0;
}

void Scanner::Keys::learn(int32_t previous, int32_t key, std::string_view separator) {
    if (separator.size() > Following::kMost) return;
    auto& seen = following_[static_cast<size_t>(previous + 1)];
    seen.last() ^= 1;
    Following& one = seen.of[seen.last()];
    one.key = key;
    one.size = static_cast<uint32_t>(separator.size());
    one.mask = separator.empty() ? kNever : mask_of(separator.size());
    std::copy(separator.begin(), separator.end(), one.separator);
}

// What was not seen behind `previous` before.
Scanner::Step Scanner::other_value(const char*& at, Keys& keys, int32_t previous, int32_t* key) const {
    const char* const begin = at;
    space(at);
    if (*at == '}') {
        ++at;
        *key = Keys::kClosed;
        keys.learn(previous, Keys::kClosed, {begin, at});
        return Step::closed;
    }
    if (previous != Keys::kNone) {
        if (*at != ',') return out_or_bad(at);
        ++at;
        space(at);
    }
    if (*at != '"') return out_or_bad(at);
    std::string_view name;
    if (const Step step = text(at, &name); step != Step::done) return step;
    space(at);
    if (*at != ':') return out_or_bad(at);
    ++at;
    space(at);
    if (is_out(at)) return Step::more;
    *key = keys.find_or_add(name);
    keys.learn(previous, *key, {begin, at});
    return Step::done;
}

Scanner::Step Scanner::text(const char*& at, std::string_view* out) const {
    const char* const begin = ++at;
    for (;;) {
        at = text_stop(at);
        if (is_out(at)) {
            at = end_;
            return Step::more;
        }
        if (*at == '"') break;
        at += *at == '\\' ? 2 : 1;  // a NUL inside of a text is a character like any other
    }
    *out = {begin, static_cast<size_t>(at - begin)};
    ++at;
    return Step::done;
}

Scanner::Step Scanner::skip_number(const char*& at) const {
    uint64_t ignored = 0;
    if (*at == '-') ++at;
    if (*at == 'I') return skip_word(at);
    const char* begin = at;
    at = digits(at, &ignored);
    if (at == begin) return out_or_bad(at);
    if (*at == '.') {
        begin = ++at;
        at = digits(at, &ignored);
        if (at == begin) return out_or_bad(at);
    }
    if ((*at | 0x20) == 'e') {
        ++at;
        if (*at == '+' || *at == '-') ++at;
        begin = at;
        at = digits(at, &ignored);
        if (at == begin) return out_or_bad(at);
    }
    return is_out(at) ? Step::more : Step::done;
}

Scanner::Step Scanner::skip_word(const char*& at) const {
    for (const std::string_view word : {"true", "false", "null", "NaN", "Infinity"}) {
        if (*at != word[0]) continue;
        const size_t there = std::min(word.size(), static_cast<size_t>(end_ - at));
        if (std::memcmp(at, word.data(), there) != 0) continue;
        if (there < word.size()) {
            at = end_;
            return Step::more;
        }
        at += word.size();
        return Step::done;
    }
    return out_or_bad(at);
}

Scanner::Step Scanner::skip(const char*& at, bool* is_deep) const {
    std::string_view ignored;
    if (*at == '"') return text(at, &ignored);
    if (*at == '{' || *at == '[') return skip_nested(at, is_deep);
    return is_number_begin(*at) ? skip_number(at) : skip_word(at);
}

// Brackets nest without recursion: one bit a level.
Scanner::Step Scanner::skip_nested(const char*& at, bool* is_deep) const {
    constexpr size_t kNear = 64;
    uint64_t near = 0;
    std::vector<bool> far;  // levels beyond
    size_t depth = 0;
    const auto in_object = [&] { return depth <= kNear ? (near & 1) != 0 : static_cast<bool>(far.back()); };
    const auto push = [&](bool is_object) {
        if (depth < kNear) {
            near = near << 1 | static_cast<uint64_t>(is_object);
        } else {
            far.push_back(is_object);
        }
        ++depth;
    };
    const auto pop = [&] {
        if (depth > kNear) {
            far.pop_back();
        } else {
            near >>= 1;
        }
        --depth;
    };
    std::string_view ignored;
    bool wants_key = false;
    for (;;) {
        if (wants_key) {
            if (*at != '"') return out_or_bad(at);
            if (const Step step = text(at, &ignored); step != Step::done) return step;
            space(at);
            if (*at != ':') return out_or_bad(at);
            ++at;
            space(at);
        }
        const char c = *at;
        if (c == '{' || c == '[') {
            ++at;
            push(c == '{');
            // What is stepped over here lies in arguments, which are a level themselves.
            if (depth >= kMostDepth && is_deep != nullptr) *is_deep = true;
            if (depth > kKeptLevels) return Step::bad;
            space(at);
            if (*at != c + 2) {  // ] and } are two behind [ and {
                wants_key = c == '{';
                continue;
            }
            ++at;
            pop();
        } else {
            const Step step = c == '"' ? text(at, &ignored) : is_number_begin(c) ? skip_number(at) : skip_word(at);
            if (step != Step::done) return step;
        }
        for (;;) {
            if (depth == 0) return Step::done;
            space(at);
            if (*at == ',') {
                ++at;
                space(at);
                wants_key = in_object();
                break;
            }
            if (*at != (in_object() ? '}' : ']')) return out_or_bad(at);
            ++at;
            pop();
        }
    }
}

}  // namespace lanescope::trace_events
