#include "device.hpp"
#include "subcommands.hpp"

void unordered(uint32_t count) {
    constexpr ze_group_count_t groups = {1, 1, 1};
    Device device;
    auto* memory = device.host<uint32_t>(count);
    auto* list = device.immediate(compute_group);
    auto* go = device.event();
    auto* done = device.event();
    for (uint32_t i = 0; i < count; ++i) {
        memory[i] = 0;
        auto* kernel = device.kernel("add");
        uint32_t* mine = memory + i;
        set_argument(kernel, 0, mine);
        set_argument(kernel, 1, i + 1);
        set_argument(kernel, 2, uint32_t{1});
        device.mark(std::to_string(i));
        CHECK(zeCommandListAppendLaunchKernel, list, kernel, &groups, nullptr, 1, &go);
    }
    CHECK(zeEventHostSignal, go);
    CHECK(zeCommandListAppendBarrier, list, done, 0, nullptr);
    CHECK(zeEventHostSynchronize, done, forever);
    for (uint32_t i = 0; i < count; ++i) require(memory[i] == i + 1, "every launch ran once");
    CHECK(zeCommandListDestroy, list);
}
