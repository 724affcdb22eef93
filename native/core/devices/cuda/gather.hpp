// Fields of records whose layout is data: strided gather, shift and mask, the one kernel of all declared layouts.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace lanescope::cuda::gather {

// Where the records of lanes are, in bytes. Record i of lane j is at base[j] + at * stride, where `at` is
// (first[j] + i) % ring[j], or first[j] + i where ring[j] is 0.
struct Lanes {
    std::span<const int64_t> base;
    std::span<const int64_t> first;
    std::span<const int64_t> ring;
    std::span<const int64_t> start;  // records of lane j have the numbers start[j] to before start[j + 1]
    int64_t stride = 0;

    size_t size() const noexcept { return base.size(); }
};

// A field of at most 64 bits that lies in 8 bytes from its first byte on.
struct Field {
    uint64_t byte;   // from the start of the record
    unsigned shift;  // less than 8
    unsigned width;  // shift + width <= 64

    size_t bytes() const noexcept { return (shift + width + 7) / 8; }
};

// Whether all records of all lanes lie inside `size` bytes, the field included, and no number overflows.
bool is_inside(const Lanes& lanes, const Field& field, uint64_t size) noexcept;

// Gather the field of the records of the lanes from `from` to before `to`, which is_inside() has accepted.
template <typename Out>
void gather(std::span<const uint8_t> data, const Lanes& lanes, const Field& field, size_t from, size_t to,
            std::span<Out> out) noexcept;

extern template void gather(std::span<const uint8_t>, const Lanes&, const Field&, size_t, size_t,
                            std::span<uint8_t>) noexcept;
extern template void gather(std::span<const uint8_t>, const Lanes&, const Field&, size_t, size_t,
                            std::span<uint16_t>) noexcept;
extern template void gather(std::span<const uint8_t>, const Lanes&, const Field&, size_t, size_t,
                            std::span<uint32_t>) noexcept;
extern template void gather(std::span<const uint8_t>, const Lanes&, const Field&, size_t, size_t,
                            std::span<uint64_t>) noexcept;

// Bits of a word of 8 bytes that lies inside the record.
struct WordField {
    uint64_t byte = 0;  // of the word, from the start of the record
    unsigned shift = 0;
    uint64_t mask = 0;

    Field word() const noexcept { return {byte, 0, 64}; }
};

// Records whose roles are fields as they stand, so that one pass reads all of them.
struct Roles {
    WordField stamp, event, kind;
    std::span<const uint8_t> kinds;  // what each value of the kind is, for the records of LaneDecoder
    WordField empty;                 // mask 0: no position is empty
    uint64_t empty_value = 0;
    WordField agree;                 // mask 0: nothing has to agree
    std::span<const int64_t> expected;  // for each lane, its value in records that agree
};

// Read the records of the lanes from `from` to before `to`; is_inside() has accepted the words of all fields.
void read(std::span<const uint8_t> data, const Lanes& lanes, const Roles& roles, size_t from, size_t to,
          std::span<uint64_t> stamp, std::span<uint16_t> event, std::span<uint8_t> kind) noexcept;

}  // namespace lanescope::cuda::gather
