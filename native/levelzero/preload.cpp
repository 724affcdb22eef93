// The library to preload, for programs whose loader does not take the layer: the program's calls find our functions
// before the loader's. Calls of programs that look the functions up in a loader they opened themselves are not seen.
#include <dlfcn.h>

#include "entries.hpp"

namespace lanescope::levelzero {

namespace {

void find_loader() {
    static const bool done = [] {
        for (size_t i = 0; i < function_count; ++i) {
            targets[static_cast<size_t>(Way::preload)][i].store(dlsym(RTLD_NEXT, function_names[i]));
        }
        return true;
    }();
    (void)done;
}

}  // namespace

template <Function F, class... A>
Result preloaded(A... a) {
    find_loader();
    const auto next = target<F>(Way::preload);
    if (next == nullptr) return unsupported_feature;
    if (!is_active()) return next(a...);
    return reinterpret_cast<Pointer<F>>(entry(Way::preload, F))(a...);
}

#define CALL(table, function, minor, ...)                                                                 \
    extern "C" __attribute__((visibility("default"))) Result function(LANESCOPE_PARAMETERS(__VA_ARGS__)) { \
        return preloaded<Function::function>(LANESCOPE_NAMES(__VA_ARGS__));                               \
    }
#include "functions.def"

}  // namespace lanescope::levelzero
