// A program that begins with Level Zero in two ways, `refill HOW`: both in one thread (`one`), or the second in another one
// (`two`) while the first has not ended. Loaders fill their tables of functions for each.
#include <dlfcn.h>
#include <level_zero/ze_api.h>

#include <cstdio>
#include <cstring>
#include <thread>

namespace {

struct InitDesc {
    uint32_t stype = 0x00020021;
    const void* next = nullptr;
    uint32_t flags = ~uint32_t{0};
};

void begin_again() {
    using Init = ze_result_t (*)(uint32_t*, ze_driver_handle_t*, const InitDesc*);
    const auto init = reinterpret_cast<Init>(dlsym(RTLD_DEFAULT, "zeInitDrivers"));
    uint32_t count = 0;
    const InitDesc desc;
    if (init == nullptr || init(&count, nullptr, &desc) != ZE_RESULT_SUCCESS) count = 0;
    std::printf("%u\n", count);
}

}  // namespace

int main(int, char** arguments) {
    uint32_t count = 0;
    if (zeInit(0) != ZE_RESULT_SUCCESS || zeDriverGet(&count, nullptr) != ZE_RESULT_SUCCESS) return 1;
    if (std::strcmp(arguments[1], "one") == 0) {
        begin_again();
    } else {
        std::thread(begin_again).join();
    }
    return 0;
}
