// The clock of the trace, CLOCK_MONOTONIC, by way of the processor's counter where the kernel keeps that clock by it.
//
// A call is stamped four times, and a reading of the counter takes half the time of a reading of the clock. Each thread
// reads both together a few thousand times a second and goes on from there: at a rate that the last 100 ms had, for not
// more than 250 us, so that a clock that is being adjusted by 500 ppm is followed to 0.1 us. Until a process has run for
// 10 ms, and on other machines, stamps are readings of the clock.
#pragma once

#include <ctime>

#include "api/api.hpp"

namespace lanescope::levelzero {

inline u64 host_ns() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<u64>(now.tv_sec) * 1'000'000'000 + static_cast<u64>(now.tv_nsec);
}

inline u64 counter() {
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#else
    return 0;
#endif
}

// A thread's way from stamps to times; all zeros at its begin.
struct StampClock {
    u64 stamp, ns;            // read together last
    u64 rate;                 // ns of a count, times 2^32; 0: stamps are ns
    u64 base_stamp, base_ns;  // read together up to 100 ms before, for the rate

    // Before the first stamp of a call: what a stamp is stays the same until the call has ended.
    void prepare() {
        if (rate == 0) [[unlikely]] adopt();
    }
    u64 read() const { return rate != 0 ? counter() : host_ns(); }
    // How long something took, ns.
    u64 length(u64 counts) const { return rate != 0 ? scaled(counts) : counts; }
    // The time of a stamp, ns.
    u64 time(u64 at) {
        if (rate == 0) [[unlikely]] return at;
        if (at - stamp > longest) [[unlikely]] renew();
        return static_cast<i64>(at - stamp) >= 0 ? ns + scaled(at - stamp) : ns - scaled(stamp - at);
    }

private:
    static constexpr u64 longest = u64{1} << 19;  // counts: 250 us at 2 GHz
    u64 scaled(u64 counts) const {
#if defined(__x86_64__)
        return static_cast<u64>((static_cast<unsigned __int128>(counts) * rate) >> 32);
#else
        return counts;
#endif
    }
    void adopt();
    void renew();
};

// Once, at the begin of the process.
void begin_stamps();

}  // namespace lanescope::levelzero
