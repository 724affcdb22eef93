// What one call costs: `cost THREADS CALLS` prints the ns of an AppendBarrier, of an EventQueryStatus, after which results
// may be looked for, and of an EventHostReset, which is written and nothing else. The best of five rounds; each thread has
// a list of its own, and time is that of the processors.
#include <level_zero/ze_api.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <thread>
#include <vector>

namespace {

double cpu_ns() {
    timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return 1e9 * static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec);
}

struct Cost {
    double append = 1e9, status = 1e9, reset = 1e9;
};

void measure(ze_context_handle_t context, ze_device_handle_t device, int calls, Cost& best) {
    ze_command_queue_desc_t desc = {ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC, nullptr, 0, 0, 0, ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS, ZE_COMMAND_QUEUE_PRIORITY_NORMAL};
    ze_command_list_handle_t list;
    if (zeCommandListCreateImmediate(context, device, &desc, &list) != ZE_RESULT_SUCCESS) std::exit(1);
    for (int round = 0; round < 5; ++round) {
        double begin = cpu_ns();
        for (int i = 0; i < calls; ++i) zeCommandListAppendBarrier(list, nullptr, 0, nullptr);
        best.append = std::min(best.append, (cpu_ns() - begin) / calls);
        begin = cpu_ns();
        for (int i = 0; i < calls; ++i) zeEventQueryStatus(reinterpret_cast<ze_event_handle_t>(list));
        best.status = std::min(best.status, (cpu_ns() - begin) / calls);
        begin = cpu_ns();
        for (int i = 0; i < calls; ++i) zeEventHostReset(reinterpret_cast<ze_event_handle_t>(list));
        best.reset = std::min(best.reset, (cpu_ns() - begin) / calls);
    }
    zeCommandListDestroy(list);
}

}  // namespace

int main(int, char** arguments) {
    const int threads = std::atoi(arguments[1]), calls = std::atoi(arguments[2]);
    if (zeInit(0) != ZE_RESULT_SUCCESS) return 1;
    uint32_t count = 1;
    ze_driver_handle_t driver;
    ze_device_handle_t device;
    ze_context_handle_t context;
    zeDriverGet(&count, &driver);
    count = 1;
    zeDeviceGet(driver, &count, &device);
    ze_context_desc_t desc = {ZE_STRUCTURE_TYPE_CONTEXT_DESC, nullptr, 0};
    if (zeContextCreate(driver, &desc, &context) != ZE_RESULT_SUCCESS) return 1;
    std::vector<Cost> costs(static_cast<size_t>(threads));
    std::vector<std::thread> running;
    for (auto& cost : costs) running.emplace_back(measure, context, device, calls, std::ref(cost));
    for (auto& thread : running) thread.join();
    Cost mean{0, 0, 0};
    for (const auto& cost : costs) {
        mean.append += cost.append / threads;
        mean.status += cost.status / threads;
        mean.reset += cost.reset / threads;
    }
    std::printf("%.2f %.2f %.2f\n", mean.append, mean.status, mean.reset);
    return 0;
}
