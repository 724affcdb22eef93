#include "core/devices/levelzero/payload.hpp"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <utility>

namespace lanescope::levelzero {
namespace {

constexpr int kDeepest = 8;
constexpr size_t kMaxFields = 64;

enum : uint8_t { kName = 1, kWord = 2, kQuoted = 4 };

constexpr std::array<uint8_t, 256> classes() {
    std::array<uint8_t, 256> made{};
    for (size_t c = 0; c < 128; ++c) {
        const bool is_digit = c >= '0' && c <= '9';
        const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
        const bool is_control = (c < 32 && c != '\t') || c == 127;
        if (is_digit || is_letter) made[c] |= kName;
        if (!is_control && c != '"') {
            if (c != '\\') made[c] |= kQuoted;
            if (c != ',' && c != '[' && c != ']' && c != '{' && c != '}' && c != ':') made[c] |= kWord;
        }
    }
    return made;
}

constexpr std::array<uint8_t, 256> kClasses = classes();

bool is(char c, uint8_t what) { return (kClasses[static_cast<unsigned char>(c)] & what) != 0; }
bool is_digit(char c) { return static_cast<unsigned char>(c - '0') < 10; }
bool is_blank(char c) { return c == ' ' || c == '\t'; }

}  // namespace

bool read_integer(std::string_view text, uint64_t* value) {
    if (text.empty() || text.size() > 20) return false;
    uint64_t number = 0;
    if (text.size() > 2 && text[0] == '0' && (text[1] | 0x20) == 'x') {
        for (const char c : text.substr(2)) {
            const auto letter = static_cast<unsigned char>((c | 0x20) - 'a');
            if (!is_digit(c) && letter > 5) return false;
            if (number >> 60 != 0) return false;
            number = number << 4 | static_cast<uint64_t>(is_digit(c) ? c - '0' : letter + 10);
        }
    } else {
        for (const char c : text) {
            if (!is_digit(c)) return false;
            const auto digit = static_cast<uint64_t>(c - '0');
            if (number > (UINT64_MAX - digit) / 10) return false;
            number = number * 10 + digit;
        }
    }
    *value = number;
    return true;
}

bool read_nanoseconds(std::string_view text, uint64_t* value) {
    constexpr double kMost = 1e12;  // milliseconds
    if (text.empty() || !is_digit(text[0])) return false;
    double number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size() || !(number <= kMost)) return false;
    *value = static_cast<uint64_t>(static_cast<double>(static_cast<float>(number)) * 1e6);
    return true;
}

Shape::Shape(std::vector<Cell> cells) : cells_(std::move(cells)) {
    static std::atomic<uint64_t> last = 0;
    id_ = ++last;
    for (size_t i = 0; i < cells_.size(); ++i) {
        auto group = std::find(groups_.begin(), groups_.end(), cells_[i].group);
        if (group == groups_.end()) group = groups_.insert(group, cells_[i].group);
        const auto number = static_cast<uint8_t>(group - groups_.begin());
        group_of_.push_back(number);
        if (cells_[i].is_required) required_[number] |= uint32_t{1} << i;
    }
}

class PayloadReader {
public:
    PayloadReader(std::string_view text, const Shape& shape, const std::vector<TextCodes>& texts, Values* values)
        : at_(text.data()), end_(text.data() + text.size()), shape_(shape), texts_(texts), values_(*values) {
        values_.present = 0;
        values_.list.clear();
    }

    bool read() {
        // The last character is a brace: words, blanks and names end there at the latest.
        if (end_ - at_ < 2 || *at_ != '{' || end_[-1] != '}') return false;
        ++at_;
        return structure(0, 0) && at_ == end_;
    }

private:
    static constexpr int kNoGroup = -1;

    void skip_blanks() {
        while (is_blank(*at_)) ++at_;
    }

    // Reads a structure behind its opening brace, up to behind the closing one.
    bool structure(int group, int depth) {
        std::array<std::string_view, kMaxFields> names;
        size_t count = 0;
        uint64_t seen = 0;
        size_t expected = 0;
        skip_blanks();
        if (*at_ != '}') {
            for (;;) {
                std::string_view name;
                if (!read_name(&name) || count == kMaxFields) return false;
                // Names that differ in this hash differ: most are compared with none.
                const size_t hash = (name.size() * 31 + static_cast<unsigned char>(name[0]) * 7u +
                                     static_cast<unsigned char>(name[name.size() / 2]) * 3u +
                                     static_cast<unsigned char>(name.back())) % 64;
                if (seen >> hash & 1) {
                    for (size_t i = 0; i < count; ++i) {
                        if (names[i] == name) return false;
                    }
                }
                seen |= uint64_t{1} << hash;
                names[count++] = name;
                if (!value(group, cell_of(group, name, &expected), name, depth)) return false;
                if (*at_ == '}') break;
                if (*at_ != ',') return false;
                ++at_;
                skip_blanks();
            }
        }
        ++at_;
        if (group == kNoGroup || (group != 0 && count == 0)) return true;
        const uint32_t required = shape_.required_[static_cast<size_t>(group)];
        return (values_.present & required) == required;
    }

    bool read_name(std::string_view* name) {
        const char* first = at_;
        if (is_digit(*at_)) return false;
        while (is(*at_, kName)) ++at_;
        if (at_ == first || *at_ != ':' || !is_blank(at_[1])) return false;
        *name = {first, static_cast<size_t>(at_ - first)};
        ++at_;
        skip_blanks();
        return true;
    }

    // Writers keep one order of fields, so the next one is most likely the one behind the last.
    const Cell* cell_of(int group, std::string_view name, size_t* expected) const {
        if (group == kNoGroup) return nullptr;
        const auto& cells = shape_.cells_;
        for (size_t tried = 0, i = *expected; tried < cells.size(); ++tried, ++i) {
            if (i >= cells.size()) i = 0;
            if (shape_.group_of_[i] == group && cells[i].name == name) {
                *expected = i + 1;
                return &cells[i];
            }
        }
        return nullptr;
    }

    bool value(int group, const Cell* cell, std::string_view name, int depth) {
        if (cell != nullptr && cell->kind == CellKind::refused) return false;
        if (*at_ == '{') {
            if (cell != nullptr || depth == kDeepest) return false;
            ++at_;
            if (!structure(group == 0 ? group_of(name) : kNoGroup, depth + 1)) return false;
            skip_blanks_within();
            return at_ != end_;
        }
        if (*at_ == '[') return list(cell);
        if (group == 0 && group_of(name) > 0) return false;  // a structure is expected
        std::string_view text;
        return read_text(&text) && (cell == nullptr || take(*cell, text));
    }

    int group_of(std::string_view name) const {
        for (size_t i = 1; i < shape_.groups_.size(); ++i) {
            if (shape_.groups_[i] == name) return static_cast<int>(i);
        }
        return kNoGroup;
    }

    // Behind a brace the payload may be over.
    void skip_blanks_within() {
        while (at_ != end_ && is_blank(*at_)) ++at_;
    }

    // Reads a word, which may be empty, or a quoted text, and the blanks behind it.
    bool read_text(std::string_view* text) {
        const char* first = at_;
        if (*at_ == '"') {
            ++first;
            do ++at_;
            while (is(*at_, kQuoted) && at_ != end_ - 1);
            if (*at_ != '"') return false;
            *text = {first, static_cast<size_t>(at_ - first)};
            ++at_;
            skip_blanks();
        } else {
            while (is(*at_, kWord)) ++at_;
            const char* last = at_;
            while (last != first && is_blank(last[-1])) --last;
            *text = {first, static_cast<size_t>(last - first)};
        }
        return true;
    }

    bool list(const Cell* cell) {
        if (cell != nullptr && cell->kind != CellKind::integers) return false;
        ++at_;
        skip_blanks();
        while (*at_ != ']') {
            if (*at_ == '{' || *at_ == '[' || *at_ == '"') return false;
            std::string_view text;
            uint64_t number = 0;
            if (!read_text(&text) || text.empty()) return false;
            if (cell != nullptr) {
                if (!read_integer(text, &number)) return false;
                values_.list.push_back(number);
            }
            if (*at_ == ']') break;
            if (*at_ != ',') return false;
            ++at_;
            skip_blanks();
            if (*at_ == ']') return false;
        }
        ++at_;
        skip_blanks();
        if (cell != nullptr) put(*cell, values_.list.size());
        return true;
    }

    void put(const Cell& cell, uint64_t value) {
        const auto i = static_cast<size_t>(&cell - shape_.cells_.data());
        values_.cells[i] = value;
        values_.present |= uint32_t{1} << i;
    }

    bool take(const Cell& cell, std::string_view text) {
        uint64_t number = 0;
        switch (cell.kind) {
            case CellKind::integer:
            case CellKind::small:
            case CellKind::count:
                if (!read_integer(text, &number)) return false;
                if (cell.kind == CellKind::count && number >> 32 != 0) return false;
                if (cell.kind == CellKind::small && number >> 63 != 0) return false;
                break;
            case CellKind::flag:
                if (text == "true") {
                    number = 1;
                } else if (text != "false" && (!read_integer(text, &number) || number > 1)) {
                    return false;
                }
                break;
            case CellKind::text:
            case CellKind::maybe_text: {
                if (text.empty()) return cell.kind == CellKind::maybe_text;
                const uint64_t* code = texts_[cell.texts].find(text);
                if (code == nullptr) return false;
                number = *code;
                break;
            }
            case CellKind::integers:
                if (!read_integer(text, &number)) return false;
                values_.list.push_back(number);
                number = 1;
                break;
            case CellKind::refused:
                return false;
            case CellKind::nanoseconds:
                if (!read_nanoseconds(text, &number)) return false;
                break;
        }
        put(cell, number);
        return true;
    }

    const char* at_;
    const char* const end_;
    const Shape& shape_;
    const std::vector<TextCodes>& texts_;
    Values& values_;
};

bool read_payload(std::string_view payload, const Shape& shape, const std::vector<TextCodes>& texts, Values* values) {
    return PayloadReader(payload, shape, texts, values).read();
}

}  // namespace lanescope::levelzero
