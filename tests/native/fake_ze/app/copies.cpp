#include <vector>

#include "device.hpp"
#include "subcommands.hpp"

// The copy engine alone: fills, copies of all sizes, a region of a 2D array; immediate first, then the same recorded.
void copies(uint32_t count) {
    constexpr uint32_t width = 48, height = 20;
    constexpr size_t size = width * height;
    Device device;
    auto* from = device.host<uint8_t>(size);
    auto* there = device.device<uint8_t>(size);
    auto* back = device.host<uint8_t>(size);
    for (size_t i = 0; i < size; ++i) from[i] = static_cast<uint8_t>(i * 7);
    auto* done = device.event();
    auto* queue = device.queue(copy_group);
    const ze_copy_region_t region = {8, 4, 0, 24, 10, 1};
    const uint8_t empty = 0xEE;

    const auto round_trip = [&](ze_command_list_handle_t list, size_t bytes, ze_event_handle_t event) {
        device.mark("clear");
        CHECK(zeCommandListAppendMemoryFill, list, there, &empty, 1, size, nullptr, 0, nullptr);
        CHECK(zeCommandListAppendBarrier, list, nullptr, 0, nullptr);
        device.mark("there");
        CHECK(zeCommandListAppendMemoryCopy, list, there, from, bytes, nullptr, 0, nullptr);
        CHECK(zeCommandListAppendBarrier, list, nullptr, 0, nullptr);
        device.mark("back");
        CHECK(zeCommandListAppendMemoryCopy, list, back, there, size, nullptr, 0, nullptr);
        CHECK(zeCommandListAppendBarrier, list, event, 0, nullptr);
    };
    const auto verify = [&](size_t bytes) {
        for (size_t i = 0; i < size; ++i) require(back[i] == (i < bytes ? from[i] : empty), "bytes came back");
    };

    auto* immediate = device.immediate(copy_group);
    for (uint32_t round = 0; round < count; ++round) {
        const size_t bytes = 1 + (round * 97) % size;
        round_trip(immediate, bytes, done);
        CHECK(zeEventHostSynchronize, done, forever);
        CHECK(zeEventHostReset, done);
        verify(bytes);

        auto* regular = device.regular(copy_group);
        round_trip(regular, bytes, nullptr);
        CHECK(zeCommandListClose, regular);
        for (size_t i = 0; i < size; ++i) back[i] = 0;
        CHECK(zeCommandQueueExecuteCommandLists, queue, 1, &regular, nullptr);
        CHECK(zeCommandQueueSynchronize, queue, forever);
        verify(bytes);
        CHECK(zeCommandListDestroy, regular);

        CHECK(zeCommandListAppendMemoryFill, immediate, back, &empty, 1, size, nullptr, 0, nullptr);
        CHECK(zeCommandListAppendBarrier, immediate, nullptr, 0, nullptr);
        device.mark("region");
        CHECK(zeCommandListAppendMemoryCopyRegion, immediate, back, &region, width, 0, from, &region, width, 0, done, 0,
              nullptr);
        CHECK(zeEventHostSynchronize, done, forever);
        CHECK(zeEventHostReset, done);
        for (uint32_t row = 0; row < height; ++row) {
            for (uint32_t column = 0; column < width; ++column) {
                const bool is_inside = column >= 8 && column < 32 && row >= 4 && row < 14;
                const size_t at = row * width + column;
                require(back[at] == (is_inside ? from[at] : empty), "the region, and nothing else");
            }
        }
    }
    CHECK(zeCommandListDestroy, immediate);
    CHECK(zeCommandQueueDestroy, queue);
}
