#include "locks.hpp"

#include <dlfcn.h>
#include <pthread.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "journal.hpp"

#if defined(__SANITIZE_THREAD__)

// The sanitizer watches locks itself, through the same functions.
void watch_locks(void (*)(void (*)(const char*))) {}
void tell_locks() {}

#else

namespace {

thread_local int held = 0;
std::atomic<uint64_t> taken{0};

// Whether code at this address belongs to the recorder.
bool is_recorders(void* address) {
    struct Known {
        void* address;
        bool answer;
    };
    thread_local std::array<Known, 256> known{};
    Known& place = known[(reinterpret_cast<uintptr_t>(address) >> 2) % known.size()];
    if (place.address != address) {
        Dl_info info{};
        const bool answer = dladdr(address, &info) != 0 && info.dli_fname != nullptr &&
                            (std::strstr(info.dli_fname, "ze_tracing_layer") != nullptr ||
                             std::strstr(info.dli_fname, "lanescope_ze") != nullptr);
        place = {address, answer};
    }
    return place.answer;
}

template <class F>
F* real(const char* name) {
    return reinterpret_cast<F*>(dlsym(RTLD_NEXT, name));
}

// What may be called with the recorder's lock held: none of them waits for the device or for another thread.
bool is_allowed(const char* call) {
    for (const char* each : {"zeEventQueryStatus", "zeEventQueryKernelTimestamp", "zeEventHostReset", "zeEventCreate",
                             "zeEventDestroy", "zeEventPoolCreate", "zeEventPoolDestroy", "zeMemAllocHost", "zeFenceCreate",
                             "zeFenceReset", "zeFenceQueryStatus"}) {
        if (std::strcmp(each, call) == 0) return true;
    }
    return false;
}

void on_call(const char* call) {
    if (held > 0 && !is_allowed(call)) note(std::string("lock ") + call);
}

}  // namespace

// These stand in for the C library's, for all libraries of the process.
extern "C" {

__attribute__((visibility("default"))) int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
    static auto* const next = real<int(pthread_mutex_t*)>("pthread_mutex_lock");
    const int result = next(mutex);
    if (result == 0 && is_recorders(__builtin_return_address(0))) {
        ++held;
        taken.fetch_add(1, std::memory_order_relaxed);
    }
    return result;
}

__attribute__((visibility("default"))) int pthread_mutex_trylock(pthread_mutex_t* mutex) noexcept {
    static auto* const next = real<int(pthread_mutex_t*)>("pthread_mutex_trylock");
    const int result = next(mutex);
    if (result == 0 && is_recorders(__builtin_return_address(0))) {
        ++held;
        taken.fetch_add(1, std::memory_order_relaxed);
    }
    return result;
}

__attribute__((visibility("default"))) int pthread_mutex_unlock(pthread_mutex_t* mutex) noexcept {
    static auto* const next = real<int(pthread_mutex_t*)>("pthread_mutex_unlock");
    if (is_recorders(__builtin_return_address(0))) --held;
    return next(mutex);
}

}  // extern "C"

void watch_locks(void (*set)(void (*)(const char*))) {
    if (set != nullptr) set(on_call);
}

void tell_locks() { note("locks " + std::to_string(taken.load())); }

#endif
