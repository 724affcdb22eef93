// How calls come to us: tables of function pointers that a loader hands over, functions that are found before the
// loader's because the library is preloaded, and functions that a driver gives out by name.
#pragma once

#include "hooks.hpp"

namespace lanescope::levelzero {

// Our function for a function of the API, for tables or for what drivers give out.
void* entry(Way way, Function function);
// Whether it has to be called even when its calls are not written.
bool is_followed(Function function);

// Returns our function for one that a driver gave out by name, or that one itself where we know none.
void* wrapped_extension(Text name, void* address);

// Whether a loader has handed us its tables; then preloaded functions only pass calls on to it.
extern std::atomic<bool> is_layer;
// Finds the loader's own functions, once.
void find_loader();

template <Function F, class... A>
Result preloaded(A... a) {
    find_loader();
    const auto next = target<F>(Way::preload);
    if (next == nullptr) return unsupported_feature;
    if (!is_active() || is_layer.load(std::memory_order_acquire)) return next(a...);
    if constexpr (F == Function::zeInit || F == Function::zeInitDrivers) {
        // Whether the loader has layers is known when it has come back.
        const u64 begin = host_ns();
        const Result result = next(a...);
        if (!is_layer.load(std::memory_order_acquire)) Entry<F, Way::preload>::tell_late(begin, result, a...);
        return result;
    } else {
        return Entry<F, Way::preload>::call(a...);
    }
}

}  // namespace lanescope::levelzero
