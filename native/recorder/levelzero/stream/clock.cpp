#include "stream/clock.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <string_view>

namespace lanescope::levelzero {

namespace {

struct Reading {
    u64 stamp, ns;
};

// Of the process: its first reading, and the rate once it is known.
Reading first{};
std::atomic<u64> known_rate = 0;

constexpr u64 ms = 1'000'000;

// Both together. Of some tries the shortest counts, as a thread may be interrupted in between.
Reading read_both() {
    Reading found{};
    u64 shortest = ~u64{0};
    for (int i = 0; i < 4 && shortest > 400; ++i) {
        const u64 before = counter();
        const u64 ns = host_ns();
        const u64 took = counter() - before;
        if (took >= shortest) continue;
        shortest = took;
        found = {before + took / 2, ns};
    }
    return found;
}

u64 rate_between(const Reading& begin, const Reading& end) {
#if defined(__x86_64__)
    if (end.stamp <= begin.stamp || end.ns <= begin.ns) return 0;
    return static_cast<u64>((static_cast<unsigned __int128>(end.ns - begin.ns) << 32) / (end.stamp - begin.stamp));
#else
    return 0;
#endif
}

// Whether the kernel itself keeps its clock by the counter: only then is it the same on all processors.
bool is_kept_by_counter() {
#if defined(__x86_64__)
    const int file = ::open("/sys/devices/system/clocksource/clocksource0/current_clocksource", O_RDONLY | O_CLOEXEC);
    if (file < 0) return false;
    char text[8] = {};
    const ssize_t count = ::read(file, text, sizeof text - 1);
    ::close(file);
    return count > 0 && std::string_view(text) == "tsc\n";
#else
    return false;
#endif
}

}  // namespace

void begin_stamps() {
    if (is_kept_by_counter()) first = read_both();
}

void StampClock::adopt() {
    if (first.ns == 0) return;
    u64 found = known_rate.load(std::memory_order_relaxed);
    if (found == 0) {
        if (host_ns() - first.ns < 10 * ms) return;
        found = rate_between(first, read_both());
        if (found == 0) return;
        known_rate.store(found, std::memory_order_relaxed);
    }
    const Reading now = read_both();
    stamp = base_stamp = now.stamp;
    ns = base_ns = now.ns;
    rate = found;
}

void StampClock::renew() {
    const Reading now = read_both();
    stamp = now.stamp;
    ns = now.ns;
    if (now.ns - base_ns < 100 * ms) return;
    const u64 found = rate_between({base_stamp, base_ns}, now);
    // A machine that slept, or moved to another one, counted something else meanwhile.
    const u64 apart = found > rate ? found - rate : rate - found;
    if (found != 0 && apart < rate / 1000) {
        rate = found;
        known_rate.store(found, std::memory_order_relaxed);
    }
    base_stamp = now.stamp;
    base_ns = now.ns;
}

}  // namespace lanescope::levelzero
