// Calls with structures of all kinds, and with pointers that lead nowhere: those are for calls that the driver refuses
// before it looks at them (FAKE_ZE_FAIL).
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

namespace {

template <class T>
T nowhere(uintptr_t address) {
    return reinterpret_cast<T>(address);
}

}  // namespace

int main() {
    CHECK(zeInit(0));
    uint32_t one = 1;
    ze_driver_handle_t driver;
    ze_device_handle_t device;
    CHECK(zeDriverGet(&one, &driver));
    CHECK(zeDeviceGet(driver, &one, &device));
    ze_context_desc_t of_context = {ZE_STRUCTURE_TYPE_CONTEXT_DESC, nullptr, 0};
    ze_context_handle_t context;
    CHECK(zeContextCreate(driver, &of_context, &context));

    // A chain of two structures.
    ze_relaxed_allocation_limits_exp_desc_t second = {ZE_STRUCTURE_TYPE_RELAXED_ALLOCATION_LIMITS_EXP_DESC, nullptr, 0};
    ze_external_memory_export_desc_t first = {ZE_STRUCTURE_TYPE_EXTERNAL_MEMORY_EXPORT_DESC, &second, 0};
    ze_device_mem_alloc_desc_t of_device = {ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC, &first, 0, 0};
    ze_host_mem_alloc_desc_t of_host = {ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC, nullptr,
                                        ZE_HOST_MEM_ALLOC_FLAG_BIAS_WRITE_COMBINED};
    void* memory;
    CHECK(zeMemAllocShared(context, &of_device, &of_host, 4096, 256, device, &memory));
    CHECK(zeMemFree(context, memory));

    ze_event_pool_desc_t of_pool = {ZE_STRUCTURE_TYPE_EVENT_POOL_DESC, nullptr,
                                    ZE_EVENT_POOL_FLAG_HOST_VISIBLE | ZE_EVENT_POOL_FLAG_KERNEL_TIMESTAMP, 7};
    ze_event_pool_handle_t pool;
    CHECK(zeEventPoolCreate(context, &of_pool, 1, &device, &pool));

    // A chain that never ends.
    ze_base_desc_t circle = {static_cast<ze_structure_type_t>(0x1234), &circle};
    ze_event_desc_t of_event = {ZE_STRUCTURE_TYPE_EVENT_DESC, &circle, 3, ZE_EVENT_SCOPE_FLAG_HOST,
                                ZE_EVENT_SCOPE_FLAG_DEVICE | ZE_EVENT_SCOPE_FLAG_HOST};
    ze_event_handle_t event;
    CHECK(zeEventCreate(pool, &of_event, &event));

    // Build flags that end with their page; some of which the page ends first; some that are not there.
    auto* pages = static_cast<char*>(mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(pages + 4096, 4096, PROT_NONE);
    std::memset(pages, 'x', 4096);
    ze_module_desc_t of_module = {};
    of_module.stype = ZE_STRUCTURE_TYPE_MODULE_DESC;
    of_module.format = ZE_MODULE_FORMAT_NATIVE;
    of_module.inputSize = 12;
    of_module.pInputModule = nowhere<const uint8_t*>(8);
    ze_module_handle_t module;
    of_module.pBuildFlags = pages + 4096 - 5;
    zeModuleCreate(context, device, &of_module, &module, nullptr);
    pages[4095] = 0;
    zeModuleCreate(context, device, &of_module, &module, nullptr);
    of_module.pBuildFlags = nowhere<const char*>(1);
    zeModuleCreate(context, device, &of_module, &module, nullptr);

    // No structure; one that is not there; one whose end is not; one whose chain leads nowhere.
    ze_event_pool_handle_t other;
    zeEventPoolCreate(context, nullptr, 1, &device, &other);
    zeEventPoolCreate(context, nowhere<const ze_event_pool_desc_t*>(16), 1, &device, &other);
    zeEventPoolCreate(context, reinterpret_cast<ze_event_pool_desc_t*>(pages + 4096 - 8), 1, &device, &other);
    of_pool.pNext = nowhere<const void*>(0xdead000000000000);
    zeEventPoolCreate(context, &of_pool, 1, &device, &other);
    of_pool.pNext = &of_device;
    zeEventPoolCreate(context, &of_pool, 1, &device, &other);

    CHECK(zeEventDestroy(event));
    CHECK(zeEventPoolDestroy(pool));
    std::puts("arguments: right");
}
