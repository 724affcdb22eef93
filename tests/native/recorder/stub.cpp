// A driver of Level Zero that does nothing, fast: for the cost of what lies above it. One device, one kind of handle;
// every call of what is here succeeds at once, all others are not supported.
#include <level_zero/ze_ddi.h>

#include <cstdint>
#include <cstring>

namespace {

struct Object {
    void* tables[8] = {};
} object;

template <class T>
T handle() {
    return reinterpret_cast<T>(&object);
}

ze_result_t init(ze_init_flags_t) { return ZE_RESULT_SUCCESS; }
template <class T>
ze_result_t list(uint32_t* count, T* out) {
    if (out != nullptr && *count != 0) *out = handle<T>();
    *count = 1;
    return ZE_RESULT_SUCCESS;
}
ze_result_t get_devices(ze_driver_handle_t, uint32_t* count, ze_device_handle_t* out) { return list(count, out); }
ze_result_t get_properties(ze_device_handle_t, ze_device_properties_t* out) {
    out->type = ZE_DEVICE_TYPE_GPU;
    out->timerResolution = 80;
    out->timestampValidBits = out->kernelTimestampValidBits = 32;
    std::strcpy(out->name, "stub");
    return ZE_RESULT_SUCCESS;
}
ze_result_t get_extensions(ze_driver_handle_t, uint32_t* count, ze_driver_extension_properties_t*) {
    *count = 0;
    return ZE_RESULT_SUCCESS;
}
ze_result_t get_driver_properties(ze_driver_handle_t, ze_driver_properties_t*) { return ZE_RESULT_SUCCESS; }
ze_result_t create_context(ze_driver_handle_t, const ze_context_desc_t*, ze_context_handle_t* out) {
    *out = handle<ze_context_handle_t>();
    return ZE_RESULT_SUCCESS;
}
// Lists are different handles: threads use their own.
ze_result_t create_list(ze_context_handle_t, ze_device_handle_t, const ze_command_queue_desc_t*, ze_command_list_handle_t* out) {
    *out = reinterpret_cast<ze_command_list_handle_t>(new Object);
    return ZE_RESULT_SUCCESS;
}
ze_result_t destroy_list(ze_command_list_handle_t list) {
    delete reinterpret_cast<Object*>(list);
    return ZE_RESULT_SUCCESS;
}
#ifndef RECORDER_STUB_TIMED
ze_result_t append_barrier(ze_command_list_handle_t, ze_event_handle_t, uint32_t, ze_event_handle_t*) {
    return ZE_RESULT_SUCCESS;
}
ze_result_t query_status(ze_event_handle_t) { return ZE_RESULT_NOT_READY; }
ze_result_t reset_event(ze_event_handle_t) { return ZE_RESULT_SUCCESS; }
#endif

#ifdef RECORDER_STUB_TIMED
// With timestamps: every command has ended when it has been appended, and so has a query of its ticks.
struct Event : Object {
    bool is_signalled = false;
};
Event& event_of(ze_event_handle_t event) { return *reinterpret_cast<Event*>(event); }
ze_result_t signal_event(ze_event_handle_t event) {
    if (event != nullptr) event_of(event).is_signalled = true;
    return ZE_RESULT_SUCCESS;
}
uint64_t clock_ticks() {
    static thread_local uint64_t ticks = 1'000'000;
    return ticks += 100;
}
ze_result_t get_groups(ze_device_handle_t, uint32_t* count, ze_command_queue_group_properties_t* out) {
    if (out != nullptr && *count != 0) out->flags = ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COMPUTE;
    *count = 1;
    return ZE_RESULT_SUCCESS;
}
ze_result_t get_timestamps(ze_device_handle_t, uint64_t* host, uint64_t* device) {
    *host = 0;
    *device = clock_ticks();
    return ZE_RESULT_SUCCESS;
}
ze_result_t create_pool(ze_context_handle_t, const ze_event_pool_desc_t*, uint32_t, ze_device_handle_t*, ze_event_pool_handle_t* out) {
    *out = handle<ze_event_pool_handle_t>();
    return ZE_RESULT_SUCCESS;
}
ze_result_t destroy_pool(ze_event_pool_handle_t) { return ZE_RESULT_SUCCESS; }
ze_result_t create_event(ze_event_pool_handle_t, const ze_event_desc_t*, ze_event_handle_t* out) {
    *out = reinterpret_cast<ze_event_handle_t>(new Event);
    return ZE_RESULT_SUCCESS;
}
ze_result_t destroy_event(ze_event_handle_t event) {
    delete &event_of(event);
    return ZE_RESULT_SUCCESS;
}
ze_result_t reset_event(ze_event_handle_t event) {
    event_of(event).is_signalled = false;
    return ZE_RESULT_SUCCESS;
}
ze_result_t query_status(ze_event_handle_t event) {
    return event_of(event).is_signalled ? ZE_RESULT_SUCCESS : ZE_RESULT_NOT_READY;
}
ze_result_t synchronize_event(ze_event_handle_t, uint64_t) { return ZE_RESULT_SUCCESS; }
ze_result_t query_ticks(ze_event_handle_t, ze_kernel_timestamp_result_t* out) {
    const uint64_t now = clock_ticks() & 0xffffffff;
    *out = {{now - 50, now}, {now - 50, now}};
    return ZE_RESULT_SUCCESS;
}
ze_result_t create_queue(ze_context_handle_t, ze_device_handle_t, const ze_command_queue_desc_t*, ze_command_queue_handle_t* out) {
    *out = handle<ze_command_queue_handle_t>();
    return ZE_RESULT_SUCCESS;
}
ze_result_t synchronize_queue(ze_command_queue_handle_t, uint64_t) { return ZE_RESULT_SUCCESS; }
ze_result_t append_barrier(ze_command_list_handle_t, ze_event_handle_t signal, uint32_t, ze_event_handle_t*) {
    return signal_event(signal);
}
ze_result_t append_kernel(ze_command_list_handle_t, ze_kernel_handle_t, const ze_group_count_t*, ze_event_handle_t signal, uint32_t, ze_event_handle_t*) {
    return signal_event(signal);
}
ze_result_t append_copy(ze_command_list_handle_t, void*, const void*, size_t, ze_event_handle_t signal, uint32_t, ze_event_handle_t*) {
    return signal_event(signal);
}
ze_result_t append_query(ze_command_list_handle_t, uint32_t, ze_event_handle_t* events, void* to, const size_t* offsets, ze_event_handle_t, uint32_t, ze_event_handle_t*) {
    return query_ticks(*events, reinterpret_cast<ze_kernel_timestamp_result_t*>(static_cast<char*>(to) + *offsets));
}
ze_result_t allocate(ze_context_handle_t, const ze_host_mem_alloc_desc_t*, size_t size, size_t, void** out) {
    *out = new char[size];
    return ZE_RESULT_SUCCESS;
}
ze_result_t release(ze_context_handle_t, void* memory) {
    delete[] static_cast<char*>(memory);
    return ZE_RESULT_SUCCESS;
}
#endif

}  // namespace

#define VISIBLE extern "C" __attribute__((visibility("default")))
#define GETTER(name, table, fill) \
    VISIBLE ze_result_t name(ze_api_version_t, table* t) { fill; return ZE_RESULT_SUCCESS; }
#define EMPTY(name) VISIBLE ze_result_t e_##name(ze_api_version_t, void*) __asm__(#name); \
    VISIBLE ze_result_t e_##name(ze_api_version_t, void*) { return ZE_RESULT_SUCCESS; }

GETTER(zeGetGlobalProcAddrTable, ze_global_dditable_t, t->pfnInit = init)
GETTER(zeGetDriverProcAddrTable, ze_driver_dditable_t, t->pfnGet = list<ze_driver_handle_t>; t->pfnGetProperties = get_driver_properties; t->pfnGetExtensionProperties = get_extensions)
GETTER(zeGetContextProcAddrTable, ze_context_dditable_t, t->pfnCreate = create_context)
#ifdef RECORDER_STUB_TIMED
GETTER(zeGetDeviceProcAddrTable, ze_device_dditable_t, t->pfnGet = get_devices; t->pfnGetProperties = get_properties; t->pfnGetCommandQueueGroupProperties = get_groups; t->pfnGetGlobalTimestamps = get_timestamps)
GETTER(zeGetCommandListProcAddrTable, ze_command_list_dditable_t, t->pfnCreateImmediate = create_list; t->pfnDestroy = destroy_list; t->pfnAppendBarrier = append_barrier; t->pfnAppendLaunchKernel = append_kernel; t->pfnAppendMemoryCopy = append_copy; t->pfnAppendQueryKernelTimestamps = append_query)
GETTER(zeGetCommandQueueProcAddrTable, ze_command_queue_dditable_t, t->pfnCreate = create_queue; t->pfnSynchronize = synchronize_queue)
GETTER(zeGetEventPoolProcAddrTable, ze_event_pool_dditable_t, t->pfnCreate = create_pool; t->pfnDestroy = destroy_pool)
GETTER(zeGetEventProcAddrTable, ze_event_dditable_t, t->pfnCreate = create_event; t->pfnDestroy = destroy_event; t->pfnHostReset = reset_event; t->pfnHostSynchronize = synchronize_event; t->pfnQueryStatus = query_status; t->pfnQueryKernelTimestamp = query_ticks)
GETTER(zeGetMemProcAddrTable, ze_mem_dditable_t, t->pfnAllocHost = allocate; t->pfnFree = release)
#else
GETTER(zeGetDeviceProcAddrTable, ze_device_dditable_t, t->pfnGet = get_devices; t->pfnGetProperties = get_properties)
GETTER(zeGetCommandListProcAddrTable, ze_command_list_dditable_t, t->pfnCreateImmediate = create_list; t->pfnDestroy = destroy_list; t->pfnAppendBarrier = append_barrier)
GETTER(zeGetEventProcAddrTable, ze_event_dditable_t, t->pfnHostReset = reset_event; t->pfnQueryStatus = query_status)
#endif

#define ZE(name) EMPTY(zeGet##name##ProcAddrTable)
#define ZET(name) EMPTY(zetGet##name##ProcAddrTable)
#define ZES(name) EMPTY(zesGet##name##ProcAddrTable)
#ifndef RECORDER_STUB_TIMED
ZE(CommandQueue) ZE(EventPool) ZE(Mem)
#endif
ZE(DeviceExp) ZE(EventExp) ZE(Fence) ZE(Image) ZE(ImageExp) ZE(Kernel) ZE(KernelExp) ZE(Module) ZE(ModuleBuildLog) ZE(PhysicalMem) ZE(Sampler) ZE(VirtualMem) ZE(FabricEdgeExp) ZE(FabricVertexExp)
ZET(Device) ZET(Context) ZET(CommandList) ZET(Kernel) ZET(Module) ZET(Debug) ZET(Metric) ZET(MetricGroup)
ZET(MetricGroupExp) ZET(MetricQuery) ZET(MetricQueryPool) ZET(MetricStreamer) ZET(TracerExp)
ZES(Device) ZES(Driver) ZES(Diagnostics) ZES(Engine) ZES(FabricPort) ZES(Fan) ZES(Firmware) ZES(Frequency) ZES(Led)
ZES(Memory) ZES(PerformanceFactor) ZES(Power) ZES(Psu) ZES(Ras) ZES(Scheduler) ZES(Standby) ZES(Temperature)
