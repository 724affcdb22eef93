// Driver and devices: what there is, and what it says of itself.
#include <cmath>
#include <cstdio>
#include <cstring>

#include "api.hpp"
#include "habits.hpp"
#include "scheduler.hpp"
#include "softze.h"
#include "world.hpp"

namespace softze {
namespace {

// Answer a two-step query: how many there are, then that many.
template <class T, class Fill>
ze_result_t list_out(uint32_t* count, T* out, uint32_t available, Fill fill) {
    if (count == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    if (*count == 0 || *count > available) *count = available;
    if (out == nullptr) return ZE_RESULT_SUCCESS;
    for (uint32_t i = 0; i < *count; ++i) fill(out[i], i);
    return ZE_RESULT_SUCCESS;
}

World* make_world() {
    auto* made = new World;
    made->driver = make<Driver>();
    for (uint32_t number = 0; number < habits().devices; ++number) {
        auto* root = make<Device>();
        root->number = number;
        root->clock = new Clock(number * habits().skew);
        for (uint32_t i = 0; i < habits().subdevices; ++i) {
            auto* sub = make<Device>();
            sub->number = number;
            sub->root = root;
            sub->subdevice = i;
            sub->clock = root->clock;
            root->subdevices.push_back(sub);
        }
        made->devices.push_back(root);
    }
    return made;
}

}  // namespace

World& world() {
    static World& once = *make_world();
    return once;
}

ze_result_t zeInit(ze_init_flags_t flags) {
    SOFTZE_ENTER(zeInit);
    if ((flags & ~ze_init_flags_t{3}) != 0) return ZE_RESULT_ERROR_INVALID_ENUMERATION;
    world();
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeInitDrivers(uint32_t* count, ze_driver_handle_t* drivers, ze_init_driver_type_desc_t* desc) {
    SOFTZE_ENTER(zeInitDrivers);
    if (desc == nullptr || desc->flags == 0) return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    return softze::zeDriverGet(count, drivers);
}

ze_result_t zeDriverGet(uint32_t* count, ze_driver_handle_t* drivers) {
    SOFTZE_ENTER(zeDriverGet);
    return list_out(count, drivers, 1, [](ze_driver_handle_t& out, uint32_t) { out = to_handle(world().driver); });
}

ze_result_t zeDriverGetApiVersion(ze_driver_handle_t, ze_api_version_t* version) {
    SOFTZE_ENTER(zeDriverGetApiVersion);
    *version = static_cast<ze_api_version_t>(ZE_MAKE_VERSION(1, habits().api_minor));
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeDriverGetProperties(ze_driver_handle_t, ze_driver_properties_t* properties) {
    SOFTZE_ENTER(zeDriverGetProperties);
    std::memset(properties->uuid.id, 0x5f, sizeof properties->uuid.id);
    properties->driverVersion = 1;
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeDriverGetIpcProperties(ze_driver_handle_t, ze_driver_ipc_properties_t* properties) {
    SOFTZE_ENTER(zeDriverGetIpcProperties);
    properties->flags = 0;
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeDriverGetExtensionProperties(ze_driver_handle_t, uint32_t* count, ze_driver_extension_properties_t* out) {
    SOFTZE_ENTER(zeDriverGetExtensionProperties);
    return list_out(count, out, 1, [](ze_driver_extension_properties_t& extension, uint32_t) {
        std::snprintf(extension.name, sizeof extension.name, "ZE_experimental_event_query_timestamps");
        extension.version = ZE_MAKE_VERSION(1, 0);
    });
}

ze_result_t zeDriverGetExtensionFunctionAddress(ze_driver_handle_t, const char* name, void** address) {
    SOFTZE_ENTER(zeDriverGetExtensionFunctionAddress);
    *address = nullptr;
    if (std::strcmp(name, "softze_register_kernel") == 0) *address = reinterpret_cast<void*>(&softze_register_kernel);
    if (std::strcmp(name, "softze_mark") == 0) *address = reinterpret_cast<void*>(&softze_mark);
    if (std::strcmp(name, "softze_stat") == 0) *address = reinterpret_cast<void*>(&softze_stat);
    if (std::strcmp(name, "softze_on_call") == 0) *address = reinterpret_cast<void*>(&softze_on_call);
    return *address == nullptr ? ZE_RESULT_ERROR_INVALID_ARGUMENT : ZE_RESULT_SUCCESS;
}

ze_result_t zeDriverGetLastErrorDescription(ze_driver_handle_t, const char** text) {
    SOFTZE_ENTER(zeDriverGetLastErrorDescription);
    *text = "";
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeDeviceGet(ze_driver_handle_t, uint32_t* count, ze_device_handle_t* devices) {
    SOFTZE_ENTER(zeDeviceGet);
    return list_out(count, devices, static_cast<uint32_t>(world().devices.size()),
                    [](ze_device_handle_t& out, uint32_t i) { out = to_handle(world().devices[i]); });
}

ze_result_t zeDeviceGetSubDevices(ze_device_handle_t handle, uint32_t* count, ze_device_handle_t* devices) {
    SOFTZE_ENTER(zeDeviceGetSubDevices);
    const auto* device = find<Device>(handle);
    if (device == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    return list_out(count, devices, static_cast<uint32_t>(device->subdevices.size()),
                    [&](ze_device_handle_t& out, uint32_t i) { out = to_handle(device->subdevices[i]); });
}

ze_result_t zeDeviceGetRootDevice(ze_device_handle_t handle, ze_device_handle_t* root) {
    SOFTZE_ENTER(zeDeviceGetRootDevice);
    const auto* device = find<Device>(handle);
    if (device == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    *root = to_handle(device->root);
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeDeviceGetProperties(ze_device_handle_t handle, ze_device_properties_t* properties) {
    SOFTZE_ENTER(zeDeviceGetProperties);
    const auto* device = find<Device>(handle);
    if (device == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    const bool in_cycles = properties->stype == ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES_1_2;
    properties->type = ZE_DEVICE_TYPE_GPU;
    properties->vendorId = 0x8086;
    properties->deviceId = 0x50F7;
    properties->flags = device->root == nullptr ? 0u : ze_device_property_flags_t{ZE_DEVICE_PROPERTY_FLAG_SUBDEVICE};
    properties->subdeviceId = device->subdevice;
    properties->coreClockRate = 1000;
    properties->maxMemAllocSize = uint64_t{1} << 32;
    properties->maxHardwareContexts = 64;
    properties->maxCommandQueuePriority = 0;
    properties->numThreadsPerEU = 8;
    properties->physicalEUSimdWidth = 16;
    properties->numEUsPerSubslice = 8;
    properties->numSubslicesPerSlice = 1;
    properties->numSlices = 1;
    // Nanoseconds a tick are rounded, ticks a second are exact.
    properties->timerResolution = in_cycles ? habits().frequency
                                            : static_cast<uint64_t>(std::llround(1e9 / static_cast<double>(habits().frequency)));
    properties->timestampValidBits = habits().global_bits;
    properties->kernelTimestampValidBits = habits().bits;
    std::memset(properties->uuid.id, 0, sizeof properties->uuid.id);
    properties->uuid.id[0] = 0x5f;
    properties->uuid.id[1] = static_cast<uint8_t>(device->number + 1);
    properties->uuid.id[2] = static_cast<uint8_t>(device->root == nullptr ? 0 : device->subdevice + 1);
    std::snprintf(properties->name, sizeof properties->name, "softze %u", device->number);
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeDeviceGetComputeProperties(ze_device_handle_t, ze_device_compute_properties_t* properties) {
    SOFTZE_ENTER(zeDeviceGetComputeProperties);
    properties->maxTotalGroupSize = 1024;
    properties->maxGroupSizeX = properties->maxGroupSizeY = properties->maxGroupSizeZ = 1024;
    properties->maxGroupCountX = properties->maxGroupCountY = properties->maxGroupCountZ = UINT32_MAX;
    properties->maxSharedLocalMemory = 65536;
    properties->numSubGroupSizes = 1;
    properties->subGroupSizes[0] = 16;
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeDeviceGetModuleProperties(ze_device_handle_t, ze_device_module_properties_t* properties) {
    SOFTZE_ENTER(zeDeviceGetModuleProperties);
    properties->spirvVersionSupported = ZE_MAKE_VERSION(1, 2);
    properties->flags = 0;
    properties->maxArgumentsSize = 2048;
    properties->printfBufferSize = 0;
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeDeviceGetCommandQueueGroupProperties(ze_device_handle_t, uint32_t* count,
                                                   ze_command_queue_group_properties_t* out) {
    SOFTZE_ENTER(zeDeviceGetCommandQueueGroupProperties);
    return list_out(count, out, engines_per_device, [](ze_command_queue_group_properties_t& group, uint32_t ordinal) {
        const bool copies_only = ordinal == copy_ordinal;
        group.flags = ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COPY;
        if (!copies_only) group.flags |= ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COMPUTE;
        group.maxMemoryFillPatternSize = copies_only ? 1 : 128;
        group.numQueues = 4;
    });
}

ze_result_t zeDeviceGetMemoryProperties(ze_device_handle_t, uint32_t* count, ze_device_memory_properties_t* out) {
    SOFTZE_ENTER(zeDeviceGetMemoryProperties);
    return list_out(count, out, 1, [](ze_device_memory_properties_t& memory, uint32_t) {
        memory.flags = 0;
        memory.maxClockRate = 1000;
        memory.maxBusWidth = 64;
        memory.totalSize = uint64_t{1} << 34;
        std::snprintf(memory.name, sizeof memory.name, "host memory");
    });
}

ze_result_t zeDeviceGetMemoryAccessProperties(ze_device_handle_t, ze_device_memory_access_properties_t* properties) {
    SOFTZE_ENTER(zeDeviceGetMemoryAccessProperties);
    constexpr ze_memory_access_cap_flags_t all = ZE_MEMORY_ACCESS_CAP_FLAG_RW | ZE_MEMORY_ACCESS_CAP_FLAG_CONCURRENT;
    properties->hostAllocCapabilities = properties->deviceAllocCapabilities = all;
    properties->sharedSingleDeviceAllocCapabilities = properties->sharedCrossDeviceAllocCapabilities = all;
    properties->sharedSystemAllocCapabilities = all;
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeDeviceGetCacheProperties(ze_device_handle_t, uint32_t* count, ze_device_cache_properties_t* out) {
    SOFTZE_ENTER(zeDeviceGetCacheProperties);
    return list_out(count, out, 1, [](ze_device_cache_properties_t& cache, uint32_t) {
        cache.flags = 0;
        cache.cacheSize = 1 << 20;
    });
}

ze_result_t zeDeviceGetImageProperties(ze_device_handle_t, ze_device_image_properties_t* properties) {
    SOFTZE_ENTER(zeDeviceGetImageProperties);
    properties->maxImageDims1D = properties->maxImageDims2D = properties->maxImageDims3D = 0;  // it has no images
    properties->maxImageBufferSize = 0;
    properties->maxImageArraySlices = properties->maxSamplers = 0;
    properties->maxReadImageArgs = properties->maxWriteImageArgs = 0;
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeDeviceGetExternalMemoryProperties(ze_device_handle_t, ze_device_external_memory_properties_t* out) {
    SOFTZE_ENTER(zeDeviceGetExternalMemoryProperties);
    out->memoryAllocationImportTypes = out->memoryAllocationExportTypes = 0;
    out->imageImportTypes = out->imageExportTypes = 0;
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeDeviceGetP2PProperties(ze_device_handle_t, ze_device_handle_t, ze_device_p2p_properties_t* properties) {
    SOFTZE_ENTER(zeDeviceGetP2PProperties);
    properties->flags = ZE_DEVICE_P2P_PROPERTY_FLAG_ACCESS;
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeDeviceCanAccessPeer(ze_device_handle_t, ze_device_handle_t, ze_bool_t* value) {
    SOFTZE_ENTER(zeDeviceCanAccessPeer);
    *value = 1;
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeDeviceGetStatus(ze_device_handle_t) {
    SOFTZE_ENTER(zeDeviceGetStatus);
    return scheduler().is_lost() ? ZE_RESULT_ERROR_DEVICE_LOST : ZE_RESULT_SUCCESS;
}

ze_result_t zeDeviceGetGlobalTimestamps(ze_device_handle_t handle, uint64_t* host, uint64_t* ticks) {
    SOFTZE_ENTER(zeDeviceGetGlobalTimestamps);
    const auto* device = find<Device>(handle);
    if (device == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    *host = host_ns();
    *ticks = low_bits(device->clock->at(*host), habits().global_bits);
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeDeviceSynchronize(ze_device_handle_t handle) {
    SOFTZE_ENTER(zeDeviceSynchronize);
    const auto* device = find<Device>(handle);
    if (device == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    return scheduler().wait_for_device(device->number, UINT64_MAX);
}

}  // namespace softze

__attribute__((visibility("default"))) void softze_mark(const char* text) { softze::set_mark(text); }

__attribute__((visibility("default"))) uint64_t softze_stat(const char* name) { return softze::stat(name); }
__attribute__((visibility("default"))) void softze_on_call(void (*function)(const char* call)) {
    softze::watch_calls(function);
}

// The loader may unload drivers while the process lives; the library stays (-z nodelete), its threads must not outlive it.
__attribute__((destructor)) static void leave() {
    softze::scheduler().stop();
    softze::write_stats();
}
