#include "core/io/json/row_writer.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>

namespace lanescope::json {
namespace {

// A double takes at most 17 digits, and with plain notation as far as Python's JSON goes 5 zeros, point and sign.
constexpr size_t kMaxDigits = 32;

char* put(char* at, const std::string& text) {
    std::memcpy(at, text.data(), text.size());
    return at + text.size();
}

// A number of thousandths whose digits fit a double: its decimals are the shortest that read back as the same double.
constexpr double kThousandths = 1e15;

// Times of clocks of 50 MHz and 1 GHz in microseconds: many times quicker than the search for the shortest decimals.
char* put_thousandths(char* at, int64_t value) {
    if (value < 0) *at++ = '-';
    const uint64_t size = static_cast<uint64_t>(value < 0 ? -value : value);
    at = std::to_chars(at, at + kMaxDigits, size / 1000).ptr;
    const uint64_t part = size % 1000;
    *at++ = '.';
    *at++ = static_cast<char>('0' + part / 100);
    if (part % 100 != 0) *at++ = static_cast<char>('0' + part / 10 % 10);
    if (part % 10 != 0) *at++ = static_cast<char>('0' + part % 10);
    return at;
}

char* put_real(char* at, double value) {
    const double size = std::fabs(value);
    if (size * 1000 < kThousandths && !(value == 0 && std::signbit(value))) {
        const auto thousandths = static_cast<int64_t>(std::nearbyint(value * 1000));
        if (static_cast<double>(thousandths) / 1000 == value) return put_thousandths(at, thousandths);
    }
    if (value != 0 && (size < 1e-4 || size >= 1e16)) {
        return std::to_chars(at, at + kMaxDigits, value, std::chars_format::scientific).ptr;
    }
    char* const begin = at;
    at = std::to_chars(at, at + kMaxDigits, value, std::chars_format::fixed).ptr;
    // Readers that tell integers from reals get a real.
    if (std::find(begin, at, '.') == at) at = std::copy_n(".0", 2, at);
    return at;
}

}  // namespace

RowWriter::RowWriter(std::vector<Line> lines, std::vector<std::string> texts)
    : lines_(std::move(lines)), texts_(std::move(texts)) {
    for (const Line& line : lines_) {
        size_t size = 0;
        for (const std::string& text : line.texts) size += text.size();
        for (size_t i = 0; i < line.columns.size(); ++i) {
            if (line.kinds[i] != Kind::text) size += kMaxDigits;
            columns_ = std::max(columns_, size_t{line.columns[i]} + 1);
        }
        fixed_.push_back(size);
    }
}

Status RowWriter::write(std::span<const uint32_t> which, std::span<const uint64_t> values,
                        const std::string& separator, Buffer& out) const {
    const size_t rows = which.size();
    size_t bound = 0;
    for (size_t row = 0; row < rows; ++row) {
        const Line& line = lines_[which[row]];
        bound += fixed_[which[row]] + separator.size();
        for (size_t i = 0; i < line.columns.size(); ++i) {
            const uint64_t value = values[line.columns[i] * rows + row];
            if (line.kinds[i] == Kind::text) {
                if (value >= texts_.size()) return Status::bad_text;
                bound += texts_[value].size();
            } else if (line.kinds[i] == Kind::real && !std::isfinite(std::bit_cast<double>(value))) {
                return Status::bad_number;
            }
        }
    }
    char* at = out.room(bound);
    for (size_t row = 0; row < rows; ++row) {
        if (row != 0) at = put(at, separator);
        const Line& line = lines_[which[row]];
        at = put(at, line.texts[0]);
        for (size_t i = 0; i < line.columns.size(); ++i) {
            const uint64_t value = values[line.columns[i] * rows + row];
            switch (line.kinds[i]) {
                case Kind::unsigned_integer: at = std::to_chars(at, at + kMaxDigits, value).ptr; break;
                case Kind::signed_integer:
                    at = std::to_chars(at, at + kMaxDigits, static_cast<int64_t>(value)).ptr;
                    break;
                case Kind::real: at = put_real(at, std::bit_cast<double>(value)); break;
                case Kind::text: at = put(at, texts_[value]); break;
            }
            at = put(at, line.texts[i + 1]);
        }
    }
    out.set_end(at);
    return Status::ok;
}

}  // namespace lanescope::json
