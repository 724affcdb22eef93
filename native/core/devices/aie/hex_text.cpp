#include "core/devices/aie/hex_text.hpp"

namespace lanescope::aie {
namespace {

constexpr auto kHex = [] {
    std::array<int8_t, 256> values{};
    values.fill(-1);
    for (int8_t i = 0; i < 10; ++i) values[static_cast<size_t>('0' + i)] = i;
    for (int8_t i = 0; i < 6; ++i) {
        values[static_cast<size_t>('a' + i)] = values[static_cast<size_t>('A' + i)] = static_cast<int8_t>(10 + i);
    }
    return values;
}();

}  // namespace

bool TextReader::end_line(uint32_t& word, int64_t& offset) {
    const bool is_word = !is_bad_ && marks_ == 8;
    const bool is_empty = marks_ == 0;
    if (!is_empty) {
        (is_word ? digits_ : lost_) += marks_;
        if (!is_word) bad_lines_.add(line_);
        word = is_word ? value_ : kPlaceholder;
        offset = line_;
    }
    marks_ = 0;
    value_ = 0;
    is_bad_ = is_closed_ = false;
    return !is_empty;
}

size_t TextReader::read(std::span<const uint8_t> text, std::span<uint32_t> words, std::span<int64_t> offsets) {
    size_t count = 0;
    for (const uint8_t byte : text) {
        const int8_t digit = kHex[byte];
        if (digit >= 0) {
            if (marks_ == 0) line_ = position_;
            value_ = value_ << 4 | static_cast<uint32_t>(digit);
            is_bad_ |= is_closed_;
            ++marks_;
        } else if (byte == '\n') {
            ++blanks_;
            if (end_line(words[count], offsets[count])) ++count;
        } else if (byte == ' ' || byte == '\t' || byte == '\r') {
            ++blanks_;
            is_closed_ = marks_ != 0;
        } else {
            if (marks_ == 0) line_ = position_;
            is_bad_ = true;
            ++marks_;
        }
        ++position_;
    }
    return count;
}

size_t TextReader::finish(std::span<uint32_t> words, std::span<int64_t> offsets) {
    return end_line(words[0], offsets[0]) ? 1 : 0;
}

}  // namespace lanescope::aie
