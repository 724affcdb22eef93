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

}  // namespace lanescope::cuda::gather
