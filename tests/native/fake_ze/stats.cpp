#include "stats.hpp"

#include <cstdio>
#include <cstring>

#include "driver_quirks.hpp"

namespace fake_ze {
namespace {

// Heads of lists that only grow, so readers need no lock.
std::atomic<Level*> levels{nullptr};
std::atomic<Entry*> entries{nullptr};
// Told of every call; set by a program once.
std::atomic<void (*)(const char*)> watcher{nullptr};

template <class T>
void push(std::atomic<T*>& head, T* item, T*& next) {
    next = head.load();
    while (!head.compare_exchange_weak(next, item)) {
    }
}

}  // namespace

Level::Level(const char* name) : name_(name) { push(levels, this, next_); }

void Level::add(int64_t amount) {
    // Relaxed, as all counts: they must not order threads, or a race checker sees fewer races of the caller's.
    const int64_t now = now_.fetch_add(amount, std::memory_order_relaxed) + amount;
    for (int64_t most = most_.load(std::memory_order_relaxed);
         now > most && !most_.compare_exchange_weak(most, now, std::memory_order_relaxed);) {
    }
}

Entry::Entry(const char* function) : function_(function), is_watched_(!quirks().stats.empty()) {
    for (const Failure& failure : quirks().failures) is_watched_ |= failure.function == function;
    push(entries, this, next_);
}

uint32_t Entry::call() {
    if (auto* const tell = watcher.load(std::memory_order_relaxed)) tell(function_);
    if (!is_watched_) return 0;
    const uint64_t number = calls_.fetch_add(1, std::memory_order_relaxed) + 1;
    for (const Failure& failure : quirks().failures) {
        if (failure.function == function_ && failure.first <= number && number <= failure.last) return failure.code;
    }
    return 0;
}

std::string stats_json() {
    std::string json = "{";
    const auto add = [&](const std::string& name, uint64_t value) {
        json += (json.size() == 1 ? "\"" : ", \"") + name + "\": " + std::to_string(value);
    };
    for (const Level* level = levels; level != nullptr; level = level->next_) {
        add(level->name_, static_cast<uint64_t>(level->now_.load()));
        add(std::string(level->name_) + ".most", static_cast<uint64_t>(level->most_.load()));
    }
    for (const Entry* entry = entries; entry != nullptr; entry = entry->next_) {
        if (entry->is_watched_) add(std::string("calls.") + entry->function_, entry->calls_.load());
    }
    return json + "}\n";
}

uint64_t stat(const char* name) {
    const std::string wanted(name);
    for (const Level* level = levels; level != nullptr; level = level->next_) {
        if (wanted == level->name_) return static_cast<uint64_t>(level->now_.load());
        if (wanted == std::string(level->name_) + ".most") return static_cast<uint64_t>(level->most_.load());
    }
    for (const Entry* entry = entries; entry != nullptr; entry = entry->next_) {
        if (wanted == std::string("calls.") + entry->function_) return entry->calls_.load();
    }
    return 0;
}

void watch_calls(void (*function)(const char*)) { watcher.store(function); }

void write_stats() {
    if (quirks().stats.empty()) return;
    std::FILE* file = std::fopen(quirks().stats.c_str(), "w");
    if (file == nullptr) return;
    std::fputs(stats_json().c_str(), file);
    std::fclose(file);
}

}  // namespace fake_ze
