#include "core/cuda/tirx.hpp"

#include <numeric>

namespace lanescope::cuda::tirx {
namespace {

constexpr uint64_t lane_of(uint64_t word) noexcept { return word >> 12 & 0xFFFFF; }

constexpr Record record_of(uint64_t word, uint32_t index, bool readable) noexcept {
    return {word >> 32, index, static_cast<uint16_t>(word >> 2 & 0x3FF),
            readable ? static_cast<Kind>(word & 3) : Kind::unreadable};
}

// Far enough ahead to hide a miss: the words of a lane lie a stride apart, which no hardware prefetcher follows.
constexpr uint64_t ahead = 24;

LaneRecords read_strided(std::span<const uint64_t> words, uint64_t lane, uint64_t stride,
                         std::span<Record> out) noexcept {
    size_t count = 0;
    uint32_t index = 0;
    for (uint64_t slot = 1 + lane; slot < words.size(); slot += stride, ++index) {
        const auto next = slot + ahead * stride;
        if (next < words.size()) __builtin_prefetch(&words[next]);
        const auto word = words[slot];
        if (word != 0) out[count++] = record_of(word, index, lane_of(word) == lane);
    }
    const bool full = count > 0 && out[count - 1].index + 1 == index && out[count - 1].kind != Kind::unreadable;
    return {out.first(count), full};
}

LaneRecords read_listed(std::span<const uint64_t> words, std::span<const int64_t> slots,
                        std::span<Record> out) noexcept {
    for (size_t i = 0; i < slots.size(); ++i) {
        out[i] = record_of(words[static_cast<size_t>(slots[i])], static_cast<uint32_t>(i), true);
    }
    return {out.first(slots.size()), false};
}

}  // namespace

Scan scan(std::span<const uint64_t> words, uint64_t lanes, uint64_t stride) noexcept {
    Scan found;
    uint64_t expected = 0;
    for (uint64_t slot = 1; slot < words.size(); ++slot) {
        const auto word = words[slot];
        if (word != 0) {
            ++found.used;
            ++found.kinds[word & 3];
            found.last_used = slot;
            if (lane_of(word) != expected || expected >= lanes) {
                if (found.misplaced++ == 0) found.first_misplaced = slot;
            }
        }
        if (++expected == stride) expected = 0;
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

void decode(std::span<const uint64_t> words, const Placement& placement, std::span<Record> records,
            std::span<Summary> summaries, LaneDecoder& decoder) noexcept {
    for (uint64_t lane = 0; lane < placement.lanes; ++lane) {
        if (placement.stride > 0) {
            decoder.decode(static_cast<uint32_t>(lane), read_strided(words, lane, placement.stride, records),
                           summaries[lane]);
        } else {
            const auto first = static_cast<size_t>(placement.starts[lane]);
            const auto last = static_cast<size_t>(placement.starts[lane + 1]);
            decoder.decode(static_cast<uint32_t>(lane),
                           read_listed(words, placement.slots.subspan(first, last - first), records),
                           summaries[lane]);
        }
    }
}

}  // namespace lanescope::cuda::tirx
