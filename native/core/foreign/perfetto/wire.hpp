// Fields of protobuf messages, read from bytes that may be anything: no read goes past the end.
#pragma once
#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace lanescope::foreign_perfetto {

static_assert(std::endian::native == std::endian::little);

using ByteSpan = std::span<const uint8_t>;

inline std::string_view text_of(ByteSpan bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

inline constexpr uint32_t kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5;

// Read a varint at `p`; false where it does not end before `end` or has more than 10 bytes.
inline bool read_varint(const uint8_t*& p, const uint8_t* end, uint64_t& value) {
    if (p < end && *p < 0x80) [[likely]] {
        value = *p++;
        return true;
    }
    if (end - p >= 2 && p[1] < 0x80) {
        value = (p[0] & 0x7Fu) | static_cast<uint64_t>(p[1]) << 7;
        p += 2;
        return true;
    }
    uint64_t found = 0;
    for (int shift = 0; shift < 70; shift += 7) {
        if (p == end) return false;
        const uint8_t byte = *p++;
        found |= static_cast<uint64_t>(byte & 0x7F) << (shift < 64 ? shift : 63);
        if (byte < 0x80) {
            value = found;
            return true;
        }
    }
    return false;
}

// What was read, and where it ends; null where it does not end.
struct Varint {
    const uint8_t* behind;
    uint64_t value;
};

// Read a varint at `p`, where there are 10 bytes of any kind: the low 7 bits of each byte, moved together.
[[gnu::noinline]] inline Varint read_long_varint(const uint8_t* p) {
    uint64_t word = 0;
    std::memcpy(&word, p, 8);
    const uint64_t ends = ~word & 0x8080'8080'8080'8080u;
    const int size = ends == 0 ? 8 : std::countr_zero(ends) / 8 + 1;
    word &= 0x7F7F'7F7F'7F7F'7F7Fu & (size == 8 ? ~uint64_t{0} : (uint64_t{1} << (8 * size)) - 1);
    word = (word & 0x007F'007F'007F'007Fu) | (word & 0x7F00'7F00'7F00'7F00u) >> 1;
    word = (word & 0x0000'3FFF'0000'3FFFu) | (word & 0x3FFF'0000'3FFF'0000u) >> 2;
    word = (word & 0x0000'0000'0FFF'FFFFu) | (word & 0x0FFF'FFFF'0000'0000u) >> 4;
    if (ends != 0) return {p + size, word};
    word |= static_cast<uint64_t>(p[8] & 0x7F) << 56;
    if (p[8] < 0x80) return {p + 9, word};
    return p[9] < 0x80 ? Varint{p + 10, word | static_cast<uint64_t>(p[9]) << 63} : Varint{nullptr, 0};
}

// Read a varint at `p`, behind which there are `kSlack` bytes of any kind; false where it has more than 10 bytes.
inline constexpr ptrdiff_t kSlack = 16;
[[gnu::always_inline]] inline bool quick_varint(const uint8_t*& p, uint64_t& value) {
    const uint64_t first = p[0];
    if (first < 0x80) {
        value = first;
        ++p;
        return true;
    }
    const uint64_t second = p[1];
    if (second < 0x80) {
        value = (first & 0x7F) | second << 7;
        p += 2;
        return true;
    }
    const Varint found = read_long_varint(p);
    value = found.value;
    p = found.behind;
    return p != nullptr;
}

// The same, of one that has one byte as often as two: which, no processor foresees, so it is not asked.
[[gnu::always_inline]] inline bool steady_varint(const uint8_t*& p, uint64_t& value) {
    const uint64_t first = p[0], second = p[1];
    const uint64_t has_second = first >> 7;
    if ((has_second & second >> 7) != 0) [[unlikely]] {
        const Varint found = read_long_varint(p);
        value = found.value;
        p = found.behind;
        return p != nullptr;
    }
    value = (first & 0x7F) | (second << 7 & (0 - has_second));
    p += 1 + has_second;
    return true;
}

// One field: a number, or the bytes of a text or message.
struct Field {
    uint32_t number = 0;
    uint32_t wire = 0;
    uint64_t value = 0;  // varint, fixed64, fixed32
    ByteSpan bytes;

    bool is_varint() const { return wire == kVarint; }
    bool is_bytes() const { return wire == kBytes; }
    bool is_fixed64() const { return wire == kFixed64; }
};

// The fields of a message, one after another. `next` is false after the last one, and at bytes that are
// not a field; `is_whole` tells them apart.
class Fields {
public:
    explicit Fields(ByteSpan bytes) : p_(bytes.data()), end_(bytes.data() + bytes.size()) {}

    bool next(Field& field) {
        if (p_ == end_) return false;
        uint64_t tag = 0;
        if (!read_varint(p_, end_, tag)) return fail();
        field.number = static_cast<uint32_t>(tag >> 3);
        field.wire = static_cast<uint32_t>(tag & 7);
        if (field.number == 0 || tag >> 32 != 0) return fail();
        switch (field.wire) {
            case kVarint: return read_varint(p_, end_, field.value) || fail();
            case kBytes: {
                uint64_t size = 0;
                if (!read_varint(p_, end_, size) || size > static_cast<uint64_t>(end_ - p_)) return fail();
                field.bytes = {p_, static_cast<size_t>(size)};
                p_ += size;
                return true;
            }
            case kFixed64: return fixed(field, 8);
            case kFixed32: return fixed(field, 4);
            default: return fail();
        }
    }
    bool is_whole() const { return is_whole_; }

private:
    bool fail() {
        is_whole_ = false;
        p_ = end_;
        return false;
    }
    bool fixed(Field& field, size_t size) {
        if (static_cast<size_t>(end_ - p_) < size) return fail();
        field.value = 0;
        std::memcpy(&field.value, p_, size);
        p_ += size;
        return true;
    }

    const uint8_t* p_;
    const uint8_t* end_;
    bool is_whole_ = true;
};

}  // namespace lanescope::foreign_perfetto
