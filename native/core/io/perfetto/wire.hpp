// Protobuf primitives: varints, tags, and byte appending.
#pragma once
#include <algorithm>
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

// Bytes that grow at their end; their room stays when they are cleared, and putting few bytes takes no call.
class Bytes {
public:
    Bytes() : room_(kFirstRoom) {}

    void clear() { size_ = 0; }
    bool empty() const { return size_ == 0; }
    size_t size() const { return size_; }
    const uint8_t* begin() const { return room_.data(); }
    const uint8_t* end() const { return room_.data() + size_; }
    operator std::span<const uint8_t>() const { return {room_.data(), size_}; }

    // Room for so many bytes more, of which `advance` then takes those that were written.
    uint8_t* reserve(size_t count) {
        if (room_.size() - size_ < count) [[unlikely]] room_.resize(2 * room_.size() + count);
        return room_.data() + size_;
    }
    void advance(const uint8_t* end) { size_ = static_cast<size_t>(end - room_.data()); }

    void append(std::span<const uint8_t> bytes) {
        std::copy(bytes.begin(), bytes.end(), reserve(bytes.size()));
        size_ += bytes.size();
    }

private:
    static constexpr size_t kFirstRoom = 256;
    std::vector<uint8_t> room_;
    size_t size_ = 0;
};

inline void add_varint(Bytes& out, uint64_t value) { out.advance(put_varint(out.reserve(kVarintRoom), value)); }

inline void add_varint_field(Bytes& out, uint32_t field, uint64_t value) {
    out.advance(put_varint(put_varint(out.reserve(2 * kVarintRoom), tag(field, Wire::varint)), value));
}

inline void add_fixed64_field(Bytes& out, uint32_t field, uint64_t value) {
    uint8_t* const at = put_varint(out.reserve(kVarintRoom + sizeof value), tag(field, Wire::fixed64));
    std::memcpy(at, &value, sizeof value);
    out.advance(at + sizeof value);
}

inline void add_bytes_field(Bytes& out, uint32_t field, std::span<const uint8_t> bytes) {
    uint8_t* at = out.reserve(2 * kVarintRoom + bytes.size());
    at = put_varint(put_varint(at, tag(field, Wire::bytes)), bytes.size());
    out.advance(std::copy(bytes.begin(), bytes.end(), at));
}

}  // namespace lanescope::perfetto
