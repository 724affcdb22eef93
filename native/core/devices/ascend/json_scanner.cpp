// What the scanner does with many characters: stepping over values, reading the elements of lists. Objects are in
// json_objects.cpp.
#include "core/devices/ascend/json_scanner.hpp"

#include <cstring>
#include <utility>

#include "core/devices/ascend/json_words.hpp"

namespace lanescope::ascend {
namespace {

bool is_digit(char c) { return static_cast<unsigned char>(c - '0') < 10; }

bool is_hex(char c) { return is_digit(c) || static_cast<unsigned char>((c | 0x20) - 'a') < 6; }

bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20; }

bool is_end_of_number(char c) { return c != '.' && (c | 0x20) != 'e' && !is_digit(c); }

}  // namespace

Shape::Shape(bool is_object, std::vector<Cell> cells) : is_object_(is_object), cells_(std::move(cells)) {
    for (size_t i = 0; i < cells_.size(); ++i) {
        column_of_.push_back(columns_);
        columns_ += cells_[i].count;
        if (cells_[i].is_required) required_ |= uint32_t{1} << i;
    }
}

Scanner::Scanner(std::span<const char> text)
    : begin_(text.data()), end_(text.data() + text.size() - 1), at_(text.data()), torn_(text.data()) {}

bool Scanner::fail(ParseError fault) {
    if (fault_ == ParseError::none) fault_ = fault;
    return false;
}

// The loops below run on a copy of the place: a member would be stored and loaded again for every character, because a
// character may be any byte of memory, the member's own among them.
void Scanner::space() {
    const char* at = at_;
    if (static_cast<unsigned char>(*at) > ' ') return;
    while (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t') ++at;
    at_ = at;
}

// --- stepping over: the judge of what is JSON --------------------------------------------------------------------------

bool Scanner::skip_string() {
    if (*at_ != '"') return unexpected();
    const char* at = at_ + 1;
    for (;; ++at) {
        while (end_ - at >= kWord) {
            const int plain = plain_characters(word_at(at));
            at += plain;
            if (plain < kWord) break;
        }
        if (*at == '"') break;
        if (!is_control(*at) && *at != '\\') continue;
        at_ = at;
        if (*at != '\\') return unexpected();
        at_ = ++at;
        if (*at == 'u') {
            for (int i = 0; i < 4; ++i) {
                at_ = ++at;
                if (!is_hex(*at)) return unexpected();
            }
        } else if (*at == '\0' || std::strchr("\"\\/bfnrt", *at) == nullptr) {
            return unexpected();
        }
    }
    at_ = at + 1;
    return true;
}

bool Scanner::skip_number() {
    const char* at = at_;
    const auto digits = [this, &at] {
        const char* first = at;
        while (end_ - at >= kWord) {
            uint64_t word = word_at(at);
            const int count = digits_first(&word);
            at += count;
            if (count < kWord) break;
        }
        while (is_digit(*at)) ++at;
        at_ = at;
        return at != first || unexpected();
    };
    if (*at == '-') ++at;
    if (*at == '0') {
        ++at;
    } else if (!digits()) {
        return false;
    }
    if (*at == '.') {
        ++at;
        if (!digits()) return false;
    }
    if ((*at | 0x20) == 'e') {
        ++at;
        if (*at == '+' || *at == '-') ++at;
        if (!digits()) return false;
    }
    at_ = at;
    return true;
}

bool Scanner::skip_word(std::string_view word) {
    for (const char c : word) {
        if (*at_ != c) return unexpected();
        ++at_;
    }
    return true;
}

bool Scanner::skip_key() {
    space();
    if (!skip_string()) return false;
    space();
    if (*at_ != ':') return unexpected();
    ++at_;
    return true;
}

bool Scanner::skip_value() {
    std::array<uint64_t, kMaxDepth / 64> is_object;  // bits below the depth are set before they are read
    size_t depth = 0;
    for (;;) {
        space();
        const char c = *at_;
        if (c == '{' || c == '[') {
            if (depth == kMaxDepth) return fail(ParseError::depth);
            const uint64_t bit = uint64_t{1} << (depth % 64);
            uint64_t& word = is_object[depth / 64];
            word = c == '{' ? word | bit : word & ~bit;
            ++depth;
            ++at_;
            space();
            if (*at_ != (c == '{' ? '}' : ']')) {
                if (c == '{' && !skip_key()) return false;
                continue;
            }
        } else if (c == '"') {
            if (!skip_string()) return false;
        } else if (c == '-' || is_digit(c)) {
            if (!skip_number()) return false;
        } else if (!skip_word(c == 't' ? "true" : c == 'f' ? "false" : "null")) {
            return false;
        }
        // A value is over, or an empty container is to be closed: close what ends here.
        for (;;) {
            if (depth == 0) return true;
            space();
            const bool in_object = (is_object[(depth - 1) / 64] >> ((depth - 1) % 64) & 1) != 0;
            if (*at_ == (in_object ? '}' : ']')) {
                ++at_;
                --depth;
                continue;
            }
            if (*at_ != ',') return unexpected();
            ++at_;
            if (in_object && !skip_key()) return false;
            break;
        }
    }
}

// --- reading what was asked for ----------------------------------------------------------------------------------------

bool Scanner::read_integer(uint64_t* magnitude, bool* is_negative) {
    const char* at = at_;
    *is_negative = *at == '-';
    if (*is_negative) ++at;
    const char* first = at;
    uint64_t value = 0;
    // Two words have no more than 16 digits.
    for (int words = 0; words < 2 && end_ - at >= kWord; ++words) {
        uint64_t digits = word_at(at);
        const int count = digits_first(&digits);
        if (count == 0) break;
        value = value * kPowers[count] + number_of(digits, count);
        at += count;
        if (count < kWord) break;
    }
    while (is_digit(*at)) {
        const auto digit = static_cast<uint64_t>(*at - '0');
        if (at - first >= 19 && (value > UINT64_MAX / 10 || value * 10 > UINT64_MAX - digit)) return false;
        value = value * 10 + digit;
        ++at;
    }
    if (at == first || (*first == '0' && at - first > 1) || !is_end_of_number(*at)) return false;
    *magnitude = value;
    at_ = at;
    return true;
}

bool Scanner::read_text(std::string_view* out) {
    if (*at_ != '"') return false;
    const char* first = at_ + 1;
    if (!skip_string()) {
        fault_ = ParseError::none;  // skip_value finds it again, at its place
        return false;
    }
    *out = {first, static_cast<size_t>(at_ - first) - 1};
    return true;
}

uint64_t Scanner::code(std::string_view text) {
    const auto at = [&](size_t i) {
        return std::string_view{begin_ + texts_[i].begin, texts_[i].end - texts_[i].begin};
    };
    const size_t size = text.size();
    const size_t hash = size == 0 ? 0 : size * 7 + static_cast<unsigned char>(text[0]) * 3u +
                                            static_cast<unsigned char>(text[size - 1]);
    uint16_t& recent = recent_[hash % recent_.size()];
    if (recent != 0 && at(recent - 1u) == text) return recent - 1u;
    size_t i = 0;
    while (i < text_count_ && at(i) != text) ++i;
    const auto offset = static_cast<size_t>(text.data() - begin_);
    if (i == text_count_) {
        if (i == kMaxTexts) return kMaxTexts + offset - 1;
        texts_[text_count_++] = {offset, offset + size};
    }
    recent = static_cast<uint16_t>(i + 1);
    return i;
}

bool Scanner::read_micros(uint64_t limit, uint64_t* out) {
    constexpr uint64_t kMost = UINT64_MAX / 10000;
    const char* at = at_;
    const char* first = at;
    uint64_t value = 0;
    for (; is_digit(*at); ++at) {
        if (value > kMost) return false;
        value = value * 10 + static_cast<uint64_t>(*at - '0');
    }
    if (at == first || (*first == '0' && at - first > 1)) return false;
    if (value > kMost) return false;
    int decimals = 0;
    if (*at == '.') {
        ++at;
        for (; is_digit(*at); ++at, ++decimals) {
            if (decimals == 3) return false;
            value = value * 10 + static_cast<uint64_t>(*at - '0');
        }
        if (decimals == 0) return false;
    }
    if (!is_end_of_number(*at)) return false;
    for (; decimals < 3; ++decimals) value *= 10;
    *out = value;
    at_ = at;
    return value <= limit;
}

bool Scanner::read_scalar(const Cell& cell, uint64_t* out) {
    switch (cell.kind) {
        case Kind::number:
        case Kind::integer: {
            const char* behind = plain_number(at_, end_, out);
            if (behind != nullptr) {
                at_ = behind;
                return *out <= cell.limit;
            }
            bool is_negative = false;
            uint64_t value = 0;
            if (!read_integer(&value, &is_negative) || value > cell.limit) return false;
            if (is_negative && value != 0 && cell.kind == Kind::number) return false;
            *out = is_negative ? ~value + 1 : value;
            return true;
        }
        case Kind::token: {
            const bool is_text = *at_ == '"';
            if (is_text) ++at_;
            const char* behind = plain_number(at_, end_, out);
            if (behind != nullptr) {
                at_ = behind;
                return !is_text || *at_++ == '"';
            }
            bool is_negative = false;
            uint64_t value = 0;
            if (!read_integer(&value, &is_negative)) return false;
            if (is_negative && value > uint64_t{1} << 63) return false;
            if (is_text && *at_++ != '"') return false;
            *out = is_negative ? ~value + 1 : value;
            return true;
        }
        case Kind::boolean: {
            const bool value = *at_ == 't';
            for (const char c : std::string_view{value ? "true" : "false"}) {
                if (*at_ != c) return false;
                ++at_;
            }
            *out = value ? 1 : 0;
            return true;
        }
        case Kind::text: {
            std::string_view text;
            if (!read_text(&text)) return false;
            *out = code(text);
            return true;
        }
        case Kind::words: {
            if (*at_ != '[') return false;
            ++at_;
            *out = 0;
            for (bool is_first = true;; is_first = false) {
                space();
                if (is_first && *at_ == ']') break;
                std::string_view word;
                if (!read_text(&word)) return false;
                size_t i = 0;
                while (i < cell.words.size() && cell.words[i] != word) ++i;
                *out |= uint64_t{1} << i;
                space();
                if (*at_ != ',') break;
                ++at_;
            }
            return *at_++ == ']';
        }
        case Kind::micros:
            return read_micros(cell.limit, out);
        case Kind::span:
            break;
    }
    return false;
}

bool Scanner::read_cell(const Cell& cell, uint64_t* out, size_t stride) {
    if (cell.kind == Kind::span) {
        out[0] = offset();
        if (!skip_value()) return false;
        out[stride] = offset();
        return true;
    }
    if (cell.count == 1) return read_scalar(cell, out);
    if (*at_ != '[') return false;
    ++at_;
    for (uint32_t i = 0; i < cell.count; ++i) {
        if (i != 0 && *at_++ != ',') return false;
        space();
        if (!read_scalar(cell, out + i * stride)) return false;
        space();
    }
    return *at_++ == ']';
}

// A row as writers write it: numbers apart from each other by a comma and at most one space. False: `read_row` decides,
// and the place is where it was.
bool Scanner::read_plain_row(const Shape& shape, uint64_t* out, size_t stride) {
    const char* at = at_;
    if (*at != '[') return false;
    ++at;
    const size_t cells = shape.cells_.size();
    for (size_t i = 0; i < cells;) {
        const Cell& cell = shape.cells_[i];
        if ((cell.kind != Kind::number && cell.kind != Kind::token) || cell.count != 1) return false;
        uint64_t* column = out + shape.column_of_[i] * stride;
        at = plain_number(at, end_, column);
        if (at == nullptr || (cell.kind == Kind::number && *column > cell.limit)) return false;
        ++i;
        if (*at == ']') {
            const uint32_t present = (uint32_t{1} << i) - 1;
            if ((present & shape.required_) != shape.required_) return false;
            out[Shape::kPresent * stride] = present;
            at_ = at + 1;
            return true;
        }
        if (*at != ',') return false;
        ++at;
        if (*at == ' ') ++at;
    }
    return false;
}

bool Scanner::read_row(const Shape& shape, uint64_t* out, size_t stride) {
    if (read_plain_row(shape, out, stride)) return true;
    if (*at_ != '[') return false;
    ++at_;
    uint32_t present = 0;
    for (size_t i = 0; i < shape.cells_.size(); ++i) {
        space();
        if (!read_cell(shape.cells_[i], out + shape.column_of_[i] * stride, stride)) return false;
        present |= uint32_t{1} << i;
        space();
        if (*at_ != ',') break;
        ++at_;
    }
    out[Shape::kPresent * stride] = present;
    // A comma before the bracket was stepped over after the last cell: only then is the row too long.
    return at_[-1] != ',' && *at_++ == ']' && (present & shape.required_) == shape.required_;
}

// --- lists ---------------------------------------------------------------------------------------------------------

size_t Scanner::take(const Shape& shape, uint32_t depth, std::span<uint64_t> out, size_t capacity, bool* done) {
    *done = false;
    if (fault_ != ParseError::none) return 0;
    if (!in_list_) {
        space();
        if (*at_ != '[') {
            torn_ = at_;
            unexpected();
            return 0;
        }
        ++at_;
        in_list_ = is_fresh_list_ = true;
        level_ = 1;
        tally_ = {};
        text_count_ = 0;
        recent_.fill(0);
        fields_.clear();
        others_.clear();
    }
    size_t rows = 0;
    while (rows < capacity) {
        space();
        if (*at_ == ']') {
            ++at_;
            is_fresh_list_ = false;
            if (--level_ == 0) {
                in_list_ = false;
                *done = true;
                break;
            }
            continue;
        }
        if (!std::exchange(is_fresh_list_, false)) {
            if (*at_ != ',') {
                torn_ = at_;
                unexpected();
                break;
            }
            ++at_;
            space();
        }
        if (level_ < depth) {
            ++tally_.groups;
            if (*at_ == '[') {
                ++at_;
                ++level_;
                is_fresh_list_ = true;
                continue;
            }
        }
        const char* first = at_;
        uint64_t* row = out.data() + rows;
        const bool is_good = level_ == depth && (shape.is_object_ ? read_object(shape, row, capacity)
                                                                  : read_row(shape, row, capacity));
        if (is_good) {
            row[Shape::kBegin * capacity] = static_cast<uint64_t>(first - begin_);
            row[Shape::kEnd * capacity] = static_cast<uint64_t>(at_ - begin_);
            row[Shape::kGroup * capacity] = depth == 1 ? 0 : tally_.groups - 1;
            tally_.good_bytes += static_cast<uint64_t>(at_ - first);
            ++rows;
            continue;
        }
        fault_ = ParseError::none;
        at_ = first;
        if (!skip_value()) {
            torn_ = first;
            break;
        }
        if (tally_.bad_count++ == 0) tally_.bad_first = static_cast<uint64_t>(first - begin_);
        tally_.bad_bytes += static_cast<uint64_t>(at_ - first);
    }
    return rows;
}

}  // namespace lanescope::ascend
