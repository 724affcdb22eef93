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
ze_result_t append_barrier(ze_command_list_handle_t, ze_event_handle_t, uint32_t, ze_event_handle_t*) {
    return ZE_RESULT_SUCCESS;
}
ze_result_t query_status(ze_event_handle_t) { return ZE_RESULT_NOT_READY; }

}  // namespace

#define VISIBLE extern "C" __attribute__((visibility("default")))
#define GETTER(name, table, fill) \
    VISIBLE ze_result_t name(ze_api_version_t, table* t) { fill; return ZE_RESULT_SUCCESS; }
#define EMPTY(name) VISIBLE ze_result_t e_##name(ze_api_version_t, void*) __asm__(#name); \
    VISIBLE ze_result_t e_##name(ze_api_version_t, void*) { return ZE_RESULT_SUCCESS; }

GETTER(zeGetGlobalProcAddrTable, ze_global_dditable_t, t->pfnInit = init)
GETTER(zeGetDriverProcAddrTable, ze_driver_dditable_t, t->pfnGet = list<ze_driver_handle_t>; t->pfnGetProperties = get_driver_properties; t->pfnGetExtensionProperties = get_extensions)
GETTER(zeGetDeviceProcAddrTable, ze_device_dditable_t, t->pfnGet = get_devices; t->pfnGetProperties = get_properties)
GETTER(zeGetContextProcAddrTable, ze_context_dditable_t, t->pfnCreate = create_context)
GETTER(zeGetCommandListProcAddrTable, ze_command_list_dditable_t, t->pfnCreateImmediate = create_list; t->pfnDestroy = destroy_list; t->pfnAppendBarrier = append_barrier)
GETTER(zeGetEventProcAddrTable, ze_event_dditable_t, t->pfnQueryStatus = query_status)

#define ZE(name) EMPTY(zeGet##name##ProcAddrTable)
#define ZET(name) EMPTY(zetGet##name##ProcAddrTable)
#define ZES(name) EMPTY(zesGet##name##ProcAddrTable)
ZE(DeviceExp) ZE(CommandQueue) ZE(EventExp) ZE(EventPool) ZE(Fence) ZE(Image) ZE(ImageExp) ZE(Kernel) ZE(KernelExp)
ZE(Mem) ZE(Module) ZE(ModuleBuildLog) ZE(PhysicalMem) ZE(Sampler) ZE(VirtualMem) ZE(FabricEdgeExp) ZE(FabricVertexExp)
ZET(Device) ZET(Context) ZET(CommandList) ZET(Kernel) ZET(Module) ZET(Debug) ZET(Metric) ZET(MetricGroup)
ZET(MetricGroupExp) ZET(MetricQuery) ZET(MetricQueryPool) ZET(MetricStreamer) ZET(TracerExp)
ZES(Device) ZES(Driver) ZES(Diagnostics) ZES(Engine) ZES(FabricPort) ZES(Fan) ZES(Firmware) ZES(Frequency) ZES(Led)
ZES(Memory) ZES(PerformanceFactor) ZES(Power) ZES(Psu) ZES(Ras) ZES(Scheduler) ZES(Standby) ZES(Temperature)
