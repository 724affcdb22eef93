// What programs need of Level Zero beyond API 1.4, the version of Debian's headers.
// Source: the Level Zero specification 1.17; the names follow it, in a namespace of ours.
#pragma once

#include <level_zero/ze_api.h>

namespace fake_ze {

inline constexpr ze_command_queue_flags_t queue_flag_in_order = ZE_BIT(1);
inline constexpr ze_command_list_flags_t list_flag_in_order = ZE_BIT(3);
inline constexpr ze_command_list_flags_t list_flag_cloneable = ZE_BIT(4);
inline constexpr uint32_t counter_based_flag_device_timestamp = ZE_BIT(4);

struct ze_init_driver_type_desc_t {
    uint32_t stype;
    const void* pNext;
    uint32_t flags;
};

struct ze_group_size_t {
    uint32_t groupSizeX, groupSizeY, groupSizeZ;
};

struct ze_event_counter_based_desc_t {
    uint32_t stype;
    const void* pNext;
    uint32_t flags;
    ze_event_scope_flags_t signal;
    ze_event_scope_flags_t wait;
};

// Host and device time of one command: nanoseconds, not ticks.
struct ze_synchronized_timestamp_result_ext_t {
    ze_kernel_timestamp_data_t global, context;
};

struct ze_event_query_kernel_timestamps_results_ext_properties_t {
    uint32_t stype;
    void* pNext;
    ze_kernel_timestamp_result_t* pKernelTimestampsBuffer;
    ze_synchronized_timestamp_result_ext_t* pSynchronizedTimestampsBuffer;
};

using ze_host_function_callback_t = void (*)(void*);

using ze_graph_handle_t = struct ze_graph*;
using ze_executable_graph_handle_t = struct ze_executable_graph*;
inline constexpr auto ZE_RESULT_QUERY_TRUE = static_cast<ze_result_t>(0x78000022);
inline constexpr auto ZE_RESULT_QUERY_FALSE = static_cast<ze_result_t>(0x78000023);
inline constexpr auto ZE_RESULT_ERROR_INVALID_GRAPH = static_cast<ze_result_t>(0x78000024);
inline constexpr auto ZE_RESULT_ERROR_GRAPH_CAPTURE_UNSUPPORTED = static_cast<ze_result_t>(0x78000025);
inline constexpr auto ZE_RESULT_ERROR_GRAPH_CAPTURE_MERGE_ATTEMPT = static_cast<ze_result_t>(0x78000027);
inline constexpr auto ZE_RESULT_ERROR_COMMAND_LIST_NOT_CAPTURING = static_cast<ze_result_t>(0x78000028);

// In the chain of a list's description: its commands may be changed between executions.
struct ze_mutable_command_list_exp_desc_t {
    uint32_t stype;
    const void* pNext;
    uint32_t flags;
};
inline constexpr uint32_t stype_mutable_list = 0x20016;

struct ze_mutable_command_id_exp_desc_t {
    uint32_t stype;
    const void* pNext;
    uint32_t flags;
};

ze_result_t zeInitDrivers(uint32_t* count, ze_driver_handle_t* drivers, ze_init_driver_type_desc_t* desc);
ze_result_t zeDriverGetLastErrorDescription(ze_driver_handle_t driver, const char** text);
ze_context_handle_t zeDriverGetDefaultContext(ze_driver_handle_t driver);
ze_result_t zeDeviceGetRootDevice(ze_device_handle_t device, ze_device_handle_t* root);
ze_result_t zeDeviceSynchronize(ze_device_handle_t device);
ze_result_t zeCommandQueueGetOrdinal(ze_command_queue_handle_t queue, uint32_t* ordinal);
ze_result_t zeCommandQueueGetIndex(ze_command_queue_handle_t queue, uint32_t* index);
ze_result_t zeCommandListHostSynchronize(ze_command_list_handle_t list, uint64_t timeout);
ze_result_t zeCommandListGetDeviceHandle(ze_command_list_handle_t list, ze_device_handle_t* device);
ze_result_t zeCommandListGetContextHandle(ze_command_list_handle_t list, ze_context_handle_t* context);
ze_result_t zeCommandListGetOrdinal(ze_command_list_handle_t list, uint32_t* ordinal);
ze_result_t zeCommandListImmediateGetIndex(ze_command_list_handle_t list, uint32_t* index);
ze_result_t zeCommandListIsImmediate(ze_command_list_handle_t list, ze_bool_t* immediate);
ze_result_t zeCommandListAppendLaunchKernelWithParameters(ze_command_list_handle_t list, ze_kernel_handle_t kernel,
                                                          const ze_group_count_t* groups, const void* next,
                                                          ze_event_handle_t signal, uint32_t count,
                                                          ze_event_handle_t* waits);
ze_result_t zeCommandListAppendLaunchKernelWithArguments(ze_command_list_handle_t list, ze_kernel_handle_t kernel,
                                                         const ze_group_count_t groups, const ze_group_size_t size,
                                                         void** arguments, const void* next, ze_event_handle_t signal,
                                                         uint32_t count, ze_event_handle_t* waits);
ze_result_t zeCommandListAppendMemoryCopyWithParameters(ze_command_list_handle_t list, void* to, const void* from,
                                                        size_t size, const void* next, ze_event_handle_t signal,
                                                        uint32_t count, ze_event_handle_t* waits);
ze_result_t zeCommandListAppendMemoryFillWithParameters(ze_command_list_handle_t list, void* to, const void* pattern,
                                                        size_t pattern_size, size_t size, const void* next,
                                                        ze_event_handle_t signal, uint32_t count,
                                                        ze_event_handle_t* waits);
ze_result_t zeCommandListImmediateAppendCommandListsWithParameters(ze_command_list_handle_t list, uint32_t number,
                                                                   ze_command_list_handle_t* lists, const void* next,
                                                                   ze_event_handle_t signal, uint32_t count,
                                                                   ze_event_handle_t* waits);
ze_result_t zeCommandListAppendHostFunction(ze_command_list_handle_t list, ze_host_function_callback_t function,
                                            void* data, const void* next, ze_event_handle_t signal, uint32_t count,
                                            ze_event_handle_t* waits);
ze_result_t zeCommandListCreateCloneExp(ze_command_list_handle_t list, ze_command_list_handle_t* clone);
ze_result_t zeCommandListImmediateAppendCommandListsExp(ze_command_list_handle_t list, uint32_t number,
                                                        ze_command_list_handle_t* lists, ze_event_handle_t signal,
                                                        uint32_t count, ze_event_handle_t* waits);
ze_result_t zeCommandListGetNextCommandIdExp(ze_command_list_handle_t list,
                                             const ze_mutable_command_id_exp_desc_t* desc, uint64_t* command);
ze_result_t zeCommandListUpdateMutableCommandsExp(ze_command_list_handle_t list, const void* desc);
ze_result_t zeCommandListUpdateMutableCommandSignalEventExp(ze_command_list_handle_t list, uint64_t command,
                                                            ze_event_handle_t signal);
ze_result_t zeCommandListUpdateMutableCommandWaitEventsExp(ze_command_list_handle_t list, uint64_t command,
                                                           uint32_t count, ze_event_handle_t* waits);
ze_result_t zeCommandListBeginGraphCaptureExt(ze_command_list_handle_t list, const void* next);
ze_result_t zeCommandListBeginCaptureIntoGraphExt(ze_command_list_handle_t list, ze_graph_handle_t graph,
                                                  const void* next);
ze_result_t zeCommandListIsGraphCaptureEnabledExt(ze_command_list_handle_t list);
ze_result_t zeCommandListEndGraphCaptureExt(ze_command_list_handle_t list, const void* next, ze_graph_handle_t* graph);
ze_result_t zeCommandListGetGraphExt(ze_command_list_handle_t list, ze_graph_handle_t* graph);
ze_result_t zeCommandListAppendGraphExt(ze_command_list_handle_t list, ze_executable_graph_handle_t graph,
                                        const void* next, ze_event_handle_t signal, uint32_t count,
                                        ze_event_handle_t* waits);
ze_result_t zeGraphCreateExt(ze_context_handle_t context, const void* next, ze_graph_handle_t* graph);
ze_result_t zeGraphGetPrimaryCommandListExt(ze_graph_handle_t graph, ze_command_list_handle_t* list);
ze_result_t zeGraphInstantiateExt(ze_graph_handle_t graph, const void* next, ze_executable_graph_handle_t* made);
ze_result_t zeGraphIsEmptyExt(ze_graph_handle_t graph);
ze_result_t zeGraphDestroyExt(ze_graph_handle_t graph);
ze_result_t zeExecutableGraphGetSourceGraphExt(ze_executable_graph_handle_t graph, ze_graph_handle_t* source);
ze_result_t zeExecutableGraphDestroyExt(ze_executable_graph_handle_t graph);
ze_result_t zeEventQueryKernelTimestampsExt(ze_event_handle_t event, ze_device_handle_t device, uint32_t* count,
                                            ze_event_query_kernel_timestamps_results_ext_properties_t* results);
ze_result_t zeEventGetEventPool(ze_event_handle_t event, ze_event_pool_handle_t* pool);
ze_result_t zeEventGetSignalScope(ze_event_handle_t event, ze_event_scope_flags_t* scope);
ze_result_t zeEventGetWaitScope(ze_event_handle_t event, ze_event_scope_flags_t* scope);
ze_result_t zeEventCounterBasedCreate(ze_context_handle_t context, ze_device_handle_t device,
                                      const ze_event_counter_based_desc_t* desc, ze_event_handle_t* event);
ze_result_t zeEventPoolGetContextHandle(ze_event_pool_handle_t pool, ze_context_handle_t* context);
ze_result_t zeEventPoolGetFlags(ze_event_pool_handle_t pool, ze_event_pool_flags_t* flags);

}  // namespace fake_ze
