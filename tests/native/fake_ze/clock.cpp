#include "clock.hpp"

#include <time.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "driver_quirks.hpp"

namespace fake_ze {
namespace {

__extension__ using Wide = __int128;

// Virtual time is one counter for all devices: their clocks differ by a constant.
std::atomic<uint64_t> virtual_ticks{0};

}  // namespace

uint64_t host_ns() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec);
}

Clock::Clock(uint64_t ahead) : ahead_(ahead) {}

uint64_t Clock::at(uint64_t host) const {
    const Quirks& h = quirks();
    if (h.virtual_clock) return h.start + ahead_ + virtual_ticks.load();
    static const uint64_t origin_ns = host;  // the first reading is FAKE_ZE_START
    const Wide passed = static_cast<Wide>(host) - static_cast<Wide>(origin_ns);
    const Wide scaled = passed * static_cast<Wide>(h.frequency) * (1'000'000 + h.ppm);
    return h.start + ahead_ + static_cast<uint64_t>(static_cast<int64_t>(scaled / 1'000'000'000'000'000));
}

uint64_t Clock::now() const { return at(host_ns()); }

uint64_t Clock::begin() {
    if (quirks().virtual_clock) return quirks().start + ahead_ + ++virtual_ticks;
    return now();
}

uint64_t Clock::end(uint64_t begin, uint64_t cost) {
    if (quirks().virtual_clock) return quirks().start + ahead_ + (virtual_ticks += cost == 0 ? 1 : cost);
    const uint64_t due = begin + (cost == 0 ? 1 : cost);
    for (uint64_t ticks = now();; ticks = now()) {
        if (static_cast<int64_t>(ticks - due) >= 0 || leaving) return ticks;
        const uint64_t left_ns = (due - ticks) * 1'000'000'000 / quirks().frequency;
        // Sleeping overshoots by tens of microseconds; the last stretch is spun.
        if (left_ns > 200'000) {
            std::this_thread::sleep_for(std::chrono::nanoseconds(std::min<uint64_t>(left_ns - 100'000, 50'000'000)));
        }
    }
}

}  // namespace fake_ze
