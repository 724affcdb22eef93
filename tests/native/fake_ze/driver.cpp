// Driver and devices: what there is, and what it says of itself.
#include <cmath>
#include <cstdio>
#include <cstring>

#include "api.hpp"
#include "driver_quirks.hpp"
#include "scheduler.hpp"
#include "fake_ze.h"
#include "device_state.hpp"

namespace fake_ze {
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

DeviceState* make_device_state() {
    auto* made = new DeviceState;
    made->driver = make<Driver>();
    for (uint32_t number = 0; number < quirks().devices; ++number) {
        auto* root = make<Device>();
        root->number = number;
        root->clock = new Clock(number * quirks().skew);
        for (uint32_t i = 0; i < quirks().subdevices; ++i) {
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

DeviceState& device_state() {
    static DeviceState& once = *make_device_state();
    return once;
}

ze_result_t zeInit(ze_init_flags_t flags) {
    FAKE_ZE_ENTER(zeInit);
    if ((flags & ~ze_init_flags_t{3}) != 0) return ZE_RESULT_ERROR_INVALID_ENUMERATION;
    device_state();
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeInitDrivers(uint32_t* count, ze_driver_handle_t* drivers, ze_init_driver_type_desc_t* desc) {
    FAKE_ZE_ENTER(zeInitDrivers);
    if (desc == nullptr || desc->flags == 0) return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    return fake_ze::zeDriverGet(count, drivers);
}

ze_result_t zeDriverGet(uint32_t* count, ze_driver_handle_t* drivers) {
    FAKE_ZE_ENTER(zeDriverGet);
    return list_out(count, drivers, 1, [](ze_driver_handle_t& out, uint32_t) { out = to_handle(device_state().driver); });
}

ze_result_t zeDriverGetApiVersion(ze_driver_handle_t, ze_api_version_t* version) {
    FAKE_ZE_ENTER(zeDriverGetApiVersion);
    *version = static_cast<ze_api_version_t>(ZE_MAKE_VERSION(1, quirks().api_minor));
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeDriverGetProperties(ze_driver_handle_t, ze_driver_properties_t* properties) {
    FAKE_ZE_ENTER(zeDriverGetProperties);
    std::memset(properties->uuid.id, 0x5f, sizeof properties->uuid.id);
    properties->driverVersion = 1;
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeDriverGetIpcProperties(ze_driver_handle_t, ze_driver_ipc_properties_t* properties) {
    FAKE_ZE_ENTER(zeDriverGetIpcProperties);
    properties->flags = 0;
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeDriverGetExtensionProperties(ze_driver_handle_t, uint32_t* count, ze_driver_extension_properties_t* out) {
    FAKE_ZE_ENTER(zeDriverGetExtensionProperties);
    return list_out(count, out, 1, [](ze_driver_extension_properties_t& extension, uint32_t) {
        std::snprintf(extension.name, sizeof extension.name, "ZE_experimental_event_query_timestamps");
        extension.version = ZE_MAKE_VERSION(1, 0);
    });
}

ze_result_t zeDriverGetExtensionFunctionAddress(ze_driver_handle_t, const char* name, void** address) {
    FAKE_ZE_ENTER(zeDriverGetExtensionFunctionAddress);
    *address = nullptr;
    if (std::strcmp(name, "fake_ze_register_kernel") == 0) *address = reinterpret_cast<void*>(&fake_ze_register_kernel);
    if (std::strcmp(name, "fake_ze_mark") == 0) *address = reinterpret_cast<void*>(&fake_ze_mark);
    if (std::strcmp(name, "fake_ze_stat") == 0) *address = reinterpret_cast<void*>(&fake_ze_stat);
    if (std::strcmp(name, "fake_ze_lose") == 0) *address = reinterpret_cast<void*>(&fake_ze_lose);
    if (std::strcmp(name, "fake_ze_on_call") == 0) *address = reinterpret_cast<void*>(&fake_ze_on_call);
    return *address == nullptr ? ZE_RESULT_ERROR_INVALID_ARGUMENT : ZE_RESULT_SUCCESS;
}

ze_result_t zeDriverGetLastErrorDescription(ze_driver_handle_t, const char** text) {
    FAKE_ZE_ENTER(zeDriverGetLastErrorDescription);
    *text = "";
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeDeviceGet(ze_driver_handle_t, uint32_t* count, ze_device_handle_t* devices) {
    FAKE_ZE_ENTER(zeDeviceGet);
    return list_out(count, devices, static_cast<uint32_t>(device_state().devices.size()),
                    [](ze_device_handle_t& out, uint32_t i) { out = to_handle(device_state().devices[i]); });
}

ze_result_t zeDeviceGetSubDevices(ze_device_handle_t handle, uint32_t* count, ze_device_handle_t* devices) {
    FAKE_ZE_ENTER(zeDeviceGetSubDevices);
    const auto* device = find<Device>(handle);
    if (device == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    return list_out(count, devices, static_cast<uint32_t>(device->subdevices.size()),
                    [&](ze_device_handle_t& out, uint32_t i) { out = to_handle(device->subdevices[i]); });
}

ze_result_t zeDeviceGetRootDevice(ze_device_handle_t handle, ze_device_handle_t* root) {
    FAKE_ZE_ENTER(zeDeviceGetRootDevice);
    const auto* device = find<Device>(handle);
    if (device == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    *root = to_handle(device->root);
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeDeviceGetProperties(ze_device_handle_t handle, ze_device_properties_t* properties) {
    FAKE_ZE_ENTER(zeDeviceGetProperties);
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
    properties->timerResolution = in_cycles ? quirks().frequency
                                            : static_cast<uint64_t>(std::llround(1e9 / static_cast<double>(quirks().frequency)));
    properties->timestampValidBits = quirks().global_bits;
    properties->kernelTimestampValidBits = quirks().bits;
    std::memset(properties->uuid.id, 0, sizeof properties->uuid.id);
    properties->uuid.id[0] = 0x5f;
    properties->uuid.id[1] = static_cast<uint8_t>(device->number + 1);
    properties->uuid.id[2] = static_cast<uint8_t>(device->root == nullptr ? 0 : device->subdevice + 1);
    std::snprintf(properties->name, sizeof properties->name, "fake_ze %u", device->number);
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeDeviceGetComputeProperties(ze_device_handle_t, ze_device_compute_properties_t* properties) {
    FAKE_ZE_ENTER(zeDeviceGetComputeProperties);
    properties->maxTotalGroupSize = 1024;
    properties->maxGroupSizeX = properties->maxGroupSizeY = properties->maxGroupSizeZ = 1024;
    properties->maxGroupCountX = properties->maxGroupCountY = properties->maxGroupCountZ = UINT32_MAX;
    properties->maxSharedLocalMemory = 65536;
    properties->numSubGroupSizes = 1;
    properties->subGroupSizes[0] = 16;
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeDeviceGetModuleProperties(ze_device_handle_t, ze_device_module_properties_t* properties) {
    FAKE_ZE_ENTER(zeDeviceGetModuleProperties);
    properties->spirvVersionSupported = ZE_MAKE_VERSION(1, 2);
    properties->flags = 0;
    properties->maxArgumentsSize = 2048;
    properties->printfBufferSize = 0;
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeDeviceGetCommandQueueGroupProperties(ze_device_handle_t, uint32_t* count,
                                                   ze_command_queue_group_properties_t* out) {
    FAKE_ZE_ENTER(zeDeviceGetCommandQueueGroupProperties);
    return list_out(count, out, engines_per_device, [](ze_command_queue_group_properties_t& group, uint32_t ordinal) {
        const bool copies_only = ordinal == copy_ordinal;
        group.flags = ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COPY;
        if (!copies_only) group.flags |= ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COMPUTE;
        group.maxMemoryFillPatternSize = copies_only ? 1 : 128;
        group.numQueues = 4;
    });
}

ze_result_t zeDeviceGetMemoryProperties(ze_device_handle_t, uint32_t* count, ze_device_memory_properties_t* out) {
    FAKE_ZE_ENTER(zeDeviceGetMemoryProperties);
    return list_out(count, out, 1, [](ze_device_memory_properties_t& memory, uint32_t) {
        memory.flags = 0;
        memory.maxClockRate = 1000;
        memory.maxBusWidth = 64;
        memory.totalSize = uint64_t{1} << 34;
        std::snprintf(memory.name, sizeof memory.name, "host memory");
    });
}

ze_result_t zeDeviceGetMemoryAccessProperties(ze_device_handle_t, ze_device_memory_access_properties_t* properties) {
    FAKE_ZE_ENTER(zeDeviceGetMemoryAccessProperties);
    constexpr ze_memory_access_cap_flags_t all = ZE_MEMORY_ACCESS_CAP_FLAG_RW | ZE_MEMORY_ACCESS_CAP_FLAG_CONCURRENT;
    properties->hostAllocCapabilities = properties->deviceAllocCapabilities = all;
    properties->sharedSingleDeviceAllocCapabilities = properties->sharedCrossDeviceAllocCapabilities = all;
    properties->sharedSystemAllocCapabilities = all;
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeDeviceGetCacheProperties(ze_device_handle_t, uint32_t* count, ze_device_cache_properties_t* out) {
    FAKE_ZE_ENTER(zeDeviceGetCacheProperties);
    return list_out(count, out, 1, [](ze_device_cache_properties_t& cache, uint32_t) {
        cache.flags = 0;
        cache.cacheSize = 1 << 20;
    });
}

ze_result_t zeDeviceGetImageProperties(ze_device_handle_t, ze_device_image_properties_t* properties) {
    FAKE_ZE_ENTER(zeDeviceGetImageProperties);
    properties->maxImageDims1D = properties->maxImageDims2D = properties->maxImageDims3D = 16384;
    properties->maxImageBufferSize = 0;
    properties->maxImageArraySlices = properties->maxSamplers = 0;
    properties->maxReadImageArgs = properties->maxWriteImageArgs = 0;
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeDeviceGetExternalMemoryProperties(ze_device_handle_t, ze_device_external_memory_properties_t* out) {
    FAKE_ZE_ENTER(zeDeviceGetExternalMemoryProperties);
    out->memoryAllocationImportTypes = out->memoryAllocationExportTypes = 0;
    out->imageImportTypes = out->imageExportTypes = 0;
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeDeviceGetP2PProperties(ze_device_handle_t, ze_device_handle_t, ze_device_p2p_properties_t* properties) {
    FAKE_ZE_ENTER(zeDeviceGetP2PProperties);
    properties->flags = ZE_DEVICE_P2P_PROPERTY_FLAG_ACCESS;
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeDeviceCanAccessPeer(ze_device_handle_t, ze_device_handle_t, ze_bool_t* value) {
    FAKE_ZE_ENTER(zeDeviceCanAccessPeer);
    *value = 1;
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeDeviceGetStatus(ze_device_handle_t) {
    FAKE_ZE_ENTER(zeDeviceGetStatus);
    return scheduler().is_lost() ? ZE_RESULT_ERROR_DEVICE_LOST : ZE_RESULT_SUCCESS;
}

ze_result_t zeDeviceGetGlobalTimestamps(ze_device_handle_t handle, uint64_t* host, uint64_t* ticks) {
    FAKE_ZE_ENTER(zeDeviceGetGlobalTimestamps);
    const auto* device = find<Device>(handle);
    if (device == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    *host = host_ns();
    *ticks = low_bits(device->clock->at(*host), quirks().global_bits);
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeDeviceSynchronize(ze_device_handle_t handle) {
    FAKE_ZE_ENTER(zeDeviceSynchronize);
    const auto* device = find<Device>(handle);
    if (device == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    return scheduler().wait_for_device(device->number, UINT64_MAX);
}

}  // namespace fake_ze

__attribute__((visibility("default"))) void fake_ze_mark(const char* text) { fake_ze::set_mark(text); }

__attribute__((visibility("default"))) void fake_ze_lose(int is_silent) { fake_ze::scheduler().lose(is_silent != 0); }

__attribute__((visibility("default"))) uint64_t fake_ze_stat(const char* name) { return fake_ze::stat(name); }
__attribute__((visibility("default"))) void fake_ze_on_call(void (*function)(const char* call)) {
    fake_ze::watch_calls(function);
}

// The loader may unload drivers while the process lives; the library stays (-z nodelete), its threads must not outlive it.
__attribute__((destructor)) static void leave() {
    fake_ze::scheduler().stop();
    fake_ze::write_stats();
}
