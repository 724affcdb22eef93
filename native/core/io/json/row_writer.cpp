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

// Texts are copied in steps of so many bytes: those behind their end are overwritten by what follows.
constexpr size_t kStep = 32;
constexpr size_t kMostSteps = 8;

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

RowWriter::RowWriter(std::vector<Line> lines, std::vector<std::string> texts) : lines_(std::move(lines)) {
    for (const Line& line : lines_) {
        Places& places = places_.emplace_back();
        for (const std::string& text : line.texts) {
            places.pieces.push_back(keep(text));
            places.most += text.size();
        }
        for (size_t i = 0; i < line.columns.size(); ++i) {
            if (line.kinds[i] != Kind::text) places.most += kMaxDigits;
            columns_ = std::max(columns_, size_t{line.columns[i]} + 1);
        }
    }
    texts_.reserve(texts.size());
    for (const std::string& text : texts) texts_.push_back(keep(text));
    pool_.resize(pool_.size() + kStep);
}

RowWriter::Piece RowWriter::keep(const std::string& text) {
    const Piece piece{pool_.size(), text.size()};
    pool_.insert(pool_.end(), text.begin(), text.end());
    return piece;
}

char* RowWriter::put(char* at, Piece piece) const {
    const char* const from = pool_.data() + piece.at;
    if (piece.size > kMostSteps * kStep) [[unlikely]] {
        std::memcpy(at, from, piece.size);
    } else {
        for (size_t i = 0; i < piece.size; i += kStep) std::memcpy(at + i, from + i, kStep);
    }
    return at + piece.size;
}

Status RowWriter::measure(std::span<const uint32_t> which, std::span<const uint64_t> values,
                          const std::string& separator, size_t* bound) const {
    const size_t rows = which.size();
    size_t size = kStep;
    for (size_t row = 0; row < rows; ++row) {
        const Line& line = lines_[which[row]];
        size += places_[which[row]].most + separator.size();
        for (size_t i = 0; i < line.columns.size(); ++i) {
            const uint64_t value = values[line.columns[i] * rows + row];
            if (line.kinds[i] == Kind::text) {
                if (value >= texts_.size()) return Status::bad_text;
                size += texts_[value].size;
            } else if (line.kinds[i] == Kind::real && !std::isfinite(std::bit_cast<double>(value))) {
                return Status::bad_number;
            }
        }
    }
    *bound = size;
    return Status::ok;
}

char* RowWriter::write(std::span<const uint32_t> which, std::span<const uint64_t> values, const std::string& separator,
                       char* at) const {
    const size_t rows = which.size();
    for (size_t row = 0; row < rows; ++row) {
        if (row != 0) at = std::copy(separator.begin(), separator.end(), at);
        const Line& line = lines_[which[row]];
        const Piece* piece = places_[which[row]].pieces.data();
        at = put(at, *piece);
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
            at = put(at, *++piece);
        }
    }
    return at;
}

}  // namespace lanescope::json
