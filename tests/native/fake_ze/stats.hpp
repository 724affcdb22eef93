// Counts that tests ask for: what is alive, what was at most alive, what was called, what went wrong.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace fake_ze {

// A number of things, and the most there ever were.
class Level {
public:
    explicit Level(const char* name);
    void add(int64_t amount);
    int64_t now() const { return now_.load(std::memory_order_relaxed); }

private:
    friend std::string stats_json();
    friend uint64_t stat(const char* name);
    const char* name_;
    std::atomic<int64_t> now_{0}, most_{0};
    Level* next_;
};

// A function of the API: counts its calls and fails those that FAKE_ZE_FAIL names.
class Entry {
public:
    explicit Entry(const char* function);

    // Count this call. Return the code it shall fail with, or 0.
    uint32_t call();

private:
    friend std::string stats_json();
    friend uint64_t stat(const char* name);
    const char* function_;
    bool is_watched_;
    std::atomic<uint64_t> calls_{0};
    Entry* next_;
};

// All counts as one JSON object: `name` and `name.most` of every level, `calls.FUNCTION` of every function called.
// Calls are counted only when FAKE_ZE_STATS is set or FAKE_ZE_FAIL names the function.
std::string stats_json();

// One of those counts; 0 for a name that nothing has counted yet.
uint64_t stat(const char* name);

// Have a function called at the begin of every call; null: no longer.
void watch_calls(void (*function)(const char* call));

// Write stats_json() to FAKE_ZE_STATS, if set.
void write_stats();

}  // namespace fake_ze

// First statement of every entry point.
#define FAKE_ZE_ENTER(function)                                                       \
    static fake_ze::Entry entry_of_function(#function);                               \
    if (const uint32_t code = entry_of_function.call()) return static_cast<ze_result_t>(code)
