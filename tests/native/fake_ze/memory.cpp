// USM: host, device and shared memory, all of it the host's.
#include <cstdlib>
#include <cstring>
#include <map>
#include <shared_mutex>

#include "api.hpp"
#include "device_state.hpp"

namespace fake_ze {
namespace {

struct Allocation {
    size_t size;
    ze_memory_type_t type;
    ze_device_handle_t device;
};

struct Memory {
    std::shared_mutex mutex;
    std::map<uintptr_t, Allocation> by_base;
};

Memory& memory() {
    static Memory& once = *new Memory;
    return once;
}

Level& bytes_of(ze_memory_type_t type) {
    static Level host("memory.host"), device("memory.device"), shared("memory.shared");
    return type == ZE_MEMORY_TYPE_HOST ? host : type == ZE_MEMORY_TYPE_DEVICE ? device : shared;
}

ze_result_t allocate(ze_context_handle_t context, size_t size, size_t alignment, ze_memory_type_t type,
                     ze_device_handle_t device, void** out) {
    if (find<Context>(context) == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    if (out == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    if (size == 0) return ZE_RESULT_ERROR_UNSUPPORTED_SIZE;
    if ((alignment & (alignment - 1)) != 0) return ZE_RESULT_ERROR_UNSUPPORTED_ALIGNMENT;
    if (alignment < 64) alignment = 64;
    *out = std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
    if (*out == nullptr) return ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    std::memset(*out, 0xA5, size);  // fresh memory holds nothing useful
    bytes_of(type).add(static_cast<int64_t>(size));
    const std::unique_lock lock(memory().mutex);
    memory().by_base[reinterpret_cast<uintptr_t>(*out)] = {size, type, device};
    return ZE_RESULT_SUCCESS;
}

// The allocation that holds a pointer; calls `found` with its base under the lock.
template <class Found>
bool look_up(const void* pointer, Found found) {
    const auto address = reinterpret_cast<uintptr_t>(pointer);
    const std::shared_lock lock(memory().mutex);
    auto next = memory().by_base.upper_bound(address);
    if (next == memory().by_base.begin()) return false;
    const auto& [base, allocation] = *--next;
    if (address - base >= allocation.size) return false;
    found(base, allocation);
    return true;
}

}  // namespace

ze_result_t zeMemAllocHost(ze_context_handle_t context, const ze_host_mem_alloc_desc_t*, size_t size, size_t alignment,
                           void** out) {
    FAKE_ZE_ENTER(zeMemAllocHost);
    return allocate(context, size, alignment, ZE_MEMORY_TYPE_HOST, nullptr, out);
}

ze_result_t zeMemAllocDevice(ze_context_handle_t context, const ze_device_mem_alloc_desc_t*, size_t size,
                             size_t alignment, ze_device_handle_t device, void** out) {
    FAKE_ZE_ENTER(zeMemAllocDevice);
    return allocate(context, size, alignment, ZE_MEMORY_TYPE_DEVICE, device, out);
}

ze_result_t zeMemAllocShared(ze_context_handle_t context, const ze_device_mem_alloc_desc_t*,
                             const ze_host_mem_alloc_desc_t*, size_t size, size_t alignment, ze_device_handle_t device,
                             void** out) {
    FAKE_ZE_ENTER(zeMemAllocShared);
    return allocate(context, size, alignment, ZE_MEMORY_TYPE_SHARED, device, out);
}

ze_result_t zeMemFree(ze_context_handle_t context, void* pointer) {
    FAKE_ZE_ENTER(zeMemFree);
    if (find<Context>(context) == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    {
        const std::unique_lock lock(memory().mutex);
        const auto at = memory().by_base.find(reinterpret_cast<uintptr_t>(pointer));
        if (at == memory().by_base.end()) {
            mistake("zeMemFree of memory that is not allocated");
            return ZE_RESULT_ERROR_INVALID_ARGUMENT;
        }
        bytes_of(at->second.type).add(-static_cast<int64_t>(at->second.size));
        memory().by_base.erase(at);
    }
    std::free(pointer);
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeMemFreeExt(ze_context_handle_t context, const ze_memory_free_ext_desc_t*, void* pointer) {
    FAKE_ZE_ENTER(zeMemFreeExt);
    return fake_ze::zeMemFree(context, pointer);
}

ze_result_t zeMemGetAllocProperties(ze_context_handle_t, const void* pointer,
                                    ze_memory_allocation_properties_t* properties, ze_device_handle_t* device) {
    FAKE_ZE_ENTER(zeMemGetAllocProperties);
    properties->type = ZE_MEMORY_TYPE_UNKNOWN;
    properties->id = 0;
    properties->pageSize = 0;
    if (device != nullptr) *device = nullptr;
    look_up(pointer, [&](uintptr_t base, const Allocation& allocation) {
        properties->type = allocation.type;
        properties->id = base;
        properties->pageSize = 4096;
        if (device != nullptr) *device = allocation.device;
    });
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeMemGetAddressRange(ze_context_handle_t, const void* pointer, void** base_out, size_t* size) {
    FAKE_ZE_ENTER(zeMemGetAddressRange);
    const bool is_known = look_up(pointer, [&](uintptr_t base, const Allocation& allocation) {
        if (base_out != nullptr) *base_out = reinterpret_cast<void*>(base);
        if (size != nullptr) *size = allocation.size;
    });
    return is_known ? ZE_RESULT_SUCCESS : ZE_RESULT_ERROR_INVALID_ARGUMENT;
}

}  // namespace fake_ze
