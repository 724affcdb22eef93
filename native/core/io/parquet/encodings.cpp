#include "core/io/parquet/encodings.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

namespace lanescope::parquet {
namespace {

static_assert(std::endian::native == std::endian::little);

size_t put_varint(uint8_t* out, uint64_t value) {
    size_t size = 0;
    for (; value >= 0x80; value >>= 7) out[size++] = static_cast<uint8_t>(value | 0x80);
    out[size++] = static_cast<uint8_t>(value);
    return size;
}

// 32 values of so many bits each, the lowest first. With the width a constant, each shift is one too.
template <class T, unsigned width>
void pack(const T* values, uint8_t* out) {
    uint64_t word = 0;
    unsigned used = 0;
    for (size_t i = 0; i < kMiniblock; ++i) {
        const uint64_t value = values[i];
        word |= value << used;
        used += width;
        if (used >= 64) {
            std::memcpy(out, &word, 8);
            out += 8;
            used -= 64;
            word = used == 0 ? 0 : value >> (width - used);
        }
    }
    if (used != 0) std::memcpy(out, &word, 4);  // 32 values fill whole words of 32 bits
}

template <class T>
using Packer = void (*)(const T*, uint8_t*);
template <class T>
constexpr auto kPackers = []<unsigned... width>(std::integer_sequence<unsigned, width...>) {
    return std::array<Packer<T>, sizeof...(width)>{pack<T, width>...};
}(std::make_integer_sequence<unsigned, 8 * sizeof(T) + 1>{});

template <class T>
void pack_miniblock(const T* values, unsigned width, uint8_t* out) {
    if (width != 0) kPackers<T>[width](values, out);
}

template <class T>
uint64_t zigzag(T value) {
    using Signed = std::make_signed_t<T>;
    const int64_t number = static_cast<Signed>(value);
    return static_cast<uint64_t>(number) << 1 ^ static_cast<uint64_t>(number >> 63);
}

template <class T>
size_t encode(std::span<const T> values, uint8_t* const out) {
    using Signed = std::make_signed_t<T>;
    size_t at = put_varint(out, kBlock);
    at += put_varint(out + at, kBlock / kMiniblock);
    at += put_varint(out + at, values.size());
    at += put_varint(out + at, values.empty() ? 0 : zigzag(values[0]));
    for (size_t begin = 1; begin < values.size(); begin += kBlock) {
        const size_t count = std::min(kBlock, values.size() - begin);
        std::array<T, kBlock> deltas;
        for (size_t i = 0; i < count; ++i) deltas[i] = static_cast<T>(values[begin + i] - values[begin + i - 1]);
        Signed least = static_cast<Signed>(deltas[0]);
        for (size_t i = 1; i < count; ++i) least = std::min(least, static_cast<Signed>(deltas[i]));
        for (size_t i = 0; i < count; ++i) deltas[i] = static_cast<T>(deltas[i] - static_cast<T>(least));
        std::fill(deltas.begin() + static_cast<std::ptrdiff_t>(count), deltas.end(), T{0});
        at += put_varint(out + at, zigzag(static_cast<T>(least)));
        uint8_t* const widths = out + at;
        at += kBlock / kMiniblock;
        for (size_t part = 0; part < kBlock / kMiniblock; ++part) {
            const T* const first = deltas.data() + part * kMiniblock;
            T bits = 0;
            for (size_t i = 0; i < kMiniblock; ++i) bits |= first[i];
            const auto width = static_cast<unsigned>(std::bit_width(bits));
            widths[part] = static_cast<uint8_t>(width);
            pack_miniblock(first, width, out + at);
            // Of miniblocks behind the last value nothing is stored.
            at += kMiniblock / 8 * width;
        }
    }
    return at;
}

}  // namespace

size_t encode_deltas(std::span<const uint64_t> values, uint8_t* out) { return encode(values, out); }
size_t encode_deltas(std::span<const uint32_t> values, uint8_t* out) { return encode(values, out); }

size_t encode_codes(std::span<const uint32_t> codes, unsigned width, uint8_t* const out) {
    out[0] = static_cast<uint8_t>(width);
    const size_t groups = (codes.size() + 7) / 8;
    size_t at = 1 + put_varint(out + 1, groups << 1 | 1);
    const size_t end = at + groups * width;
    for (size_t begin = 0; begin < codes.size(); begin += kMiniblock) {
        const size_t count = std::min(kMiniblock, codes.size() - begin);
        if (count == kMiniblock) {
            pack_miniblock(codes.data() + begin, width, out + at);
        } else {
            std::array<uint32_t, kMiniblock> last{};
            std::copy_n(codes.begin() + static_cast<std::ptrdiff_t>(begin), count, last.begin());
            pack_miniblock(last.data(), width, out + at);
        }
        at += kMiniblock / 8 * width;
    }
    return end;
}

}  // namespace lanescope::parquet
