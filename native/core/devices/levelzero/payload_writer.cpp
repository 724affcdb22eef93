#include "core/devices/levelzero/payload_writer.hpp"

#include <array>
#include <charconv>
#include <cstring>
#include <type_traits>

namespace lanescope::levelzero {
namespace {

template <class T>
void append_number(std::string* text, T value) {
    std::array<char, 24> digits;
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
    text->append(digits.data(), end);
}

// In quotes; bytes that are not printable ASCII as escapes.
void append_quoted(std::string* text, std::span<const uint8_t> bytes) {
    static constexpr char kDigits[] = "0123456789abcdef";
    *text += '"';
    for (const uint8_t byte : bytes) {
        if (byte >= 32 && byte < 127 && byte != '"' && byte != '\\') {
            *text += static_cast<char>(byte);
        } else {
            *text += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
        }
    }
    *text += '"';
}

template <class T>
bool append_words(std::string* text, std::span<const uint8_t> data, uint64_t bit, uint64_t count) {
    std::span<const uint8_t> part;
    if (bit % 8 != 0 || !within(data, bit / 8, count, sizeof(T), &part)) return false;
    *text += "[ ";
    for (size_t at = 0; at < part.size(); at += sizeof(T)) {
        T value;
        std::memcpy(&value, part.data() + at, sizeof value);
        if (at != 0) *text += ", ";
        append_number(text, value);
    }
    *text += " ]";
    return true;
}

bool append_structure(std::string* text, const Field& field, std::span<const uint8_t> data, uint64_t bit, uint64_t size) {
    std::span<const uint8_t> part;
    if (bit % 8 != 0 || !within(data, bit / 8, size, 1, &part)) return false;
    *text += "{ ";
    bool is_first = true;
    for (const Member& member : field.members) {
        if (member.offset > size || member.size > size - member.offset || member.size > sizeof(uint64_t)) continue;
        uint64_t value = 0;
        std::memcpy(&value, part.data() + member.offset, member.size);
        if (!is_first) *text += ", ";
        is_first = false;
        *text += member.name;
        *text += ": ";
        append_number(text, value);
    }
    *text += " }";
    return true;
}

bool append_value(std::string* text, const Field& field, std::span<const uint8_t> data, size_t row) {
    const uint64_t value = field.values[row], length = field.extents[row] - 1;
    switch (field.form) {
        case Form::number:
        case Form::signed_number: {
            const auto label = field.labels.find(value);
            if (label != field.labels.end()) {
                *text += label->second;
            } else if (field.form == Form::number) {
                append_number(text, value);
            } else {
                append_number(text, static_cast<int64_t>(value));
            }
            return true;
        }
        case Form::text: {
            std::span<const uint8_t> part;
            if (!within(data, value, length, 1, &part)) return false;
            append_quoted(text, part);
            return true;
        }
        case Form::words32:
            return append_words<uint32_t>(text, data, value, length);
        case Form::words64:
            return append_words<uint64_t>(text, data, value, length);
        case Form::structure:
            return append_structure(text, field, data, value, length);
        case Form::written:
            if (value > field.written.size() || length > field.written.size() - value) return false;
            text->append(field.written, value, length);
            return true;
    }
    return false;
}

}  // namespace

bool within(std::span<const uint8_t> data, uint64_t begin, uint64_t count, size_t size, std::span<const uint8_t>* part) {
    if (begin > data.size() || count > (data.size() - begin) / size) return false;
    *part = data.subspan(begin, count * size);
    return true;
}

bool write_payload(std::span<const Field> fields, std::span<const uint8_t> data, size_t row, std::string* text) {
    *text += "{ ";
    bool is_first = true;
    for (const Field& field : fields) {
        if (field.extents[row] == 0) continue;
        if (!is_first) *text += ", ";
        is_first = false;
        *text += field.name;
        *text += ": ";
        if (!append_value(text, field, data, row)) return false;
    }
    *text += " }";
    return true;
}

}  // namespace lanescope::levelzero
