#include "device.hpp"
#include "subcommands.hpp"

namespace {

constexpr uint32_t n = 256;
constexpr ze_group_count_t groups = {n / 32, 1, 1};

void set_add(ze_kernel_handle_t kernel, uint32_t* p, uint32_t value) {
    set_argument(kernel, 0, p);
    set_argument(kernel, 1, value);
    set_argument(kernel, 2, n);
}

}  // namespace

// Each round: the copy engine fills a buffer, an unordered compute list adds to it twice with a barrier between and asks
// for the timestamps in the list, a regular list adds once more, and the copy engine brings the buffer back; the host
// holds the round until it has looked.
void mixed(uint32_t count) {
    Device device;
    auto* buffer = device.device<uint32_t>(n);
    auto* back = device.host<uint32_t>(n);
    auto* stamps = device.host<uint64_t>(2);
    auto* results = device.host<ze_kernel_timestamp_result_t>(2);
    auto* compute = device.immediate(compute_group);
    auto* copy = device.immediate(copy_group, in_order_queue);
    auto* queue = device.queue(compute_group);
    auto* one = device.kernel("add");
    auto* ten = device.kernel("add");
    auto* busy = device.kernel("busy_300");
    set_add(one, buffer, 1);
    set_add(ten, buffer, 10);
    auto* regular = device.regular(compute_group, in_order_list);
    auto* sizes = device.host<ze_group_count_t>(1);
    *sizes = groups;
    device.mark("regular busy");
    CHECK(zeCommandListAppendLaunchKernel, regular, busy, &groups, nullptr, 0, nullptr);
    device.mark("regular add");
    CHECK(zeCommandListAppendLaunchKernelIndirect, regular, one, sizes, nullptr, 0, nullptr);
    CHECK(zeCommandListClose, regular);

    for (uint32_t round = 0; round < count; ++round) {
        // Events of their own for each round: under a driver whose resets do nothing they could not be used again.
        auto* go = device.event();
        auto* filled = device.event();
        auto* first = device.event(true);
        auto* second = device.event(true);
        auto* asked = device.event();
        auto* returned = device.event();
        const uint32_t pattern = 0x01010101 * (round % 100);
        const auto byte = static_cast<uint8_t>(round % 100);

        device.mark("fill");
        CHECK(zeCommandListAppendMemoryFill, copy, buffer, &byte, 1, n * sizeof(uint32_t), filled, 1, &go);
        device.mark("add one");
        CHECK(zeCommandListAppendLaunchKernel, compute, one, &groups, first, 1, &filled);
        device.mark("barrier");
        CHECK(zeCommandListAppendBarrier, compute, nullptr, 0, nullptr);
        device.mark("add ten");
        CHECK(zeCommandListAppendLaunchKernel, compute, ten, &groups, second, 0, nullptr);
        ze_event_handle_t both[] = {first, second};
        device.mark("query");
        CHECK(zeCommandListAppendQueryKernelTimestamps, compute, 2, both, results, nullptr, asked, 2, both);
        require(ze.zeEventQueryStatus(asked) == ZE_RESULT_NOT_READY, "nothing runs before the host says so");
        require(ze.zeEventHostSynchronize(asked, 1000) == ZE_RESULT_NOT_READY, "a wait ends at its time limit");
        CHECK(zeEventHostSignal, go);
        CHECK(zeEventHostSynchronize, asked, forever);

        ze_kernel_timestamp_result_t by_host;
        CHECK(zeEventQueryKernelTimestamp, second, &by_host);
        require(by_host.global.kernelStart == results[1].global.kernelStart &&
                    by_host.context.kernelEnd == results[1].context.kernelEnd,
                "the list and the host read the same ticks");
        require(results[0].global.kernelEnd != results[1].global.kernelEnd, "two launches end at different ticks");

        CHECK(zeCommandQueueExecuteCommandLists, queue, 1, &regular, nullptr);
        CHECK(zeCommandQueueSynchronize, queue, forever);

        device.mark("stamp");
        CHECK(zeCommandListAppendWriteGlobalTimestamp, copy, stamps, nullptr, 0, nullptr);
        device.mark("copy back");
        CHECK(zeCommandListAppendMemoryCopy, copy, back, buffer, n * sizeof(uint32_t), nullptr, 0, nullptr);
        device.mark("stamp again");
        CHECK(zeCommandListAppendWriteGlobalTimestamp, copy, stamps + 1, nullptr, 0, nullptr);
        CHECK(zeCommandListAppendSignalEvent, copy, returned);
        CHECK(zeEventHostSynchronize, returned, forever);
        for (uint32_t i = 0; i < n; ++i) require(back[i] == pattern + 12, "filled, then 1 + 10 + 1 added");
        require(stamps[0] != stamps[1], "the clock runs");
    }
    CHECK(zeCommandListDestroy, regular);
    CHECK(zeCommandQueueDestroy, queue);
    CHECK(zeCommandListDestroy, copy);
    CHECK(zeCommandListDestroy, compute);
}
