#include "device.hpp"
#include "subcommands.hpp"

// Execute two lists together and learn from a fence that both are done: by waiting and by polling in turn.
void fence(uint32_t count) {
    constexpr uint32_t n = 32;
    constexpr ze_group_count_t groups = {1, 1, 1};
    Device device;
    auto* flag = device.host<uint32_t>(1);
    auto* memory = device.host<uint32_t>(n);
    for (uint32_t i = 0; i < n; ++i) memory[i] = 0;
    auto* hold = device.event();
    auto* add = device.kernel("add");
    set_argument(add, 0, memory);
    set_argument(add, 1, uint32_t{5});
    set_argument(add, 2, n);
    *flag = 0;
    auto* queue = device.queue(compute_group);
    ze_command_list_handle_t lists[] = {device.regular(compute_group), device.regular(compute_group)};
    device.mark("wait");
    CHECK(zeCommandListAppendWaitOnEvents, lists[0], 1, &hold);
    device.mark("add");
    CHECK(zeCommandListAppendLaunchKernel, lists[0], add, &groups, nullptr, 0, nullptr);
    CHECK(zeCommandListAppendBarrier, lists[0], nullptr, 0, nullptr);
    device.mark("add again");
    CHECK(zeCommandListAppendLaunchKernel, lists[1], add, &groups, nullptr, 0, nullptr);
    for (auto* list : lists) CHECK(zeCommandListClose, list);
    const ze_fence_desc_t desc = {ZE_STRUCTURE_TYPE_FENCE_DESC, nullptr, 0};
    ze_fence_handle_t fence;
    CHECK(zeFenceCreate, queue, &desc, &fence);
    for (uint32_t run = 0; run < count; ++run) {
        CHECK(zeCommandQueueExecuteCommandLists, queue, 2, lists, fence);
        require(ze.zeFenceQueryStatus(fence) == ZE_RESULT_NOT_READY, "the fence waits for the first list");
        require(ze.zeFenceHostSynchronize(fence, 1000) == ZE_RESULT_NOT_READY, "a wait ends at its time limit");
        CHECK(zeEventHostSignal, hold);
        if (run % 2 == 0) {
            CHECK(zeFenceHostSynchronize, fence, forever);
        } else {
            while (ze.zeFenceQueryStatus(fence) == ZE_RESULT_NOT_READY) {
            }
        }
        CHECK(zeFenceQueryStatus, fence);
        for (uint32_t i = 0; i < n; ++i) require(memory[i] == 10 * (run + 1), "both lists ran");
        CHECK(zeFenceReset, fence);
        CHECK(zeEventHostReset, hold);
    }
    CHECK(zeFenceDestroy, fence);
    for (auto* list : lists) CHECK(zeCommandListDestroy, list);
    CHECK(zeCommandQueueDestroy, queue);
}
