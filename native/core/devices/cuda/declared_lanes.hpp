// Lanes of declared layouts whose roles are fields as they stand: counted, then decoded straight from the bytes.
#pragma once
#include <array>

#include "core/devices/cuda/gather.hpp"
#include "core/devices/cuda/lane_decoder.hpp"

namespace lanescope::cuda::declared {

// Bits of a word of 8 bytes that lies inside the record.
struct WordField {
    uint64_t byte = 0;  // of the word, from the start of the record
    unsigned shift = 0;
    uint64_t mask = 0;  // of the shifted value; 0: no field

    gather::Field word() const noexcept { return {byte, 0, 64}; }
};

// Where the roles of a record are.
struct Roles {
    WordField stamp, event, kind;
    std::span<const uint8_t> kinds;  // what each value of the kind is
    WordField empty;
    uint64_t empty_value = 0;
    WordField agree;
    std::span<const int64_t> expected;  // of each lane, the value of `agree` in records that agree
    WordField sm;
    // Stamps as wide as a word are counted from the origin; those at 2 to the power of `far_bits` behind it are unreadable.
    bool is_wide = false;
    uint64_t origin = 0;
    unsigned far_bits = 63;

    bool is_one_word() const noexcept;
    // In the order of the columns in which they are given.
    std::array<WordField*, 6> all() noexcept { return {&stamp, &event, &kind, &empty, &agree, &sm}; }
};

// One row of int64 for each lane.
struct LaneCount {
    int64_t begins = 0;
    int64_t others = 0;      // other readable records
    int64_t bad = 0;         // unreadable ones
    int64_t first_bad = -1;  // position of the first of them
    int64_t sm = -1;         // of the readable records; no_sm, several_sms
    int64_t earliest = std::numeric_limits<int64_t>::max();  // stamp, where stamps are wide
};
constexpr int64_t no_sm = -1, several_sms = -2;

// Count the records of the lanes from `from` to before `to`; is_inside() has accepted the words of all fields.
void count(std::span<const uint8_t> data, const gather::Lanes& lanes, const Roles& roles, size_t from, size_t to,
           std::span<LaneCount> counts) noexcept;

// Number of lanes that are read together because they share cache lines.
constexpr size_t side_by_side = 8;

// Whether records of a lane are so far apart that they are copied before they are decoded: then `decode` needs scratch
// memory of side_by_side words for each position of the longest lane.
bool is_copied(const gather::Lanes& lanes, const Roles& roles) noexcept;

// What is known of lanes beyond their records, one for each lane.
struct LaneFacts {
    std::span<const uint8_t> overwritten;  // 1: position 0 represents overwritten records
    std::span<const uint8_t> full;         // 1: more may have been dropped than is counted
    // The first positions that earlier launches left, as many for each lane and not falling; empty: none has any.
    std::span<const int64_t> cuts;
    bool keeps_earlier = false;            // those positions are decoded too
};

// Decode lanes.
void decode(std::span<const uint8_t> data, const gather::Lanes& lanes, const Roles& roles, size_t from, size_t to,
            const LaneFacts& facts, std::span<uint64_t> scratch, std::span<Summary> summaries,
            LaneDecoder& decoder) noexcept;

// Rewrite records that are a word each, and of which each lane has one in turn, as TIRx v1 would have stored them: those
// that are no record of their lane name another one. All fields begin in byte 0; `data` begins with a record of `lane`, and
// `roles.expected` has a value for each lane. `out` has a place for each word.
void to_tirx(std::span<const uint8_t> data, const Roles& roles, size_t lane, std::span<uint64_t> out) noexcept;

}  // namespace lanescope::cuda::declared
