#include <thread>
#include <vector>

#include "device.hpp"
#include "subcommands.hpp"

// Threads that share a context and nothing else: a list, events and memory each.
void threads(uint32_t count) {
    constexpr uint32_t n = 64, launches = 100;
    Device device;
    struct Own {
        ze_command_list_handle_t list;
        ze_kernel_handle_t kernel;
        ze_event_handle_t done;
        uint32_t* memory;
    };
    std::vector<Own> own(count);
    for (uint32_t i = 0; i < count; ++i) {
        own[i] = {device.immediate(compute_group, in_order_queue), device.kernel("add"), device.event(),
                  device.host<uint32_t>(n)};
        for (uint32_t k = 0; k < n; ++k) own[i].memory[k] = i;
        set_argument(own[i].kernel, 0, own[i].memory);
        set_argument(own[i].kernel, 1, i + 1);
        set_argument(own[i].kernel, 2, n);
    }
    std::vector<std::thread> running;
    for (uint32_t i = 0; i < count; ++i) {
        running.emplace_back([&device, self = own[i], i] {
            const ze_group_count_t groups = {2, 1, 1};
            for (uint32_t launch = 0; launch < launches; ++launch) {
                const bool is_last_of_ten = launch % 10 == 9;
                device.mark(std::to_string(i) + ":" + std::to_string(launch));
                CHECK(zeCommandListAppendLaunchKernel, self.list, self.kernel, &groups,
                      is_last_of_ten ? self.done : nullptr, 0, nullptr);
                if (!is_last_of_ten) continue;
                CHECK(zeEventHostSynchronize, self.done, forever);
                CHECK(zeEventHostReset, self.done);
                require(self.memory[0] == i + (launch + 1) * (i + 1), "what this thread launched has run");
            }
        });
    }
    for (auto& thread : running) thread.join();
    for (uint32_t i = 0; i < count; ++i) {
        for (uint32_t k = 0; k < n; ++k) require(own[i].memory[k] == i + launches * (i + 1), "all launches ran once");
        CHECK(zeCommandListDestroy, own[i].list);
    }
}
