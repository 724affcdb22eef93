#include "core/devices/cuda/tirx.hpp"

#include <algorithm>
#include <numeric>

namespace lanescope::cuda::tirx {
namespace {

constexpr uint64_t lane_of(uint64_t word) noexcept { return word >> 12 & 0xFFFFF; }

// 1 for words that are not zero, without a branch.
constexpr uint64_t is_used(uint64_t word) noexcept { return (word | (0 - word)) >> 63; }

constexpr uint64_t is_begin(uint64_t word) noexcept { return is_used(word) & ~(word | word >> 1) & 1; }

// Count the words of a row and compare their lanes; return all bits of the words, and of the differences.
struct Bits {
    uint64_t used = 0;
    uint64_t different = 0;
};

Bits scan_row(const uint64_t* row, LaneCount* lanes, uint64_t count) noexcept {
    Bits bits;
    for (uint64_t lane = 0; lane < count; ++lane) {
        const auto word = row[lane];
        bits.used |= word;
        bits.different |= (lane_of(word) ^ lane) & (0 - is_used(word));
        lanes[lane].used += static_cast<uint32_t>(is_used(word));
        lanes[lane].begins += static_cast<uint32_t>(is_begin(word));
    }
    return bits;
}

}  // namespace

void Scan::merge(const Scan& behind) noexcept {
    if (misplaced == 0) first_misplaced = behind.first_misplaced;
    if (behind.last_used > 0) last_used = behind.last_used;
    used += behind.used;
    misplaced += behind.misplaced;
}

Scan scan(std::span<const uint64_t> words, uint64_t first, uint64_t stride, std::span<LaneCount> lanes) noexcept {
    Scan found;
    std::fill(lanes.begin(), lanes.end(), LaneCount{});
    size_t last_row = 0;
    for (size_t row = 0; row < words.size(); row += stride) {
        const auto width = std::min<uint64_t>(stride, words.size() - row);
        const auto inside = std::min<uint64_t>(lanes.size(), width);
        const auto bits = scan_row(&words[row], lanes.data(), inside);
        auto between = uint64_t{0};
        for (auto slot = inside; slot < width; ++slot) between |= words[row + slot];
        if ((bits.used | between) != 0) last_row = row + 1;
        if ((bits.different | between) == 0) continue;
        for (uint64_t slot = 0; slot < width; ++slot) {
            const auto word = words[row + slot];
            if (word == 0) continue;
            found.used += slot >= inside;
            if (slot < inside && lane_of(word) == slot) continue;
            if (found.misplaced++ == 0) found.first_misplaced = first + row + slot;
        }
    }
    for (const auto& lane : lanes) found.used += lane.used;
    if (last_row > 0) {
        auto slot = std::min<size_t>(last_row - 1 + stride, words.size()) - 1;
        while (words[slot] == 0) --slot;
        found.last_used = first + slot;
    }
    return found;
}

uint64_t stride_divisor(std::span<const uint64_t> words) noexcept {
    uint64_t divisor = 0;
    for (uint64_t slot = 1; slot < words.size() && divisor != 1; ++slot) {
        if (words[slot] == 0) continue;
        const auto lane = lane_of(words[slot]);
        const auto distance = slot - 1 > lane ? slot - 1 - lane : lane - (slot - 1);
        if (divisor == 0 || distance % divisor != 0) divisor = std::gcd(divisor, distance);
    }
    return divisor;
}

}  // namespace lanescope::cuda::tirx
