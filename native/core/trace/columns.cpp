#include "core/trace/columns.hpp"

#include <algorithm>
#include <unordered_map>

namespace lanescope::columns {
namespace {

// Rows at a time: counts of so many fit 32 bits, and their numbers a cache.
constexpr size_t block = 1024;

// Take rows for ones of four values; return whether all are. No branches: which value a row has is hard to predict.
bool number_few(const uint32_t* __restrict rows, size_t count, uint32_t first, uint32_t second, uint32_t third,
                uint32_t fourth, int32_t* __restrict number, uint8_t* __restrict is_known) noexcept {
    uint32_t others = 0;
    for (size_t i = 0; i < count; ++i) {
        const uint32_t row = rows[i];
        const uint32_t is_first = row == first ? ~uint32_t{0} : 0;
        const uint32_t is_second = row == second ? ~uint32_t{0} : 0, is_third = row == third ? ~uint32_t{0} : 0;
        const uint32_t is_fourth = row == fourth ? ~uint32_t{0} : 0;
        number[i] = static_cast<int32_t>(~is_first & ((is_second & 1) | (is_third & 2) | (is_fourth & 3)));
        others |= ~(is_first | is_second | is_third | is_fourth);
    }
    for (size_t i = 0; i < count; ++i) is_known[i] = rows[i] != 0;
    return others == 0;
}

}  // namespace

size_t count_with(std::span<const uint32_t> rows, uint32_t bits) noexcept {
    size_t count = 0;
    for (size_t from = 0; from < rows.size(); from += block) {
        const size_t to = std::min(from + block, rows.size());
        uint32_t some = 0;
        for (size_t i = from; i < to; ++i) some += (rows[i] & bits) != 0;
        count += some;
    }
    return count;
}

void look_up(std::span<const uint16_t> keys, const int32_t* __restrict table, std::span<int32_t> out) noexcept {
    const uint16_t* __restrict const from = keys.data();
    int32_t* __restrict const to = out.data();
    for (size_t i = 0; i < keys.size(); ++i) to[i] = table[from[i]];
}

std::vector<uint32_t> distinct(std::span<const uint32_t> rows, std::span<int32_t> number, std::span<uint8_t> is_known) {
    std::vector<uint32_t> values;
    std::unordered_map<uint32_t, int32_t> numbers;
    for (size_t from = 0; from < rows.size(); from += block) {
        const size_t to = std::min(from + block, rows.size());
        const auto value = [&](size_t i) { return values[i < values.size() ? i : 0]; };
        if (!values.empty() && number_few(&rows[from], to - from, value(0), value(1), value(2), value(3), &number[from],
                                          &is_known[from])) {
            continue;
        }
        for (size_t i = from; i < to; ++i) {
            const auto [found, is_new] = numbers.try_emplace(rows[i], static_cast<int32_t>(values.size()));
            if (is_new) values.push_back(rows[i]);
            number[i] = found->second;
            is_known[i] = rows[i] != 0;
        }
    }
    return values;
}

}  // namespace lanescope::columns
