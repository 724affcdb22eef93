// Work on whole columns of a table.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace lanescope::columns {

// Count the rows that have any of these bits.
size_t count_with(std::span<const uint32_t> rows, uint32_t bits) noexcept;

// Replace each key by its value in a table of 65536.
void look_up(std::span<const uint16_t> keys, const int32_t* table, std::span<int32_t> out) noexcept;

// Return the distinct values, in order of first sight; say of each row which it has, and whether it is not 0.
std::vector<uint32_t> distinct(std::span<const uint32_t> rows, std::span<int32_t> number, std::span<uint8_t> is_known);

}  // namespace lanescope::columns
