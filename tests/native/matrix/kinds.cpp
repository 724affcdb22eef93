// Every way to append something, and the program's own queries of timestamps.
#include <cstring>

#include "journal.hpp"
#include "rows.hpp"

namespace {

std::string numbered(const char* name, int number) { return name + std::to_string(number); }

// Append with each function that there is for this engine. The order is that of a list.
void s18(World& world, Shape shape, int) {
    const Event a(world, "a", false);
    Work work(world, "L", shape);
    auto* memory = static_cast<uint32_t*>(world.memory(256));
    std::memset(memory, 0, 256);
    ze_event_handle_t handle = a.handle();
    int number = 0;
    // What comes next waits for all before, so that results do not depend on the order.
    const auto fence = [&] { work.barrier(numbered("fence", number)); };
    const auto add = [&](const char* api, auto function, const std::string& kernel, uint32_t groups, auto... arguments) {
        if (function == nullptr) return;
        const std::string mark = numbered("x", number);
        work.mark(mark);
        const bool has_signal = number % 2 == 0;
        const ze_result_t code = function(work.handle(), arguments..., has_signal ? handle : nullptr, 0u, nullptr);
        if (code == ZE_RESULT_ERROR_UNSUPPORTED_FEATURE) return work.mark("");
        check(code, api);
        work.appended(mark, api, has_signal, kernel, groups);
        fence();
        ++number;
    };
#define ADD(function, ...) add(#function, &function, "-", 0, __VA_ARGS__)
#define ADD_NEWER(function, ...) add(#function, NEWER(function), "-", 0, __VA_ARGS__)
    const uint32_t pattern = 7;
    ADD(zeCommandListAppendMemoryFill, static_cast<void*>(memory), &pattern, sizeof pattern, size_t{64});
    ADD(zeCommandListAppendMemoryCopy, static_cast<void*>(memory + 16), static_cast<const void*>(memory), size_t{64});
    const ze_copy_region_t region = {0, 0, 0, 4, 2, 1};
    ADD(zeCommandListAppendMemoryCopyRegion, static_cast<void*>(memory + 32), &region, 8u, 0u,
        static_cast<const void*>(memory), &region, 8u, 0u);
    ADD(zeCommandListAppendMemoryCopyFromContext, static_cast<void*>(memory + 40), world.context(),
        static_cast<const void*>(memory), size_t{8});
    ADD(zeCommandListAppendWriteGlobalTimestamp, reinterpret_cast<uint64_t*>(memory + 60));
    const size_t range = 8;
    const void* start = memory;
    ADD(zeCommandListAppendMemoryRangesBarrier, 1u, &range, &start);
    ADD_NEWER(zeCommandListAppendMemoryFillWithParameters, static_cast<void*>(memory + 44),
              static_cast<const void*>(&pattern), sizeof pattern, size_t{8}, static_cast<const void*>(nullptr));
    ADD_NEWER(zeCommandListAppendMemoryCopyWithParameters, static_cast<void*>(memory + 46),
              static_cast<const void*>(memory), size_t{8}, static_cast<const void*>(nullptr));
    ADD_NEWER(zeCommandListAppendHostFunction,
              fake_ze::ze_host_function_callback_t([](void* data) { ++*static_cast<uint32_t*>(data); }),
              static_cast<void*>(memory + 50), static_cast<const void*>(nullptr));
    if (shape.compute) {
        ze_kernel_handle_t kernel = world.kernel("K");
        const ze_group_count_t groups = {3, 2, 1};
        add("zeCommandListAppendLaunchCooperativeKernel", &zeCommandListAppendLaunchCooperativeKernel, "op_K", 3, kernel,
            &groups);
        auto* indirect = static_cast<ze_group_count_t*>(world.memory(64));
        indirect[0] = indirect[1] = {2, 1, 1};
        add("zeCommandListAppendLaunchKernelIndirect", &zeCommandListAppendLaunchKernelIndirect, "op_K", 0, kernel,
            static_cast<const ze_group_count_t*>(indirect));
        auto* how_many = static_cast<uint32_t*>(world.memory(64));
        *how_many = 2;
        ze_kernel_handle_t kernels[] = {kernel, world.kernel("J")};
        add("zeCommandListAppendLaunchMultipleKernelsIndirect", &zeCommandListAppendLaunchMultipleKernelsIndirect, "*", 0,
            2u, &kernels[0], static_cast<const uint32_t*>(how_many), static_cast<const ze_group_count_t*>(indirect));
        add("zeCommandListAppendLaunchKernelWithParameters", NEWER(zeCommandListAppendLaunchKernelWithParameters),
            "op_K", 3, kernel, &groups, static_cast<const void*>(nullptr));
        add("zeCommandListAppendLaunchKernelWithArguments", NEWER(zeCommandListAppendLaunchKernelWithArguments), "op_K",
            3, kernel, groups, fake_ze::ze_group_size_t{4, 1, 1}, static_cast<void**>(nullptr),
            static_cast<const void*>(nullptr));
    }
    work.submit();
    work.sync();
    a.sync();
    for (int i = 0; i < 60; ++i) std::printf("%u ", memory[i]);
    std::printf("\n");
    work.next();
}

// The program has its own events' timestamps written by the device.
void s19(World& world, Shape shape, int) {
    const Event a(world, "a", true), b(world, "b", true), q(world, "q", false);
    Work work(world, "L", shape);
    auto* results = static_cast<ze_kernel_timestamp_result_t*>(world.memory(3 * sizeof(ze_kernel_timestamp_result_t)));
    work.op("A", &a);
    work.op("B", &b);
    work.barrier("X");
    ze_event_handle_t events[] = {a.handle(), b.handle()};
    const size_t offsets[] = {sizeof *results, 0};
    ze_event_handle_t waits[] = {a.handle(), b.handle()};
    work.mark("Q");
    CHECK(zeCommandListAppendQueryKernelTimestamps, work.handle(), 2, events, results, offsets, q.handle(), 2, waits);
    work.appended("Q", "zeCommandListAppendQueryKernelTimestamps", true);
    if (!shape.immediate) work.close();
    for (int run = 1; run <= (shape.immediate ? 1 : 3); ++run) {
        if (!shape.immediate) {
            std::memset(results, 0, 2 * sizeof *results);
            work.execute();
        }
        q.sync();
        work.sync();
        for (int i = 0; i < 2; ++i) {
            const auto& found = results[1 - i];
            std::string line = std::string("ticks ") + (i == 0 ? "A " : "B ") + std::to_string(run);
            for (const uint64_t value : {found.global.kernelStart, found.global.kernelEnd, found.context.kernelStart,
                                         found.context.kernelEnd}) {
                line += " " + std::to_string(value);
            }
            note(line);
        }
        for (const Event* event : {&a, &b, &q}) event->reset();
    }
}

// Copy images with each function that there is; the second run of a regular list does all of it again.
void s21(World& world, Shape shape, int) {
    const Event a(world, "a", true), b(world, "b", false);
    Work work(world, "L", shape);
    constexpr uint32_t width = 8, height = 4, bytes = width * height;
    auto* memory = static_cast<uint8_t*>(world.memory(6 * bytes));
    ze_image_desc_t desc = {};
    desc.stype = ZE_STRUCTURE_TYPE_IMAGE_DESC;
    desc.type = ZE_IMAGE_TYPE_2D;
    desc.format.layout = ZE_IMAGE_FORMAT_LAYOUT_8;
    desc.format.type = ZE_IMAGE_FORMAT_TYPE_UINT;
    desc.width = width;
    desc.height = height;
    desc.depth = 1;
    ze_image_handle_t images[3];
    for (auto& image : images) CHECK(zeImageCreate, world.context(), world.device(), &desc, &image);
    int number = 0;
    const auto add = [&](const char* api, auto function, const Event* signal, auto... arguments) {
        const std::string mark = numbered("x", number);
        work.mark(mark);
        ze_event_handle_t handle = signal == nullptr ? nullptr : signal->handle();
        check(function(work.handle(), arguments..., handle, 0u, nullptr), api);
        work.appended(mark, api, signal != nullptr);
        work.barrier(numbered("fence", number++));
    };
#define IMAGE(function, ...) add(#function, &function, __VA_ARGS__)
    const ze_image_region_t left = {0, 0, 0, width / 2, height, 1}, right = {width / 2, 0, 0, width / 2, height, 1};
    const auto* whole = static_cast<const ze_image_region_t*>(nullptr);
    IMAGE(zeCommandListAppendImageCopyFromMemory, &a, images[0], static_cast<const void*>(memory), whole);
    IMAGE(zeCommandListAppendImageCopy, nullptr, images[1], images[0]);
    IMAGE(zeCommandListAppendImageCopyRegion, &b, images[1], images[0], &left, &right);
    IMAGE(zeCommandListAppendImageCopyToMemory, nullptr, static_cast<void*>(memory + bytes), images[1], whole);
    IMAGE(zeCommandListAppendImageCopyFromMemoryExt, &a, images[2], static_cast<const void*>(memory + 4), &right, width, 0u);
    IMAGE(zeCommandListAppendImageCopyToMemoryExt, &b, static_cast<void*>(memory + 2 * bytes), images[2], &right, width, 0u);
#undef IMAGE
    if (!shape.immediate) work.close();
    for (int run = 1; run <= (shape.immediate ? 1 : 2); ++run) {
        if (shape.immediate) {
            // It has run already, perhaps with what the memory held before.
            work.sync();
        } else {
            for (uint32_t i = 0; i < bytes; ++i) memory[i] = static_cast<uint8_t>(i * 3 + static_cast<uint32_t>(run));
            work.execute();
            work.sync();
            for (uint32_t y = 0; y < height; ++y) {
                for (uint32_t x = 0; x < width; ++x) {
                    const uint32_t from = y * width + (x < width / 2 ? x + width / 2 : x);
                    if (memory[bytes + y * width + x] != memory[from]) wrong("an image has other elements");
                    if (x < width / 2 && memory[2 * bytes + y * width + x] != memory[4 + y * width + x]) {
                        wrong("a part of an image has other elements");
                    }
                }
            }
        }
        a.sync();
        a.tell_ticks("x0,x4", run);
        for (int i = 0; i < number; ++i) world.due({numbered("x", i), numbered("fence", i)}, run);
        a.reset();
        b.reset();
    }
    work.next();
    for (auto& image : images) CHECK(zeImageDestroy, image);
}

}  // namespace

const std::vector<Row> kind_rows = {
    {"S18", "every function that appends", s18, all_lists, plain},
    {"S19", "the device writes the program's timestamps", s19, both_kinds | both_orders | compute, plain},
    {"S21", "images", s21, all_lists, plain},
};
