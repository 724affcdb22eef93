// Work that falls into parts, on as many threads as the machine gives us.
#pragma once
#include <algorithm>
#include <cstddef>
#include <system_error>
#include <thread>
#include <vector>

namespace lanescope::bind {

// More of them would wait for memory.
inline constexpr size_t max_threads = 4;

// How many the work of this thread may take: one where others do the same work beside it.
inline thread_local size_t allowed_threads = max_threads;

// Return how many parts are worth their threads, for work of `size` units of which a thread should have at least `least`.
inline size_t parts(size_t size, size_t least) {
    const size_t cores = std::max<size_t>(1, std::thread::hardware_concurrency());
    return std::clamp<size_t>(size / least, 1, std::min(cores, allowed_threads));
}

// Call work(i) for each part, at the same time where threads can be had. It must not throw.
template <class Work>
void each_part(size_t count, const Work& work) {
    std::vector<std::thread> threads;
    threads.reserve(count);
    for (size_t i = 1; i < count; ++i) {
        try {
            threads.emplace_back([&work, i] { work(i); });
        } catch (const std::system_error&) {
            work(i);
        }
    }
    work(0);
    for (auto& thread : threads) thread.join();
}

}  // namespace lanescope::bind
