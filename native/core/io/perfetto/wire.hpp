// Protobuf primitives: varints, tags, and byte appending.
#pragma once
#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace lanescope::perfetto {

static_assert(std::endian::native == std::endian::little);

enum class Wire : uint32_t { varint = 0, fixed64 = 1, bytes = 2 };

constexpr uint32_t tag(uint32_t field, Wire wire) { return field << 3 | static_cast<uint32_t>(wire); }

// A seventh of the bit width, rounded up, for every width from 1 to 64: without the division, on whose result the place
// of all that follows would wait.
constexpr size_t varint_size(uint64_t value) { return (static_cast<size_t>(std::bit_width(value | 1)) * 9 + 64) >> 6; }

// Write a varint and return the byte behind it. Values below 2^28 write 4 bytes at `p` and take no branch on their
// length, which in the time between two events no branch predictor can guess.
inline uint8_t* put_varint(uint8_t* p, uint64_t value) {
    if (value >> 28 != 0) [[unlikely]] {
        while (value >= 0x80) {
            *p++ = static_cast<uint8_t>(value | 0x80);
            value >>= 7;
        }
        *p++ = static_cast<uint8_t>(value);
        return p;
    }
    const size_t size = varint_size(value);
    auto x = static_cast<uint32_t>(value);  // 28 bits -> 4 groups of 7, each in a byte of its own
    x = (x & 0x00003FFF) | ((x & 0x0FFFC000) << 2);
    x = (x & 0x007F007F) | ((x & 0x3F803F80) << 1);
    x |= 0x80808080 & ((uint32_t{1} << (8 * (size - 1))) - 1);
    std::memcpy(p, &x, 4);
    return p + size;
}

// The longest varint, which is also what put_varint may touch.
inline constexpr size_t kVarintRoom = 10;

inline void add_varint(std::vector<uint8_t>& out, uint64_t value) {
    uint8_t bytes[kVarintRoom];
    out.insert(out.end(), bytes, put_varint(bytes, value));
}

inline void add_varint_field(std::vector<uint8_t>& out, uint32_t field, uint64_t value) {
    add_varint(out, tag(field, Wire::varint));
    add_varint(out, value);
}

inline void add_fixed64_field(std::vector<uint8_t>& out, uint32_t field, uint64_t value) {
    add_varint(out, tag(field, Wire::fixed64));
    uint8_t bytes[8];
    std::memcpy(bytes, &value, 8);
    out.insert(out.end(), bytes, bytes + 8);
}

inline void add_bytes_field(std::vector<uint8_t>& out, uint32_t field, std::span<const uint8_t> bytes) {
    add_varint(out, tag(field, Wire::bytes));
    add_varint(out, bytes.size());
    out.insert(out.end(), bytes.begin(), bytes.end());
}

}  // namespace lanescope::perfetto
