// The recorder of this process: its settings, its folder, the streams of its threads, and what it counts of itself.
#pragma once

#include <atomic>
#include <mutex>
#include <string>

#include "api/enums.hpp"
#include "stream/stream.hpp"

namespace lanescope::levelzero {

// A mutex that counts how often somebody had to wait for it.
class Mutex {
public:
    void lock() {
        // It is held for a moment only: who comes to it then looks again some times before it sleeps, ever later, so that
        // the thread that has it can use it a few times more before all its memory moves to another core.
        for (int pauses = 1; pauses <= most_pauses; pauses *= 2) {
            if (!held_.load(std::memory_order_relaxed) && try_lock()) return;
            for (int i = 0; i < pauses; ++i) pause();
        }
        waits_.fetch_add(1, std::memory_order_relaxed);
        mutex_.lock();
        held_.store(true, std::memory_order_relaxed);
    }
    bool try_lock() {
        if (!mutex_.try_lock()) return false;
        held_.store(true, std::memory_order_relaxed);
        return true;
    }
    void unlock() {
        held_.store(false, std::memory_order_relaxed);
        mutex_.unlock();
    }
    u64 waits() const { return waits_.load(std::memory_order_relaxed); }

private:
    static constexpr int most_pauses = 256;
    static void pause() {
#if defined(__x86_64__) || defined(__i386__)
        __builtin_ia32_pause();
#endif
    }

    std::mutex mutex_;
    std::atomic<bool> held_ = false;
    std::atomic<u64> waits_ = 0;
};

// What a thread knows; all zeros at its begin.
struct Local {
    Stream* stream;
    bool refused;        // it cannot have a stream
    bool holds;          // the tracer's lock
    u64 generation;      // the list that it used last, found without a search as long as no list came or went
    Handle list;
    void* list_data;
    StampClock clock;
};
extern constinit thread_local Local local __attribute__((tls_model("initial-exec")));

struct Settings {
    std::string output;  // the folder that recordings go to; empty: nothing is recorded
    std::string chain;   // a tracing layer that the program wants besides
    bool host_calls = true;
};

// Reads the environment; once, whoever comes first.
const Settings& settings();
inline bool is_active() { return !settings().output.empty(); }

// Whether calls are written now, by function: selected by the filter, and inside of a region.
extern std::atomic<bool> told[function_count];
// Whether this is inside of a region.
extern std::atomic<bool> recording;
void set_recording(bool on);
// Whether calls of a function are written inside of regions.
bool is_selected(Function function);

// Creates the stream of the thread; null if the trace cannot be written.
Stream* new_stream();
inline Stream* this_stream() { return local.stream != nullptr ? local.stream : new_stream(); }

// Whether threads besides this one have written events and not ended yet; those of the recorder count as well.
bool has_other_threads();

// Says once on standard error that the trace cannot be written.
void output_failed(const char* path, int error);

}  // namespace lanescope::levelzero
