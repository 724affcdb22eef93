#include <set>

#include "device.hpp"
#include "subcommands.hpp"

namespace {

constexpr uint32_t n = 32, launches = 3;
constexpr ze_group_count_t groups = {1, 1, 1};

// Record the launches; with a barrier behind each, so that the order does not matter to the result.
void record(Device& device, ze_command_list_handle_t list, ze_kernel_handle_t kernel, ze_event_handle_t event) {
    for (uint32_t i = 0; i < launches; ++i) {
        const bool is_last = i + 1 == launches;
        device.mark("launch " + std::to_string(i));
        CHECK(zeCommandListAppendLaunchKernel, list, kernel, &groups, is_last ? event : nullptr, 0, nullptr);
        CHECK(zeCommandListAppendBarrier, list, nullptr, 0, nullptr);
    }
    CHECK(zeCommandListClose, list);
}

}  // namespace

// Execute a closed list again and again, reading its event's ticks each time; then reset it and do it all once more.
void resubmit(uint32_t count) {
    Device device;
    auto* memory = device.host<uint32_t>(n);
    for (uint32_t i = 0; i < n; ++i) memory[i] = 0;
    auto* kernel = device.kernel("add");
    set_argument(kernel, 0, memory);
    set_argument(kernel, 1, uint32_t{1});
    set_argument(kernel, 2, n);
    auto* queue = device.queue(compute_group);
    uint32_t expected = 0;
    for (const uint32_t flags : {0u, in_order_list}) {
        auto* list = device.regular(compute_group, flags);
        for (int life = 0; life < 2; ++life) {
            auto* event = device.event(true);
            record(device, list, kernel, event);
            std::set<uint64_t> ends;
            for (uint32_t run = 0; run < count; ++run) {
                CHECK(zeEventHostReset, event);
                CHECK(zeCommandQueueExecuteCommandLists, queue, 1, &list, nullptr);
                CHECK(zeCommandQueueSynchronize, queue, forever);
                CHECK(zeEventQueryStatus, event);
                ze_kernel_timestamp_result_t ticks;
                CHECK(zeEventQueryKernelTimestamp, event, &ticks);
                ends.insert(ticks.global.kernelEnd);
                expected += launches;
                for (uint32_t i = 0; i < n; ++i) require(memory[i] == expected, "every launch of every run ran once");
            }
            require(ends.size() == count, "each run has its own ticks");
            CHECK(zeCommandListReset, list);
        }
        CHECK(zeCommandListDestroy, list);
    }
    CHECK(zeCommandQueueDestroy, queue);
}
