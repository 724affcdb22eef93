#include "core/devices/cuda/declared_lanes.hpp"

#include <algorithm>
#include <cstring>

#include "core/devices/cuda/lane_decoder_impl.hpp"

namespace lanescope::cuda::declared {
namespace {

uint64_t load(const uint8_t* at) noexcept {
    uint64_t word = 0;
    std::memcpy(&word, at, sizeof word);
    return word;
}

// 1 for values that are not zero, without a branch.
constexpr uint64_t is_any(uint64_t value) noexcept { return (value | (0 - value)) >> 63; }

// The bits of a field in its word, and those of one of its values; a value that does not fit is in no word.
struct Match {
    uint64_t bits = 0, value = 0;

    Match(const WordField& field, uint64_t of) noexcept : bits(field.mask << field.shift), value(of << field.shift) {
        if (of > field.mask) value = ~bits | 1, bits = bits & ~uint64_t{1};
    }
    // 0 for words that have the value.
    uint64_t difference(uint64_t word) const noexcept { return (word & bits) ^ value; }
};

// Words of records that follow each other: all fields are in them.
struct Packed {
    const uint8_t* at;

    uint64_t word(size_t i, const WordField&) const noexcept { return load(at + 8 * i); }
};

// Records anywhere.
struct Apart {
    const uint8_t* base;
    int64_t stride, first, ring;

    uint64_t word(size_t i, const WordField& field) const noexcept {
        auto at = first + static_cast<int64_t>(i);
        if (ring > 0 && at >= ring) at -= ring;
        return load(base + at * stride + field.byte);
    }
};

// The records of one lane, as LaneDecoder reads them.
template <typename Source, bool is_wide>
class Reader {
  public:
    Reader(const Source& source, size_t size, const Roles& roles, uint64_t expected, uint32_t index) noexcept
        : source_(source), size_(size), stamp_(roles.stamp), event_(roles.event), kind_(roles.kind), empty_of_(roles.empty),
          agree_of_(roles.agree), kinds_(roles.kinds.data()), empty_(roles.empty, roles.empty_value),
          agree_(roles.agree, expected), has_empty_(roles.empty.mask != 0), origin_(roles.origin),
          far_bits_(roles.far_bits), index_(index) {}

    size_t size() const noexcept { return size_; }

    Record operator[](size_t i) const noexcept {
        auto stamp = field(i, stamp_);
        auto kind = static_cast<Kind>(kinds_[field(i, kind_)]);
        if (agree_.difference(source_.word(i, agree_of_)) != 0) [[unlikely]] kind = Kind::unreadable;
        if constexpr (is_wide) {
            // A count that has its highest bit set would have run for longer than a clock of nanoseconds can.
            const bool is_far = stamp >> 63 != 0 || (stamp - origin_) >> far_bits_ != 0;
            if (is_far) [[unlikely]] kind = Kind::unreadable;
            stamp = is_far ? 0 : stamp - origin_;
        }
        if (is_empty(i)) [[unlikely]] kind = Kind::empty;
        return {stamp, index_ + static_cast<uint32_t>(i), static_cast<uint16_t>(field(i, event_)), kind};
    }

    void leave_out_empty_end() noexcept {
        while (size_ > 0 && is_empty(size_ - 1)) --size_;
    }
    void leave_out_from(size_t cut) noexcept { size_ = std::min(cut, size_); }

  private:
    uint64_t field(size_t i, const WordField& of) const noexcept { return source_.word(i, of) >> of.shift & of.mask; }
    bool is_empty(size_t i) const noexcept {
        return has_empty_ && empty_.difference(source_.word(i, empty_of_)) == 0;
    }

    Source source_;
    size_t size_;
    WordField stamp_, event_, kind_, empty_of_, agree_of_;
    const uint8_t* kinds_;
    Match empty_, agree_;
    bool has_empty_;
    uint64_t origin_;
    unsigned far_bits_;
    uint32_t index_;
};

// The SM of records, one after the other.
struct SmOf {
    uint64_t any = 0, all = ~uint64_t{0};

    int64_t value(uint64_t records) const noexcept {
        if (records == 0) return no_sm;
        return any == all ? static_cast<int64_t>(any) : several_sms;
    }
};

size_t length_of(const gather::Lanes& lanes, size_t lane) noexcept {
    return static_cast<size_t>(lanes.start[lane + 1] - lanes.start[lane]);
}

uint64_t expected_of(const Roles& roles, size_t lane) noexcept {
    return roles.agree.mask != 0 ? static_cast<uint64_t>(roles.expected[lane]) : 0;
}

Apart apart(std::span<const uint8_t> data, const gather::Lanes& lanes, size_t lane) noexcept {
    return {data.data() + lanes.base[lane], lanes.stride, lanes.first[lane], lanes.ring[lane]};
}

template <bool is_wide>
LaneCount count_lane(std::span<const uint8_t> data, const gather::Lanes& lanes, const Roles& roles, size_t lane) noexcept {
    const auto source = apart(data, lanes, lane);
    const Reader<Apart, is_wide> records(source, length_of(lanes, lane), roles, expected_of(roles, lane), 0);
    LaneCount found;
    SmOf sm;
    for (size_t i = 0; i < records.size(); ++i) {
        const auto record = records[i];
        if (record.kind == Kind::empty) continue;
        if (record.kind == Kind::unreadable) {
            if (found.bad++ == 0) found.first_bad = static_cast<int64_t>(i);
            continue;
        }
        const bool is_begin = record.kind == Kind::begin;
        found.begins += is_begin;
        found.others += !is_begin;
        const auto value = source.word(i, roles.sm) >> roles.sm.shift & roles.sm.mask;
        sm.any |= value, sm.all &= value;
        if constexpr (is_wide) found.earliest = std::min(found.earliest, static_cast<int64_t>(record.stamp));
    }
    found.sm = sm.value(static_cast<uint64_t>(found.begins + found.others));
    return found;
}

// Lanes that take turns are counted row by row, several at once, as long as nothing is odd about any of their records.
class Rows {
  public:
    Rows(std::span<const uint8_t> data, const gather::Lanes& lanes, const Roles& roles) noexcept
        : data_(data), lanes_(lanes), roles_(roles) {}

    // Whether the kinds and the places of the records allow it.
    bool is_possible(size_t from, size_t to) noexcept {
        if (roles_.is_wide || !roles_.is_one_word() || lanes_.stride < static_cast<int64_t>(8 * (to - from))) return false;
        size_t begins = 0, wrong = 0;
        for (uint64_t value = 0; value <= roles_.kind.mask; ++value) {
            const auto kind = static_cast<Kind>(roles_.kinds[value]);
            if (kind == Kind::begin) ++begins, begin_ = value;
            if (kind >= Kind::unreadable) ++wrong, wrong_ = value;
        }
        if (begins != 1 || wrong > 1) return false;
        has_wrong_ = wrong == 1;
        const auto first = lanes_.base[from];
        for (size_t lane = from; lane < to; ++lane) {
            if (lanes_.base[lane] != first + 8 * static_cast<int64_t>(lane - from) || lanes_.ring[lane] != 0 ||
                lanes_.first[lane] != 0 || length_of(lanes_, lane) > length_of(lanes_, from)) {
                return false;
            }
        }
        return true;
    }

    // Count the lanes of a block, at most `block` of them; return false, having counted nothing, where anything is odd.
    bool count(size_t from, size_t to, std::span<LaneCount> counts) const noexcept {
        const bool has_sm = roles_.sm.mask != 0;
        if (roles_.empty.mask == 0 || has_wrong_) return count_of<true, true>(from, to, counts);
        return has_sm ? count_of<false, true>(from, to, counts) : count_of<false, false>(from, to, counts);
    }

    static constexpr size_t block = 512;

  private:
    // Without `checks_all`, some position may be empty and all kinds are readable.
    template <bool checks_all, bool has_sm>
    bool count_of(size_t from, size_t to, std::span<LaneCount> counts) const noexcept {
        uint64_t begins[block] = {}, used[block] = {}, any[block] = {}, all[block], expected[block];
        const auto width = to - from;
        const Match empty(roles_.empty, roles_.empty_value), begin(roles_.kind, begin_), wrong(roles_.kind, wrong_);
        const auto agree = roles_.agree.mask << roles_.agree.shift, sm = roles_.sm.mask << roles_.sm.shift;
        for (size_t i = 0; i < width; ++i) {
            all[i] = sm;
            const Match match(roles_.agree, expected_of(roles_, from + i));
            if (match.bits != agree) return false;
            expected[i] = match.value;
        }
        const uint64_t is_checked = roles_.empty.mask != 0, has_wrong = has_wrong_;
        const auto rows = length_of(lanes_, from);
        for (size_t row = 0; row < rows; ++row) {
            const auto* at = data_.data() + lanes_.base[from] + static_cast<int64_t>(row) * lanes_.stride;
            auto here = width;
            while (here > 0 && length_of(lanes_, from + here - 1) <= row) --here;
            uint64_t odd = 0;
            for (size_t i = 0; i < here; ++i) {
                const auto word = load(at + 8 * i);
                auto is_used = is_any(empty.difference(word));
                if constexpr (checks_all) is_used |= is_checked ^ 1;
                const auto mask = 0 - is_used;
                odd |= ((word & agree) ^ expected[i]) & mask;
                if constexpr (checks_all) odd |= mask & (is_any(wrong.difference(word)) ^ 1) & has_wrong;
                used[i] += is_used;
                begins[i] += is_used & (is_any(begin.difference(word)) ^ 1);
                if constexpr (has_sm) {
                    any[i] |= word & sm & mask;
                    all[i] &= word | ~mask;
                }
            }
            if (odd != 0) return false;
        }
        for (size_t i = 0; i < width; ++i) {
            auto& found = counts[from + i];
            found = {};
            found.begins = static_cast<int64_t>(begins[i]);
            found.others = static_cast<int64_t>(used[i] - begins[i]);
            found.sm = SmOf{any[i] >> roles_.sm.shift, all[i] >> roles_.sm.shift}.value(used[i]);
        }
        return true;
    }

    std::span<const uint8_t> data_;
    const gather::Lanes& lanes_;
    const Roles& roles_;
    uint64_t begin_ = 0, wrong_ = 0;
    bool has_wrong_ = false;
};

// Copy the words of lanes that stand side by side, each lane in one piece: its words lie a stride apart, which no
// prefetcher follows and which takes a page for each, so several lanes are fetched on one way.
void copy(std::span<const uint8_t> data, const gather::Lanes& lanes, uint64_t byte, size_t from, size_t count, size_t room,
          uint64_t* out) noexcept {
    constexpr int64_t ahead = 16;  // rows
    const uint8_t* at[side_by_side];
    size_t size[side_by_side];
    size_t common = std::numeric_limits<size_t>::max();
    for (size_t i = 0; i < count; ++i) {
        at[i] = data.data() + lanes.base[from + i] + byte;
        size[i] = length_of(lanes, from + i);
        common = lanes.ring[from + i] == 0 && lanes.first[from + i] == 0 ? std::min(common, size[i]) : 0;
    }
    size_t row = 0;
    if (count == side_by_side) {
        const auto stride = lanes.stride;
        for (; row + ahead < common; ++row) {
            const auto step = static_cast<int64_t>(row) * stride;
            __builtin_prefetch(at[0] + step + ahead * stride);
            __builtin_prefetch(at[side_by_side - 1] + step + ahead * stride);
            for (size_t i = 0; i < side_by_side; ++i) out[i * room + row] = load(at[i] + step);
        }
    }
    for (size_t i = 0; i < count; ++i) {
        const Apart source{at[i], lanes.stride, lanes.first[from + i], lanes.ring[from + i]};
        for (size_t of = row; of < size[i]; ++of) out[i * room + of] = source.word(of, {});
    }
}

template <typename Source, bool is_wide>
void decode_lane(const Source& source, const gather::Lanes& lanes, const Roles& roles, size_t lane, const LaneFacts& facts,
                 Summary& summary, LaneDecoder& decoder) noexcept {
    Reader<Source, is_wide> records(source, length_of(lanes, lane), roles, expected_of(roles, lane), facts.overwritten[lane]);
    records.leave_out_empty_end();
    const auto depth = facts.cuts.size() / lanes.size();
    const auto cuts = facts.cuts.subspan(depth * lane, depth);
    const bool is_cut = !cuts.empty() && static_cast<size_t>(cuts[0]) < records.size();
    if (is_cut && !facts.keeps_earlier) records.leave_out_from(static_cast<size_t>(cuts[0]));
    // What an earlier launch left behind this one's records was room that this one did not need.
    decoder.decode(static_cast<uint32_t>(lane), records, facts.full[lane] != 0 && !is_cut, summary, cuts);
}

}  // namespace

bool Roles::is_one_word() const noexcept {
    for (const auto* field : {&event, &kind, &empty, &agree, &sm}) {
        if (field->mask != 0 && field->byte != stamp.byte) return false;
    }
    return true;
}

void count(std::span<const uint8_t> data, const gather::Lanes& lanes, const Roles& roles, size_t from, size_t to,
           std::span<LaneCount> counts) noexcept {
    for (size_t first = from; first < to; first += Rows::block) {
        const auto last = std::min(to, first + Rows::block);
        Rows rows(data, lanes, roles);
        if (rows.is_possible(first, last) && rows.count(first, last, counts)) continue;
        for (size_t lane = first; lane < last; ++lane) {
            counts[lane] = roles.is_wide ? count_lane<true>(data, lanes, roles, lane)
                                         : count_lane<false>(data, lanes, roles, lane);
        }
    }
}

bool is_copied(const gather::Lanes& lanes, const Roles& roles) noexcept {
    return roles.is_one_word() && lanes.stride != 8;
}

void decode(std::span<const uint8_t> data, const gather::Lanes& lanes, const Roles& roles, size_t from, size_t to,
            const LaneFacts& facts, std::span<uint64_t> scratch, std::span<Summary> summaries,
            LaneDecoder& decoder) noexcept {
    const auto one = [&](const auto& source, size_t lane) {
        using Source = std::decay_t<decltype(source)>;
        if (roles.is_wide) decode_lane<Source, true>(source, lanes, roles, lane, facts, summaries[lane], decoder);
        else decode_lane<Source, false>(source, lanes, roles, lane, facts, summaries[lane], decoder);
    };
    if (!is_copied(lanes, roles)) {
        for (size_t lane = from; lane < to; ++lane) {
            if (roles.is_one_word() && lanes.ring[lane] == 0) {
                one(Packed{data.data() + lanes.base[lane] + 8 * lanes.first[lane] + roles.stamp.byte}, lane);
            } else {
                one(apart(data, lanes, lane), lane);
            }
        }
        return;
    }
    for (size_t lane = from; lane < to; lane += side_by_side) {
        const auto width = std::min(side_by_side, to - lane);
        size_t room = 0;
        for (size_t i = 0; i < width; ++i) room = std::max(room, length_of(lanes, lane + i));
        copy(data, lanes, roles.stamp.byte, lane, width, room, scratch.data());
        for (size_t i = 0; i < width; ++i) {
            one(Packed{reinterpret_cast<const uint8_t*>(scratch.data() + i * room)}, lane + i);
        }
    }
}

void to_tirx(std::span<const uint8_t> data, const Roles& roles, size_t lane, std::span<uint64_t> out) noexcept {
    constexpr uint64_t event_mask = 0x3FF;
    const auto lanes = roles.expected.size();
    const auto field = [](uint64_t word, const WordField& of) { return word >> of.shift & of.mask; };
    // Without a test, a word of zeros is an empty one.
    const bool has_empty = roles.empty.mask != 0;
    const Match empty(has_empty ? roles.empty : WordField{0, 0, ~uint64_t{0}}, has_empty ? roles.empty_value : 0);
    for (size_t i = 0; i < out.size(); ++i) {
        const auto word = load(data.data() + 8 * i);
        const Match agree(roles.agree, expected_of(roles, lane));
        const auto kind = roles.kinds[field(word, roles.kind)];
        const bool is_sound = kind < static_cast<uint8_t>(Kind::unreadable) && agree.difference(word) == 0;
        const auto made = (is_sound ? kind : 0) | (field(word, roles.event) & event_mask) << 2 |
                          (is_sound ? lane : lane ^ 1) << 12 | field(word, roles.stamp) << 32;
        out[i] = empty.difference(word) == 0 ? 0 : made;
        if (++lane == lanes) lane = 0;
    }
}

}  // namespace lanescope::cuda::declared
