// A thread that measures every now and then, and has to be on time although others use all processors.
#pragma once

#include <vector>

#ifdef __linux__
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#endif

namespace lanescope::bind {

// Have this thread wait for its turn behind others no longer than it has to: it works for microseconds, so it asks for the
// shortest of slices, and who asks for less is served first when he wakes (Linux 6.12). No right is needed for that, and its
// share of the processors stays. Older systems, and others, leave it as it is.
inline void ask_for_prompt_turns() noexcept {
#if defined(__linux__) && defined(SYS_sched_getattr) && defined(SYS_sched_setattr)
    // As the kernel has it (linux/sched/types.h), which cannot be included beside sched.h of some C libraries.
    struct Attributes {
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t runtime, deadline, period;
    } mine{};
    constexpr uint64_t shortest = 100'000;  // ns
    if (syscall(SYS_sched_getattr, 0, &mine, sizeof mine, 0) != 0 || mine.policy != 0) return;
    mine.size = sizeof mine;
    mine.runtime = shortest;
    (void)syscall(SYS_sched_setattr, 0, &mine, 0);
#endif
}

// The processors on each of which a thread should measure: one that waits for its turn on a busy processor measures nothing
// of what works on another. None on machines of many, where one thread finds a free one.
inline std::vector<int> processors_to_measure_on() {
    std::vector<int> found;
#ifdef __linux__
    constexpr int most = 8;
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0 || CPU_COUNT(&allowed) > most) return found;
    for (int i = 0; i < CPU_SETSIZE; ++i) {
        if (CPU_ISSET(i, &allowed)) found.push_back(i);
    }
#endif
    return found;
}

// Have this thread work on one processor only.
inline void stay_on([[maybe_unused]] int processor) noexcept {
#ifdef __linux__
    cpu_set_t only;
    CPU_ZERO(&only);
    CPU_SET(processor, &only);
    (void)sched_setaffinity(0, sizeof only, &only);
#endif
}

}  // namespace lanescope::bind
