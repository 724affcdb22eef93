#include <vector>

#include "device.hpp"
#include "subcommands.hpp"

// Copy in, launch `count` times, copy out, all on one in-order immediate list; every command signals an event.
void saxpy(uint32_t count) {
    constexpr uint32_t n = 1024;
    Device device;
    std::vector<float> x(n), y(n), result(n);
    for (uint32_t i = 0; i < n; ++i) {
        x[i] = static_cast<float>(i);
        y[i] = 1;
    }
    auto* on_device_x = device.device<float>(n);
    auto* on_device_y = device.device<float>(n);
    auto* kernel = device.kernel("saxpy");
    set_saxpy(kernel, 2, on_device_x, on_device_y, n);
    auto* list = device.immediate(compute_group, in_order_queue);
    auto* copied = device.event();
    auto* launched = device.event(true);

    device.mark("copy x");
    CHECK(zeCommandListAppendMemoryCopy, list, on_device_x, x.data(), n * sizeof(float), nullptr, 0, nullptr);
    device.mark("copy y");
    CHECK(zeCommandListAppendMemoryCopy, list, on_device_y, y.data(), n * sizeof(float), copied, 0, nullptr);
    CHECK(zeEventHostSynchronize, copied, forever);
    CHECK(zeEventHostReset, copied);
    ze_kernel_timestamp_result_t last = {};
    for (uint32_t i = 0; i < count; ++i) {
        device.mark("launch " + std::to_string(i));
        const ze_group_count_t groups = {n / 32, 1, 1};
        // On a driver where resets of such events do nothing, only the list's order makes the second wait a wait.
        CHECK(zeCommandListAppendLaunchKernel, list, kernel, &groups, launched, 0, nullptr);
        device.mark("barrier " + std::to_string(i));
        CHECK(zeCommandListAppendBarrier, list, copied, 0, nullptr);
        CHECK(zeEventHostSynchronize, copied, forever);
        CHECK(zeEventQueryStatus, launched);
        ze_kernel_timestamp_result_t ticks;
        CHECK(zeEventQueryKernelTimestamp, launched, &ticks);
        require(ticks.global.kernelStart != ticks.global.kernelEnd, "a launch takes time");
        require(ticks.global.kernelEnd != last.global.kernelEnd, "each launch has its own end");
        last = ticks;
        CHECK(zeEventHostReset, launched);
        CHECK(zeEventHostReset, copied);
    }
    device.mark("copy result");
    CHECK(zeCommandListAppendMemoryCopy, list, result.data(), on_device_y, n * sizeof(float), copied, 0, nullptr);
    CHECK(zeEventHostSynchronize, copied, forever);
    for (uint32_t i = 0; i < n; ++i) {
        require(result[i] == 1 + 2 * static_cast<float>(count) * static_cast<float>(i), "y = a * x + y");
    }
    CHECK(zeCommandListDestroy, list);
}
