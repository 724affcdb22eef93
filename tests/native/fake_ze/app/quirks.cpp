#include <atomic>
#include <chrono>
#include <cstdio>
#include <thread>

#include "device.hpp"
#include "subcommands.hpp"

namespace {

constexpr ze_group_count_t groups = {1, 1, 1};

uint64_t read(const uint64_t& word) {
    return std::atomic_ref(const_cast<uint64_t&>(word)).load(std::memory_order_acquire);
}

// How many of a query's four words were there when the first was.
uint32_t words_with_the_first(Device& device) {
    auto* cell = device.host<uint64_t>(4);
    for (int i = 0; i < 4; ++i) cell[i] = ~uint64_t{0};
    auto* list = device.immediate(compute_group, in_order_queue);
    auto* launched = device.event(true);
    auto* asked = device.event();
    auto* kernel = device.kernel("nothing");
    CHECK(zeCommandListAppendLaunchKernel, list, kernel, &groups, launched, 0, nullptr);
    CHECK(zeCommandListAppendQueryKernelTimestamps, list, 1, &launched, cell, nullptr, asked, 1, &launched);
    while (read(cell[0]) == ~uint64_t{0}) ze.zeEventQueryStatus(asked);
    uint32_t there = 0;
    for (int i = 3; i >= 0; --i) there += read(cell[i]) != ~uint64_t{0};
    CHECK(zeEventHostSynchronize, asked, forever);
    for (int i = 0; i < 4; ++i) require(cell[i] != ~uint64_t{0}, "all words are there once the event says so");
    CHECK(zeCommandListDestroy, list);
    return there;
}

}  // namespace

void quirks(uint32_t) {
    Device device;

    auto* event = device.event(true);
    auto* cell = device.host<ze_kernel_timestamp_result_t>(1);
    auto* copy = device.immediate(copy_group);
    CHECK(zeCommandListAppendBarrier, copy, event, 0, nullptr);
    const ze_result_t query =
        ze.zeCommandListAppendQueryKernelTimestamps(copy, 1, &event, cell, nullptr, nullptr, 1, &event);
    auto* done = device.event();
    CHECK(zeCommandListAppendBarrier, copy, done, 0, nullptr);
    CHECK(zeEventHostSynchronize, done, forever);

    ze_kernel_timestamp_result_t ticks, old;
    CHECK(zeEventQueryKernelTimestamp, event, &ticks);
    CHECK(zeEventHostReset, event);
    const ze_result_t after_reset = ze.zeEventQueryStatus(event);
    const ze_result_t old_code = ze.zeEventQueryKernelTimestamp(event, &old);

    auto* fresh = device.event(true);
    ze_kernel_timestamp_result_t none = {};
    const ze_result_t none_code = ze.zeEventQueryKernelTimestamp(fresh, &none);

    auto* first = device.regular(compute_group);
    CHECK(zeCommandListDestroy, first);
    auto* second = device.regular(compute_group);
    const bool is_recycled = first == second;
    CHECK(zeCommandListDestroy, second);
    const uint32_t words = words_with_the_first(device);
    CHECK(zeCommandListDestroy, copy);

    std::printf("{\"query_on_copy\": %u, \"after_reset\": %u, \"old_code\": %u, \"old_ticks\": %s, \"none_code\": %u, "
                "\"none\": %llu, \"recycled\": %s, \"words\": %u}\n",
                static_cast<unsigned>(query), static_cast<unsigned>(after_reset), static_cast<unsigned>(old_code),
                old.global.kernelEnd == ticks.global.kernelEnd ? "true" : "false", static_cast<unsigned>(none_code),
                static_cast<unsigned long long>(none.global.kernelEnd), is_recycled ? "true" : "false", words);
}

void idle(uint32_t count) {
    Device device;
    auto* kernel = device.kernel("busy_50");
    auto* list = device.immediate(compute_group, in_order_queue);
    auto* done = device.event();
    for (uint32_t i = 0; i < count; ++i) {
        CHECK(zeCommandListAppendLaunchKernel, list, kernel, &groups, done, 0, nullptr);
        CHECK(zeEventHostSynchronize, done, forever);
        CHECK(zeEventHostReset, done);
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    CHECK(zeCommandListDestroy, list);
}
