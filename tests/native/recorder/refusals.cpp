// Calls that the driver refuses, with null pointers, pointers that lead nowhere and structures that end with their page:
// prints what each returns. `refusals UNSEEN`: also those that a driver refuses before it looks at what it was given, as
// FAKE_ZE_FAIL has it do.
#include <level_zero/ze_api.h>
#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#define CHECK(call)                                                              \
    do {                                                                         \
        if (const ze_result_t result = call; result != ZE_RESULT_SUCCESS) {      \
            std::fprintf(stderr, "%s: 0x%x\n", #call, static_cast<unsigned>(result)); \
            std::exit(1);                                                        \
        }                                                                        \
    } while (false)
#define PRINT(call) std::printf("%s 0x%x\n", #call, static_cast<unsigned>(call))

namespace {

template <class T>
T nowhere(uintptr_t address) {
    return reinterpret_cast<T>(address);
}

}  // namespace

int main(int count, char**) {
    setvbuf(stdout, nullptr, _IOLBF, 0);
    CHECK(zeInit(0));
    uint32_t one = 1;
    ze_driver_handle_t driver;
    ze_device_handle_t device;
    CHECK(zeDriverGet(&one, &driver));
    CHECK(zeDeviceGet(driver, &one, &device));
    ze_context_desc_t of_context = {ZE_STRUCTURE_TYPE_CONTEXT_DESC, nullptr, 0};
    ze_context_handle_t context;
    CHECK(zeContextCreate(driver, &of_context, &context));
    ze_command_list_desc_t of_list = {ZE_STRUCTURE_TYPE_COMMAND_LIST_DESC, nullptr, 0, 0};
    ze_command_queue_desc_t of_queue = {};
    of_queue.stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC;
    ze_command_list_handle_t list, made;
    ze_command_queue_handle_t queue, made_queue;
    CHECK(zeCommandListCreate(context, device, &of_list, &list));
    CHECK(zeCommandQueueCreate(context, device, &of_queue, &queue));
    ze_event_pool_desc_t of_pool = {ZE_STRUCTURE_TYPE_EVENT_POOL_DESC, nullptr, ZE_EVENT_POOL_FLAG_HOST_VISIBLE, 4};
    ze_event_pool_handle_t pool;
    CHECK(zeEventPoolCreate(context, &of_pool, 0, nullptr, &pool));
    ze_event_desc_t of_event = {ZE_STRUCTURE_TYPE_EVENT_DESC, nullptr, 0, ZE_EVENT_SCOPE_FLAG_HOST, 0};
    ze_event_handle_t event;
    CHECK(zeEventCreate(pool, &of_event, &event));
    void* memory;
    ze_host_mem_alloc_desc_t of_memory = {ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC, nullptr, 0};
    CHECK(zeMemAllocHost(context, &of_memory, 4096, 64, &memory));

    PRINT(zeCommandListCreate(context, device, nullptr, &made));
    PRINT(zeCommandListCreate(nullptr, device, &of_list, &made));
    PRINT(zeCommandListCreate(context, nullptr, &of_list, &made));
    PRINT(zeCommandListCreate(context, device, &of_list, nullptr));
    PRINT(zeCommandListCreateImmediate(context, device, nullptr, &made));
    PRINT(zeCommandListCreateImmediate(nullptr, nullptr, nullptr, nullptr));
    PRINT(zeCommandQueueCreate(context, device, nullptr, &made_queue));
    PRINT(zeCommandQueueExecuteCommandLists(queue, 1, nullptr, nullptr));
    PRINT(zeCommandQueueExecuteCommandLists(queue, 0, &list, nullptr));
    PRINT(zeCommandQueueExecuteCommandLists(nullptr, 1, &list, nullptr));
    PRINT(zeCommandQueueExecuteCommandLists(nullptr, 1, nowhere<ze_command_list_handle_t*>(16), nullptr));
    PRINT(zeCommandQueueExecuteCommandLists(nullptr, ~0u, &list, nullptr));
    PRINT(zeCommandQueueSynchronize(nullptr, 0));
    PRINT(zeCommandQueueDestroy(nullptr));
    PRINT(zeCommandListReset(nullptr));
    PRINT(zeCommandListClose(nullptr));
    PRINT(zeCommandListDestroy(nullptr));
    PRINT(zeCommandListAppendBarrier(nullptr, event, 0, nullptr));
    PRINT(zeCommandListAppendBarrier(list, nullptr, 3, nullptr));
    PRINT(zeCommandListAppendBarrier(nullptr, nullptr, 3, nowhere<ze_event_handle_t*>(16)));
    PRINT(zeCommandListAppendLaunchKernel(list, nullptr, nullptr, event, 0, nullptr));
    PRINT(zeCommandListAppendLaunchKernel(nullptr, nullptr, nowhere<ze_group_count_t*>(16), event, 0, nullptr));
    PRINT(zeCommandListAppendQueryKernelTimestamps(list, 2, nullptr, memory, nullptr, nullptr, 0, nullptr));
    PRINT(zeCommandListAppendEventReset(list, nullptr));
    PRINT(zeCommandListAppendSignalEvent(nullptr, event));
    PRINT(zeEventPoolCreate(context, nullptr, 0, nullptr, &pool));
    PRINT(zeEventPoolCreate(nullptr, &of_pool, 0, nullptr, &pool));
    PRINT(zeEventCreate(pool, nullptr, &event));
    PRINT(zeEventCreate(nullptr, nowhere<const ze_event_desc_t*>(16), nullptr));
    PRINT(zeEventDestroy(nullptr));
    PRINT(zeEventQueryStatus(nullptr));
    PRINT(zeEventQueryKernelTimestamp(nullptr, nullptr));
    PRINT(zeEventHostSynchronize(nullptr, 0));
    PRINT(zeEventPoolDestroy(nullptr));
    PRINT(zeFenceCreate(queue, nullptr, nullptr));
    PRINT(zeFenceReset(nullptr));
    PRINT(zeFenceDestroy(nullptr));
    PRINT(zeFenceQueryStatus(nullptr));
    PRINT(zeKernelCreate(nullptr, nullptr, nullptr));
    PRINT(zeModuleCreate(context, device, nullptr, nullptr, nullptr));
    PRINT(zeMemFree(nullptr, nullptr));
    PRINT(zeModuleGetFunctionPointer(nullptr, nowhere<const char*>(16), nullptr));
    PRINT(zeModuleGetGlobalPointer(nullptr, nowhere<const char*>(16), nullptr, nullptr));

    if (count > 1) {
        auto* pages = static_cast<char*>(mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        mprotect(pages + 4096, 4096, PROT_NONE);
        std::memset(pages, 0, 4096);
        auto* half = pages + 4096 - 8;
        PRINT(zeCommandListCreate(context, device, reinterpret_cast<ze_command_list_desc_t*>(half), &made));
        PRINT(zeCommandListCreate(context, device, nowhere<ze_command_list_desc_t*>(16), &made));
        PRINT(zeCommandListCreateImmediate(context, device, reinterpret_cast<ze_command_queue_desc_t*>(half), &made));
        PRINT(zeCommandListCreateImmediate(context, device, nowhere<ze_command_queue_desc_t*>(16), &made));
        PRINT(zeCommandQueueCreate(context, device, reinterpret_cast<ze_command_queue_desc_t*>(half), &made_queue));
        PRINT(zeCommandQueueExecuteCommandLists(queue, 1, nowhere<ze_command_list_handle_t*>(16), nullptr));
        PRINT(zeCommandQueueExecuteCommandLists(queue, 40, reinterpret_cast<ze_command_list_handle_t*>(half), nullptr));
        PRINT(zeCommandListAppendQueryKernelTimestamps(list, 2, nowhere<ze_event_handle_t*>(16), memory, nullptr, nullptr, 0,
                                                       nullptr));
        PRINT(zeCommandListAppendQueryKernelTimestamps(list, 40, reinterpret_cast<ze_event_handle_t*>(half), memory, nullptr,
                                                       nullptr, 0, nullptr));
    }
    std::puts("refusals: done");
}
