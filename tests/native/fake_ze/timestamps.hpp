// Timestamps as programs see them.
#pragma once

#include <level_zero/ze_api.h>

#include "scheduler.hpp"

namespace fake_ze {

// What ticks of an event that was never signalled read as.
inline constexpr uint64_t poison = 0xDEADDEADDEADDEAD;

// The context's counter is the device's, this many ticks ahead, so that tests can tell one from the other.
inline constexpr uint64_t context_ahead = 0x5A5A;

// Four masked words of one interval.
ze_kernel_timestamp_result_t result_of(uint64_t start, uint64_t end);

// The timestamps that a query of this event gets now.
ze_kernel_timestamp_result_t read_ticks(const Event& event);

// What a reset that works does to them.
void reset_ticks(Event& event);

// Copy words so that a host thread that polls them sees each whole: words with release order where aligned.
void store_words(void* to, const void* from, size_t size, uint64_t pause_us);

// Write the truth's line about one command that ran.
void write_op(const Command& command, const Instance& instance, uint64_t start, uint64_t end, uint64_t start_ns,
              uint64_t end_ns);

}  // namespace fake_ze
