#include "api.hpp"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

Api ze;

void bind([[maybe_unused]] const char* library) {
#ifdef FAKE_ZE_APP_LINKED
#define APP_BIND(function) ze.function = &::function;
    APP_FUNCTIONS(APP_BIND)
#else
    void* handle = dlopen(library, RTLD_NOW);
    if (handle == nullptr) {
        std::fprintf(stderr, "fake_ze_app: %s\n", dlerror());
        std::exit(3);
    }
#define APP_BIND(function)                                                                   \
    ze.function = reinterpret_cast<decltype(ze.function)>(dlsym(handle, #function));         \
    if (ze.function == nullptr) {                                                            \
        std::fprintf(stderr, "fake_ze_app: %s lacks %s\n", library, #function);               \
        std::exit(3);                                                                        \
    }
    APP_FUNCTIONS(APP_BIND)
#endif
}
