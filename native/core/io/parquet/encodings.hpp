// Encodings of Parquet pages: integers as differences, codes of a dictionary as bits.
// Source: apache/parquet-format, Encodings.md (DELTA_BINARY_PACKED, RLE/bit-packing hybrid).
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace lanescope::parquet {

inline constexpr size_t kMiniblock = 32;
inline constexpr size_t kBlock = 4 * kMiniblock;

// Room for so many values. Whole miniblocks are written, so some of it is overwritten later or never used.
constexpr size_t delta_room(size_t count, size_t value_bytes) {
    return 64 + (count / kBlock + 1) * (16 + 4 + kBlock * value_bytes);
}
constexpr size_t codes_room(size_t count) { return 64 + (count + kMiniblock) * sizeof(uint32_t); }

// DELTA_BINARY_PACKED. Differences wrap around, so values of any sign, and unsigned ones, come back as they were.
size_t encode_deltas(std::span<const uint64_t> values, uint8_t* out);
size_t encode_deltas(std::span<const uint32_t> values, uint8_t* out);

// Indices into a dictionary, `width` bits each (1 to 32), as one run; the width is the first byte.
size_t encode_codes(std::span<const uint32_t> codes, unsigned width, uint8_t* out);

}  // namespace lanescope::parquet
