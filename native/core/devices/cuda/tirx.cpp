#include "core/devices/cuda/tirx.hpp"

#include <algorithm>
#include <numeric>

#include "core/devices/cuda/lane_decoder_impl.hpp"

namespace lanescope::cuda::tirx {
namespace {

constexpr uint64_t lane_of(uint64_t word) noexcept { return word >> 12 & 0xFFFFF; }

constexpr uint16_t event_of(uint64_t word) noexcept { return static_cast<uint16_t>(word >> 2 & 0x3FF); }

// 1 for words that are not zero, without a branch.
constexpr uint64_t is_used(uint64_t word) noexcept { return (word | (0 - word)) >> 63; }

constexpr uint64_t is_begin(uint64_t word) noexcept { return is_used(word) & ~(word | word >> 1) & 1; }

// Copy lanes that stand side by side, each in one piece: the words of one lane lie a stride apart, which no prefetcher
// follows and which takes a page for each, so several are fetched on one way. `out` has room for `rows` words of each; of
// the last row there may be less.
void gather(std::span<const uint64_t> words, uint64_t lane, uint64_t count, uint64_t stride, uint64_t rows,
            uint64_t* out) noexcept {
    constexpr uint64_t ahead = 16;  // rows
    const auto copy = [&](uint64_t row, uint64_t width) {
        const auto* from = words.data() + lane + row * stride;
        for (uint64_t i = 0; i < width; ++i) out[i * rows + row] = from[i];
    };
    uint64_t row = 0;
    if (count == side_by_side) {
        for (; row + ahead < rows; ++row) {
            const auto* next = words.data() + lane + (row + ahead) * stride;
            __builtin_prefetch(next);
            __builtin_prefetch(next + side_by_side - 1);
            copy(row, side_by_side);
        }
    }
    for (; row < rows; ++row) copy(row, std::min(count, words.size() - (lane + row * stride)));
}

// The positions of one lane.
class Gathered {
  public:
    Gathered(std::span<const uint64_t> words, uint64_t lane) noexcept : words_(words), lane_(lane) {}

    size_t size() const noexcept { return words_.size(); }
    Record operator[](size_t index) const noexcept {
        const auto word = words_[index];
        auto kind = static_cast<Kind>(word & 3);
        if (lane_of(word) != lane_) [[unlikely]] kind = Kind::unreadable;
        if (word == 0) [[unlikely]] kind = Kind::empty;
        return {word >> 32, static_cast<uint32_t>(index), event_of(word), kind};
    }
    void leave_out_empty_end() noexcept {
        auto size = words_.size();
        while (size > 0 && words_[size - 1] == 0) --size;
        words_ = words_.first(size);
    }
    void leave_out_from(size_t cut) noexcept { words_ = words_.first(std::min(cut, words_.size())); }
    bool is_full() const noexcept { return !words_.empty() && (*this)[size() - 1].kind < Kind::unreadable; }

  private:
    std::span<const uint64_t> words_;
    uint64_t lane_;
};

// The words of one lane where no stride says at which positions they stand: as if none were missing.
class Listed {
  public:
    Listed(std::span<const uint64_t> words, std::span<const int64_t> slots) noexcept : words_(words), slots_(slots) {}

    size_t size() const noexcept { return slots_.size(); }
    Record operator[](size_t index) const noexcept {
        const auto word = words_[static_cast<size_t>(slots_[index])];
        return {word >> 32, static_cast<uint32_t>(index), event_of(word), static_cast<Kind>(word & 3)};
    }

  private:
    std::span<const uint64_t> words_;
    std::span<const int64_t> slots_;
};

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

void count(std::span<const uint64_t> words, const Placement& placement, std::span<LaneCount> lanes) noexcept {
    std::fill(lanes.begin(), lanes.end(), LaneCount{});
    for (size_t lane = 0; lane < lanes.size(); ++lane) {
        for (auto at = placement.starts[lane]; at < placement.starts[lane + 1]; ++at) {
            const auto word = words[static_cast<size_t>(placement.slots[static_cast<size_t>(at)])];
            lanes[lane].used += 1;
            lanes[lane].begins += (word & 3) == static_cast<uint64_t>(Kind::begin);
        }
    }
}

void decode(std::span<const uint64_t> words, const Placement& placement, uint64_t first, uint64_t last,
            std::span<uint64_t> scratch, std::span<Summary> summaries, LaneDecoder& decoder) noexcept {
    if (placement.stride == 0) {
        for (auto lane = first; lane < last; ++lane) {
            const auto from = static_cast<size_t>(placement.starts[lane]);
            const auto to = static_cast<size_t>(placement.starts[lane + 1]);
            const Listed records(words, placement.slots.subspan(from, to - from));
            decoder.decode(static_cast<uint32_t>(lane), records, false, summaries[lane]);
        }
        return;
    }
    const auto rows_of = [&](uint64_t lane) {
        return lane < words.size() ? (words.size() - 1 - lane) / placement.stride + 1 : 0;
    };
    for (auto lane = first; lane < last; lane += side_by_side) {
        const auto count = std::min(side_by_side, last - lane);
        const auto rows = rows_of(lane);
        gather(words, lane, count, placement.stride, rows, scratch.data());
        for (uint64_t i = 0; i < count; ++i) {
            Gathered records(scratch.subspan(i * rows, rows_of(lane + i)), placement.first + lane + i);
            const bool is_full = records.is_full();
            records.leave_out_empty_end();
            const auto at = lane + i;
            const auto depth = placement.lanes > 0 ? placement.cuts.size() / placement.lanes : 0;
            const auto cuts = placement.cuts.subspan(depth * at, depth);
            const bool is_cut = !cuts.empty() && static_cast<size_t>(cuts[0]) < records.size();
            if (is_cut && !placement.keeps_earlier) records.leave_out_from(static_cast<size_t>(cuts[0]));
            // What an earlier launch left behind this one's records was room that this one did not need.
            decoder.decode(static_cast<uint32_t>(at), records, is_full && !is_cut, summaries[at], cuts);
        }
    }
}

}  // namespace lanescope::cuda::tirx
