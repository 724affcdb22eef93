// What timed operations cost: `timed WHAT THREADS OPERATIONS` appends barriers, kernels or copies, synchronises after every
// hundred, and prints ns an operation (the median of the hundreds, by the thread's processor time), operations a second of
// processor time and by the clock of all threads, and the resident memory in KiB after the first ten thousand and at the end.
#include <level_zero/ze_api.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <thread>
#include <vector>

namespace {

constexpr int every = 100;

double cpu_ns() {
    timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return 1e9 * static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec);
}

long resident_kib() {
    long pages = 0, resident = 0;
    if (std::FILE* file = std::fopen("/proc/self/statm", "r")) {
        if (std::fscanf(file, "%ld %ld", &pages, &resident) != 2) resident = 0;
        std::fclose(file);
    }
    return resident * 4;
}

struct Cost {
    double median = 0, total = 0;
    long early = 0;
};

void measure(const char* what, ze_context_handle_t context, ze_device_handle_t device, int operations, Cost& cost) {
    ze_command_queue_desc_t desc = {ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC, nullptr, 0, 0, 0, ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS, ZE_COMMAND_QUEUE_PRIORITY_NORMAL};
    desc.flags = ZE_BIT(1);  // in order
    ze_command_list_handle_t list;
    ze_command_queue_handle_t queue;
    if (zeCommandListCreateImmediate(context, device, &desc, &list) != ZE_RESULT_SUCCESS) std::exit(1);
    if (zeCommandQueueCreate(context, device, &desc, &queue) != ZE_RESULT_SUCCESS) std::exit(1);
    const ze_group_count_t groups = {1, 1, 1};
    auto* kernel = reinterpret_cast<ze_kernel_handle_t>(&cost);
    std::vector<double> hundreds;
    hundreds.reserve(static_cast<size_t>(operations / every));
    const double begin = cpu_ns();
    double before = begin;
    for (int i = 1; i <= operations; ++i) {
        switch (*what) {
            case 'k': zeCommandListAppendLaunchKernel(list, kernel, &groups, nullptr, 0, nullptr); break;
            case 'c': zeCommandListAppendMemoryCopy(list, kernel, list, 64, nullptr, 0, nullptr); break;
            default: zeCommandListAppendBarrier(list, nullptr, 0, nullptr);
        }
        if (i % every == 0) {
            zeCommandQueueSynchronize(queue, UINT64_MAX);
            const double now = cpu_ns();
            hundreds.push_back((now - before) / every);
            before = now;
        }
        if (i == 10'000) cost.early = resident_kib();
    }
    cost.total = cpu_ns() - begin;
    std::nth_element(hundreds.begin(), hundreds.begin() + static_cast<long>(hundreds.size() / 2), hundreds.end());
    cost.median = hundreds[hundreds.size() / 2];
    zeCommandListDestroy(list);
}

}  // namespace

int main(int, char** arguments) {
    const int threads = std::atoi(arguments[2]), operations = std::atoi(arguments[3]);
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
    timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (auto& cost : costs) running.emplace_back(measure, arguments[1], context, device, operations, std::ref(cost));
    for (auto& thread : running) thread.join();
    clock_gettime(CLOCK_MONOTONIC, &end);
    const double seconds = static_cast<double>(end.tv_sec - begin.tv_sec) + 1e-9 * static_cast<double>(end.tv_nsec - begin.tv_nsec);
    double median = 0, total = 0;
    for (const auto& cost : costs) {
        median += cost.median / threads;
        total += cost.total;
    }
    const double all = static_cast<double>(threads) * operations;
    std::printf("%.1f %.0f %.0f %ld %ld\n", median, 1e9 * all / total, all / seconds, costs[0].early, resident_kib());
    return 0;
}
