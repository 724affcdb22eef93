// The devices' clocks: free-running counters, of which kernels and the host see the low bits.
#pragma once

#include <atomic>
#include <cstdint>

namespace fake_ze {

// The process ends: commands that take long, or wait for the host, stop where they are.
inline std::atomic<bool> leaving{false};

// Nanoseconds of CLOCK_MONOTONIC, the host clock of zeDeviceGetGlobalTimestamps.
uint64_t host_ns();

// The low `bits` bits.
constexpr uint64_t low_bits(uint64_t ticks, uint32_t bits) {
    return bits >= 64 ? ticks : ticks & ((uint64_t{1} << bits) - 1);
}

class Clock {
public:
    // `ahead`: ticks that this clock is ahead of the first device's.
    explicit Clock(uint64_t ahead);

    // The counter now, all 64 bits.
    uint64_t now() const;

    // The counter at a host time.
    uint64_t at(uint64_t host) const;

    // Let a command begin: return its first tick.
    uint64_t begin();

    // Let a command that costs `cost` ticks end, at the earliest one tick after it began. On the real clock this waits.
    uint64_t end(uint64_t begin, uint64_t cost);

private:
    uint64_t ahead_;
};

}  // namespace fake_ze
