// Reader of Proton's instrumentation buffers: 32-bit words, a scratch area for each CTA with a ring for each warp.
#pragma once
#include "core/devices/cuda/lane_decoder.hpp"

namespace lanescope::cuda::proton {

constexpr unsigned event_bits = 8;

// Triton 3.9 has scopes and asynchronous events, which it tells by the highest bit of the field; trees with typed entries
// have the others. The producer's own reader takes every value with that bit for an asynchronous event.
enum EntryType : uint32_t { scope, async, mark, metric, async_39 };
// Bits of a tag that no producer sets, beside those of the type.
constexpr uint32_t reserved_bits = 0xF800;

// One warp's ring: entries of two words.
struct Ring {
    int64_t start;    // its first word in the buffer
    int64_t entries;  // that have room, all of them inside the buffer
    int64_t first;    // the oldest one
    int64_t stored;   // entries to read
    int64_t lost;     // entries that were overwritten
};

// What the entries of all rings are.
struct Counts {
    uint64_t begins = 0;
    uint64_t marks = 0;     // everything else
    uint64_t async = 0;     // of them, begins and ends of asynchronous scopes
    uint64_t values = 0;    // of them, values
    uint64_t orphans = 0;   // of them, those whose record the ring has overwritten
    uint64_t reserved = 0;  // entries of any type with bits that no producer sets
    bool wide = false;     // any stamp has more than 32 bits
};
Counts count(std::span<const uint32_t> words, std::span<const Ring> rings) noexcept;

// Decode rings, whose lanes are numbered from `first` on. Ends and begins of asynchronous scopes, marks and values come out as instants, a value with the
// stamp of the record that it belongs to. Index 0 represents overwritten records.
void decode(std::span<const uint32_t> words, uint64_t first, std::span<const Ring> rings, std::span<Record> records,
            std::span<Summary> summaries, LaneDecoder& decoder) noexcept;

}  // namespace lanescope::cuda::proton
