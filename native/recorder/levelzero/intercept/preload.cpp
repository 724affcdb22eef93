// Brings the recorder into a program before its loader looks for a tracing layer: where a library of that name is there
// already the loader gets it, wherever else it would have looked. For programs and loaders that name a folder for what
// they open (DT_RPATH), which comes before LD_LIBRARY_PATH.
#include <dlfcn.h>

#include <cstdlib>

namespace {

// Opened, not linked with: its functions have the names of the loader's own, and must not come before those.
__attribute__((constructor)) void bring() {
    const char* recorder = std::getenv("LANESCOPE_ZE_LIBRARY");
    if (recorder != nullptr && *recorder != 0) dlopen(recorder, RTLD_NOW | RTLD_LOCAL);
}

}  // namespace
