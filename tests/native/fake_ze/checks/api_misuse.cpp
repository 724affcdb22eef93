// Make one mistake that the driver must notice. Usage: fake_ze_api_misuse NAME; exits 0, unless the driver aborts first.
#include <dlfcn.h>
#include <level_zero/ze_api.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

namespace {

void* loader = nullptr;

void check(ze_result_t result, const char* what) {
    if (result == ZE_RESULT_SUCCESS) return;
    std::printf("%s returned 0x%x\n", what, static_cast<unsigned>(result));
}

#define CALL(function, ...) \
    check(reinterpret_cast<decltype(&::function)>(dlsym(loader, #function))(__VA_ARGS__), #function)

struct Program {
    ze_driver_handle_t driver;
    ze_device_handle_t device;
    ze_context_handle_t context;
    ze_event_pool_handle_t pool;
    ze_event_handle_t event, never;
    ze_command_list_handle_t list, regular;
    ze_command_queue_handle_t queue;

    Program() {
        CALL(zeInit, 0);
        uint32_t one = 1;
        CALL(zeDriverGet, &one, &driver);
        CALL(zeDeviceGet, driver, &one, &device);
        const ze_context_desc_t context_desc = {ZE_STRUCTURE_TYPE_CONTEXT_DESC, nullptr, 0};
        CALL(zeContextCreate, driver, &context_desc, &context);
        const ze_event_pool_desc_t pool_desc = {ZE_STRUCTURE_TYPE_EVENT_POOL_DESC, nullptr,
                                                ZE_EVENT_POOL_FLAG_HOST_VISIBLE, 2};
        CALL(zeEventPoolCreate, context, &pool_desc, 0, nullptr, &pool);
        ze_event_desc_t event_desc = {ZE_STRUCTURE_TYPE_EVENT_DESC, nullptr, 0, 0, 0};
        CALL(zeEventCreate, pool, &event_desc, &event);
        event_desc.index = 1;
        CALL(zeEventCreate, pool, &event_desc, &never);
        ze_command_queue_desc_t queue_desc = {};
        queue_desc.stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC;
        CALL(zeCommandListCreateImmediate, context, device, &queue_desc, &list);
        CALL(zeCommandQueueCreate, context, device, &queue_desc, &queue);
        const ze_command_list_desc_t list_desc = {ZE_STRUCTURE_TYPE_COMMAND_LIST_DESC, nullptr, 0, 0};
        CALL(zeCommandListCreate, context, device, &list_desc, &regular);
    }
};

void event_destroyed_in_use(Program& p) {
    CALL(zeCommandListAppendBarrier, p.list, p.event, 1, &p.never);
    CALL(zeEventDestroy, p.event);
}

void list_destroyed_in_use(Program& p) {
    CALL(zeCommandListAppendBarrier, p.list, p.event, 1, &p.never);
    CALL(zeCommandListDestroy, p.list);
}

void list_reset_in_use(Program& p) {
    CALL(zeCommandListAppendBarrier, p.regular, p.event, 1, &p.never);
    CALL(zeCommandListClose, p.regular);
    CALL(zeCommandQueueExecuteCommandLists, p.queue, 1, &p.regular, nullptr);
    CALL(zeCommandListReset, p.regular);
}

void dead_event(Program& p) {
    CALL(zeEventDestroy, p.event);
    CALL(zeEventQueryStatus, p.event);
}

void dead_event_in_list(Program& p) {
    CALL(zeCommandListAppendBarrier, p.regular, p.event, 0, nullptr);
    CALL(zeCommandListClose, p.regular);
    CALL(zeEventDestroy, p.event);
    CALL(zeCommandQueueExecuteCommandLists, p.queue, 1, &p.regular, nullptr);
}

void dead_context(Program& p) {
    CALL(zeContextDestroy, p.context);
    CALL(zeCommandListAppendBarrier, p.list, p.event, 0, nullptr);
}

void closed_list(Program& p) {
    CALL(zeCommandListClose, p.regular);
    CALL(zeCommandListAppendBarrier, p.regular, nullptr, 0, nullptr);
}

void open_list(Program& p) { CALL(zeCommandQueueExecuteCommandLists, p.queue, 1, &p.regular, nullptr); }

// Two threads append to one list: a synchronous one, so that the first is inside when the second comes.
void two_threads(Program& p) {
    ze_command_queue_desc_t desc = {};
    desc.stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC;
    desc.mode = ZE_COMMAND_QUEUE_MODE_SYNCHRONOUS;
    ze_command_list_handle_t list;
    CALL(zeCommandListCreateImmediate, p.context, p.device, &desc, &list);
    std::atomic<bool> has_begun{false};
    std::thread other([&] {
        has_begun = true;
        CALL(zeCommandListAppendBarrier, list, nullptr, 1, &p.never);
    });
    while (!has_begun) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    std::thread helper([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(300));
        CALL(zeEventHostSignal, p.never);
    });
    CALL(zeCommandListAppendBarrier, list, nullptr, 0, nullptr);
    helper.join();
    other.join();
}

void freed_twice(Program& p) {
    void* memory = nullptr;
    const ze_host_mem_alloc_desc_t desc = {ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC, nullptr, 0};
    CALL(zeMemAllocHost, p.context, &desc, 64, 0, &memory);
    CALL(zeMemFree, p.context, memory);
    CALL(zeMemFree, p.context, memory);
}

// An error of the program that many drivers let pass.
void executed_in_flight(Program& p) {
    CALL(zeCommandListAppendBarrier, p.regular, p.event, 1, &p.never);
    CALL(zeCommandListClose, p.regular);
    CALL(zeCommandQueueExecuteCommandLists, p.queue, 1, &p.regular, nullptr);
    CALL(zeCommandQueueExecuteCommandLists, p.queue, 1, &p.regular, nullptr);
    CALL(zeEventHostSignal, p.never);
    CALL(zeCommandQueueSynchronize, p.queue, UINT64_MAX);
}

void none(Program& p) {
    CALL(zeCommandListAppendBarrier, p.list, p.event, 0, nullptr);
    CALL(zeEventHostSynchronize, p.event, UINT64_MAX);
}

// Real programs do this, and real drivers bear it.
void list_outlives_context(Program& p) {
    none(p);
    CALL(zeContextDestroy, p.context);
    CALL(zeCommandListDestroy, p.list);
}

}  // namespace

int main(int, char** arguments) {
    loader = dlopen("libze_loader.so.1", RTLD_NOW);
    if (loader == nullptr) return 3;
    Program program;
    const std::string name = arguments[1];
#define RUN(mistake) \
    if (name == #mistake) return mistake(program), 0
    RUN(event_destroyed_in_use);
    RUN(list_destroyed_in_use);
    RUN(list_reset_in_use);
    RUN(dead_event);
    RUN(dead_event_in_list);
    RUN(dead_context);
    RUN(closed_list);
    RUN(open_list);
    RUN(two_threads);
    RUN(freed_twice);
    RUN(executed_in_flight);
    RUN(none);
    RUN(list_outlives_context);
    return 2;
}
