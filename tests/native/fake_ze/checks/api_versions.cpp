// Use what API 1.6 to 1.17 added, through whatever libze_loader.so.1 there is. Exits 4 where that lacks a function.
#include "api_versions.hpp"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

namespace {

void* loader = nullptr;

template <class Function>
Function* look_up(const char* name) {
    void* address = dlsym(loader, name);
    if (address != nullptr) return reinterpret_cast<Function*>(address);
    std::printf("the loader has no %s\n", name);
    std::exit(4);
}

void check(ze_result_t result, const char* what) {
    if (result == ZE_RESULT_SUCCESS) return;
    std::printf("%s returned 0x%x\n", what, static_cast<unsigned>(result));
    std::exit(result == ZE_RESULT_ERROR_UNSUPPORTED_FEATURE ? 4 : 1);
}

void require(bool truth, const char* what) {
    if (truth) return;
    std::printf("wrong: %s\n", what);
    std::exit(1);
}

}  // namespace

#define OLD(function, ...) check(look_up<decltype(::function)>(#function)(__VA_ARGS__), #function)
#define NEW(function, ...) check(look_up<decltype(fake_ze::function)>(#function)(__VA_ARGS__), #function)

int main() {
    loader = dlopen("libze_loader.so.1", RTLD_NOW);
    if (loader == nullptr) return 3;
    uint32_t one = 1;
    ze_driver_handle_t driver;
    fake_ze::ze_init_driver_type_desc_t kinds = {0x00020021, nullptr, UINT32_MAX};
    NEW(zeInitDrivers, &one, &driver, &kinds);
    ze_device_handle_t device;
    OLD(zeDeviceGet, driver, &one, &device);
    ze_context_handle_t context;
    const ze_context_desc_t context_desc = {ZE_STRUCTURE_TYPE_CONTEXT_DESC, nullptr, 0};
    OLD(zeContextCreate, driver, &context_desc, &context);
    uint32_t* memory = nullptr;
    const ze_host_mem_alloc_desc_t host = {ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC, nullptr, 0};
    OLD(zeMemAllocHost, context, &host, 64, 64, reinterpret_cast<void**>(&memory));
    std::memset(memory, 0, 64);

    // An in-order immediate list, asked about itself and waited for as a whole.
    ze_command_queue_desc_t queue_desc = {};
    queue_desc.stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC;
    queue_desc.index = 2;
    queue_desc.flags = fake_ze::queue_flag_in_order;
    ze_command_list_handle_t list;
    OLD(zeCommandListCreateImmediate, context, device, &queue_desc, &list);
    ze_bool_t immediate = 0;
    NEW(zeCommandListIsImmediate, list, &immediate);
    uint32_t ordinal = 9, index = 9;
    NEW(zeCommandListGetOrdinal, list, &ordinal);
    NEW(zeCommandListImmediateGetIndex, list, &index);
    ze_device_handle_t its_device;
    NEW(zeCommandListGetDeviceHandle, list, &its_device);
    ze_context_handle_t its_context;
    NEW(zeCommandListGetContextHandle, list, &its_context);
    require(immediate != 0 && ordinal == 0 && index == 2, "an immediate list of group 0, index 2");
    require(its_device == device && its_context == context, "its device and context");

    // Kernels with arguments and sizes in the launch.
    const char* text = "add";
    ze_module_desc_t module_desc = {};
    module_desc.stype = ZE_STRUCTURE_TYPE_MODULE_DESC;
    module_desc.inputSize = std::strlen(text);
    module_desc.pInputModule = reinterpret_cast<const uint8_t*>(text);
    ze_module_handle_t module;
    OLD(zeModuleCreate, context, device, &module_desc, &module, nullptr);
    const ze_kernel_desc_t kernel_desc = {ZE_STRUCTURE_TYPE_KERNEL_DESC, nullptr, 0, "add"};
    ze_kernel_handle_t kernel;
    OLD(zeKernelCreate, module, &kernel_desc, &kernel);
    uint32_t value = 1, n = 4;
    OLD(zeKernelSetArgumentValue, kernel, 0, sizeof memory, &memory);
    OLD(zeKernelSetArgumentValue, kernel, 1, sizeof value, &value);
    OLD(zeKernelSetArgumentValue, kernel, 2, sizeof n, &n);
    const ze_group_count_t groups = {1, 1, 1};
    value = 20;
    void* arguments[] = {&memory, &value, &n};

    // An event that counts, with timestamps; it has no pool.
    ze_event_handle_t event;
    const fake_ze::ze_event_counter_based_desc_t event_desc = {
        0x00020031, nullptr, 1u | fake_ze::counter_based_flag_device_timestamp, ZE_EVENT_SCOPE_FLAG_HOST, 0};
    NEW(zeEventCounterBasedCreate, context, device, &event_desc, &event);
    NEW(zeCommandListAppendLaunchKernelWithParameters, list, kernel, &groups, nullptr, nullptr, 0, nullptr);
    NEW(zeCommandListAppendLaunchKernelWithArguments, list, kernel, groups, fake_ze::ze_group_size_t{4, 1, 1}, arguments,
        nullptr, event, 0, nullptr);
    NEW(zeCommandListHostSynchronize, list, UINT64_MAX);
    require(memory[0] == 21 && memory[3] == 21 && memory[4] == 0, "1 and 20 added to four words");
    ze_kernel_timestamp_result_t ticks = {};
    uint32_t results = 1;
    fake_ze::ze_event_query_kernel_timestamps_results_ext_properties_t query = {0, nullptr, &ticks, nullptr};
    NEW(zeEventQueryKernelTimestampsExt, event, device, &results, &query);
    require(results == 1 && ticks.global.kernelStart != ticks.global.kernelEnd, "one interval");

    // Copies with parameters, a function of the host, and a regular list appended to the immediate one.
    const uint8_t pattern = 0x11;
    NEW(zeCommandListAppendMemoryFillWithParameters, list, memory, &pattern, 1, 8, nullptr, nullptr, 0, nullptr);
    NEW(zeCommandListAppendMemoryCopyWithParameters, list, memory + 2, memory, 8, nullptr, nullptr, 0, nullptr);
    NEW(
        zeCommandListAppendHostFunction, list, [](void* data) { ++*static_cast<uint32_t*>(data); }, memory, nullptr,
        nullptr, 0, nullptr);
    const ze_command_list_desc_t list_desc = {ZE_STRUCTURE_TYPE_COMMAND_LIST_DESC, nullptr, 0,
                                              fake_ze::list_flag_cloneable};
    ze_command_list_handle_t regular, clone;
    OLD(zeCommandListCreate, context, device, &list_desc, &regular);
    value = 100;
    OLD(zeKernelSetArgumentValue, kernel, 1, sizeof value, &value);
    OLD(zeCommandListAppendLaunchKernel, regular, kernel, &groups, nullptr, 0, nullptr);
    OLD(zeCommandListClose, regular);
    NEW(zeCommandListCreateCloneExp, regular, &clone);
    NEW(zeCommandListImmediateAppendCommandListsExp, list, 1, &regular, nullptr, 0, nullptr);
    NEW(zeCommandListImmediateAppendCommandListsWithParameters, list, 1, &clone, nullptr, nullptr, 0, nullptr);
    NEW(zeDeviceSynchronize, device);
    require(memory[0] == 0x11111112 + 200 && memory[2] == 0x11111111 + 200, "filled, copied, counted, added");

    for (auto* each : {list, regular, clone}) OLD(zeCommandListDestroy, each);
    OLD(zeEventDestroy, event);
    OLD(zeKernelDestroy, kernel);
    OLD(zeModuleDestroy, module);
    OLD(zeMemFree, context, memory);
    OLD(zeContextDestroy, context);
    std::printf("api_versions: right\n");
    return 0;
}
