#include "core/cuda/tirx.hpp"

#include <algorithm>
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

std::vector<Share> shares(std::span<const uint64_t> words, const Placement& placement, std::span<const uint64_t> lane) {
    std::vector<Share> found(lane.size() - 1);
    const auto count = [](Share& share, uint64_t word) {
        const uint64_t kind = word & 3;
        share.slices += word != 0 && kind == static_cast<uint64_t>(Kind::begin);
        share.instants += kind == static_cast<uint64_t>(Kind::end) || kind == static_cast<uint64_t>(Kind::instant);
        share.gaps += word != 0;
    };
    if (placement.stride > 0) {
        for (uint64_t row = 1; row < words.size(); row += placement.stride) {
            for (size_t part = 0; part < found.size(); ++part) {
                const auto last = std::min<uint64_t>(row + lane[part + 1], words.size());
                Share share;
                for (uint64_t slot = row + lane[part]; slot < last; ++slot) count(share, words[slot]);
                found[part].slices += share.slices;
                found[part].instants += share.instants;
                found[part].gaps += share.gaps;
            }
        }
    } else {
        for (size_t part = 0; part < found.size(); ++part) {
            const auto first = static_cast<size_t>(placement.starts[lane[part]]);
            const auto last = static_cast<size_t>(placement.starts[lane[part + 1]]);
            for (const auto slot : placement.slots.subspan(first, last - first)) {
                count(found[part], words[static_cast<size_t>(slot)]);
            }
        }
    }
    Share next;
    for (size_t part = 0; part < found.size(); ++part) {
        Share& share = found[part];
        share.gaps += lane[part + 1] - lane[part];
        share.slices_from = next.slices_from;
        share.instants_from = next.instants_from;
        share.gaps_from = next.gaps_from;
        next.slices_from += share.slices;
        next.instants_from += share.instants;
        next.gaps_from += share.gaps;
    }
    return found;
}

void decode(std::span<const uint64_t> words, const Placement& placement, uint64_t first, uint64_t last,
            std::span<Record> records, std::span<Summary> summaries, LaneDecoder& decoder) noexcept {
    for (uint64_t lane = first; lane < last; ++lane) {
        if (placement.stride > 0) {
            decoder.decode(static_cast<uint32_t>(lane), read_strided(words, lane, placement.stride, records),
                           summaries[lane]);
        } else {
            const auto from = static_cast<size_t>(placement.starts[lane]);
            const auto to = static_cast<size_t>(placement.starts[lane + 1]);
            decoder.decode(static_cast<uint32_t>(lane), read_listed(words, placement.slots.subspan(from, to - from), records),
                           summaries[lane]);
        }
    }
}

}  // namespace lanescope::cuda::tirx
