#include "core/devices/cuda/ls2.hpp"

#include <algorithm>
#include <limits>

namespace lanescope::cuda::ls2 {
namespace {

constexpr bool is_record(uint64_t word) noexcept { return (word & 1) != 0; }
// The value of a counter in a buffer of one-word records: never a record, never zero.
constexpr bool is_value(uint64_t word) noexcept { return (word & 3) == 2; }
constexpr uint64_t kind_of(uint64_t word) noexcept { return word >> 13 & 7; }

constexpr int64_t clamped(uint64_t value) noexcept {
    return static_cast<int64_t>(std::min<uint64_t>(value, std::numeric_limits<int64_t>::max()));
}

// The first words of the positions of one lane; what the file does not hold is zero.
class Positions {
  public:
    Positions(std::span<const uint64_t> words, const Layout& layout, uint64_t lane) noexcept : layout_(layout) {
        const auto at = file_header + lane * layout.lane_words();
        if (at + lane_header <= words.size()) {
            header_ = words.data() + at;
            const auto left = words.size() - at - lane_header;
            data_ = header_ + lane_header;
            words_ = std::min<uint64_t>(layout.capacity * layout.record_words, left);
            present_ = words_ / layout.record_words;
        }
    }

    uint64_t header(size_t i) const noexcept { return header_ != nullptr ? header_[i] : 0; }
    uint64_t operator[](uint64_t position) const noexcept {
        return position < present_ ? data_[position * layout_.record_words] : 0;
    }
    uint64_t present() const noexcept { return present_; }  // positions that the file holds
    std::span<const uint64_t> all() const noexcept { return {data_, words_}; }

  private:
    Layout layout_;
    const uint64_t* header_ = nullptr;
    const uint64_t* data_ = nullptr;
    uint64_t words_ = 0;
    uint64_t present_ = 0;
};

// Whether a record is one of an earlier launch, in a buffer that was not cleared: it is stamped before the lane was begun,
// and before the record in front of it. A lane that ran for more than half a turn has the former only.
bool is_older(const Positions& words, const Layout& layout, uint64_t position) noexcept {
    const auto word = words[position];
    const auto before = [&](uint64_t i) { return i > 0 ? words[i - 1] : 0; };
    if (!is_record(word)) {
        // A value of one word belongs to the counter in front of it.
        return layout.record_words == 1 && !(is_record(before(position)) && kind_of(before(position)) == counter);
    }
    const auto begun = words.header(layout.cycles ? 3 : 2);
    if (begun == 0) return false;
    auto at = position;
    while (at > 0 && !is_record(before(at))) --at;
    const auto stamp = static_cast<uint32_t>(word >> 32);
    const auto earlier_than = [&](uint64_t other) {
        return static_cast<int32_t>(stamp - static_cast<uint32_t>(other)) < 0;
    };
    return earlier_than(begun) && (at == 0 || earlier_than(before(at) >> 32));
}

// Number of positions taken by a lane without a finalize: its count lags by less than count_every.
uint64_t count_of_running(const Positions& words, const Layout& layout, uint64_t written) noexcept {
    const auto capacity = layout.capacity;
    auto count = written;
    if (!layout.ring || written < capacity) {
        const auto end = std::min(capacity, written + count_every);
        while (count < end && words[count] != 0 && !is_older(words, layout, count)) ++count;
        if (count < capacity || !layout.ring) return count;
    }
    // In a full ring the newest record stands before the oldest, so the stamp falls behind the last one written.
    const auto stamp_before = [&](uint64_t position) {
        auto at = (position + capacity - 1) & (capacity - 1);
        if (!is_record(words[at])) at = (at + capacity - 1) & (capacity - 1);  // the value of a counter
        return static_cast<uint32_t>(words[at] >> 32);
    };
    for (const auto end = written + count_every; count < end; ++count) {
        const auto word = words[count & (capacity - 1)];
        if (is_record(word) && static_cast<int32_t>(static_cast<uint32_t>(word >> 32) - stamp_before(count)) < 0) break;
    }
    return count;
}

// The kind that the rules see, of a word at a position.
Kind kind_at(uint64_t word, bool value_follows) noexcept {
    if (!is_record(word)) return Kind::unreadable;
    switch (kind_of(word)) {
        case begin: return Kind::begin;
        case end: return Kind::end;
        case counter: return value_follows ? Kind::instant : Kind::unreadable;
        default: return Kind::instant;
    }
}

// Call visit(position in order of writing, word, kind) for every position that is not empty.
template <typename Visit>
void for_each(const Positions& words, const Layout& layout, uint64_t first, uint64_t stored, Visit visit) noexcept {
    const auto mask = layout.capacity - 1;
    const bool single = layout.record_words == 1;
    bool takes_value = false;
    for (uint64_t i = 0; i < stored; ++i) {
        const auto position = (first + i) & mask;
        if (position >= words.present()) {
            i += mask - position;  // on to position 0, if there is any left
            takes_value = false;
            continue;
        }
        const auto word = words[position];
        if (word == 0) {
            takes_value = false;
            continue;
        }
        const bool is_its_value = takes_value && is_value(word);
        takes_value = false;
        if (is_its_value) {
            visit(i, word, Kind::instant);
            continue;
        }
        const bool followed = !single || (i + 1 < stored && is_value(words[(first + i + 1) & mask]));
        const auto kind = kind_at(word, followed);
        takes_value = single && kind == Kind::instant && kind_of(word) == counter;
        visit(i, word, kind);
    }
}

}  // namespace

void scan(std::span<const uint64_t> words, const Layout& layout, std::span<Lane> lanes) noexcept {
    for (size_t number = 0; number < lanes.size(); ++number) {
        const Positions lane(words, layout, number);
        const auto state = lane.header(0);
        auto offered = lane.header(1);
        if (state != finalized) {
            // Not before it was written: positions that are empty are not there.
            if (!layout.ring) offered = std::min(offered, layout.capacity);
            // Words in a lane that was never begun are those of an earlier launch, in a buffer that was not cleared.
            const bool is_begun = state != unused || (lane.header(2) | lane.header(3)) != 0;
            offered = is_begun ? count_of_running(lane, layout, offered) : 0;
        }
        auto stored = std::min(offered, layout.capacity);
        auto first = layout.ring && offered > layout.capacity ? offered & (layout.capacity - 1) : 0;
        const auto lost = offered - stored;
        const auto held = std::min(stored, lane.present());
        // The ring may have overwritten a counter's record and not yet its value.
        const uint64_t torn = layout.ring && layout.record_words == 1 && lost > 0 && is_value(lane[first]) ? 1 : 0;
        first = (first + torn) & (layout.capacity - 1);
        stored -= torn;
        Lane found{};
        found.state = clamped(state);
        found.offered = clamped(offered);
        found.stored = static_cast<int64_t>(stored);
        found.present = static_cast<int64_t>(held - torn);
        found.torn = static_cast<int64_t>(torn);
        found.first = static_cast<int64_t>(first);
        found.lost = clamped(lost);
        for_each(lane, layout, first, stored, [&](uint64_t, uint64_t word, Kind kind) {
            if (kind == Kind::unreadable) return;
            found.begins += kind == Kind::begin;
            found.marks += kind != Kind::begin;
            found.special += !is_record(word) || kind_of(word) > instant;
        });
        const auto all = lane.all();
        for (auto at = held * layout.record_words; at < all.size(); ++at) {
            found.stale += all[at] != 0;
        }
        lanes[number] = found;
    }
}

void decode(std::span<const uint64_t> words, const Layout& layout, uint64_t first, std::span<const Lane> lanes,
            std::span<Record> records, std::span<Summary> summaries, LaneDecoder& decoder) noexcept {
    for (size_t number = 0; number < lanes.size(); ++number) {
        const Positions lane(words, layout, first + number);
        const auto& info = lanes[number];
        const uint32_t overwritten = layout.ring && info.lost > 0 ? 1 : 0;
        size_t count = 0;
        uint64_t stamp = 0;
        uint16_t event = 0;
        for_each(lane, layout, static_cast<uint64_t>(info.first), static_cast<uint64_t>(info.stored),
                 [&](uint64_t i, uint64_t word, Kind kind) {
                     if (is_record(word)) {
                         stamp = word >> 32;
                         event = static_cast<uint16_t>(word >> 16);
                     }
                     records[count++] = {stamp, static_cast<uint32_t>(i) + overwritten, event, kind};
                 });
        decoder.decode(static_cast<uint32_t>(first + number), std::span<const Record>(records.first(count)),
                       info.lost > 0 && !layout.ring, summaries[number]);
    }
}

}  // namespace lanescope::cuda::ls2
