// Brings the recorder into a program before its loader looks for a tracing layer: a library of that name which is there
// already is the one that the loader gets, wherever else it would have looked. For loaders that have a folder of their own
// in mind (DT_RPATH), or that are opened where LD_LIBRARY_PATH is not read.
#include <dlfcn.h>

#include <cstdlib>

namespace {

// Opened, not linked with: its functions have the names of the loader's own, and must not come before those.
__attribute__((constructor)) void bring() {
    const char* recorder = std::getenv("LANESCOPE_ZE_LIBRARY");
    if (recorder != nullptr && *recorder != 0) dlopen(recorder, RTLD_NOW | RTLD_LOCAL);
}

}  // namespace
