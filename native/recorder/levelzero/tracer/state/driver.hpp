// What the tracer itself asks of the driver. Its calls go past our hooks, so none of them is recorded.
#pragma once

#include <atomic>

#include "api/api.hpp"

namespace lanescope::levelzero::tracer {

// Ticks of one run, as the driver writes them. Source: ze_kernel_timestamp_result_t.
struct Ticks {
    u64 start, end, context_start, context_end;
};
static_assert(sizeof(Ticks) == 32);

struct PoolDesc {
    u32 stype;
    const void* next;
    u32 flags, count;
};
inline constexpr u32 stype_pool_desc = 0x10, pool_host_visible = 1 << 0, pool_timestamps = 1 << 2;

struct EventDesc {
    u32 stype;
    const void* next;
    u32 index, signal, wait;
};
inline constexpr u32 stype_event_desc = 0x11, scope_host = 1 << 2;

struct FenceDesc {
    u32 stype;
    const void* next;
    u32 flags;
};
inline constexpr u32 stype_fence_desc = 0x12;

struct HostMemoryDesc {
    u32 stype;
    const void* next;
    u32 flags;
};
inline constexpr u32 stype_host_memory_desc = 0x16;

struct QueueGroup {
    u32 stype;
    void* next;
    u32 flags;
    usize pattern_size;
    u32 queues;
};
inline constexpr u32 stype_queue_group = 0x6, group_computes = 1 << 0;

inline constexpr u32 stype_list_desc = 0xf;
inline constexpr u32 stype_queue_desc = 0xe, queue_mode_asynchronous = 2;
// A list that is described so may be changed after it was closed.
inline constexpr u32 stype_mutable_list = 0x00020016;
inline constexpr Result not_ready = 1;

// Functions of the driver; null where it has none.
struct Driver {
    Result (*zeEventPoolCreate)(Handle context, const PoolDesc*, u32 devices, Handle*, Handle* pool);
    Result (*zeEventPoolDestroy)(Handle pool);
    Result (*zeEventCreate)(Handle pool, const EventDesc*, Handle* event);
    Result (*zeEventDestroy)(Handle event);
    Result (*zeEventHostReset)(Handle event);
    Result (*zeEventQueryStatus)(Handle event);
    Result (*zeEventHostSynchronize)(Handle event, u64 timeout);
    Result (*zeEventQueryKernelTimestamp)(Handle event, Ticks*);
    Result (*zeMemAllocHost)(Handle context, const HostMemoryDesc*, usize size, usize alignment, void** memory);
    Result (*zeMemFree)(Handle context, void* memory);
    Result (*zeCommandListCreateImmediate)(Handle context, Handle device, const QueueDesc*, Handle* list);
    Result (*zeCommandListDestroy)(Handle list);
    Result (*zeCommandListAppendBarrier)(Handle list, Handle signal, u32 count, Handle* waits);
    Result (*zeCommandListAppendMemoryCopy)(Handle list, void* to, const void* from, usize size, Handle signal, u32 count,
                                            Handle* waits);
    Result (*zeCommandListCreate)(Handle context, Handle device, const ListDesc*, Handle* list);
    Result (*zeCommandListClose)(Handle list);
    Result (*zeCommandListAppendEventReset)(Handle list, Handle event);
    Result (*zeCommandListAppendSignalEvent)(Handle list, Handle event);
    Result (*zeCommandListAppendWaitOnEvents)(Handle list, u32 count, Handle* events);
    Result (*zeCommandListAppendQueryKernelTimestamps)(Handle list, u32 events, Handle*, void* to, const usize* offsets,
                                                       Handle signal, u32 count, Handle* waits);
    Result (*zeFenceCreate)(Handle queue, const FenceDesc*, Handle* fence);
    Result (*zeFenceDestroy)(Handle fence);
    Result (*zeFenceReset)(Handle fence);
    Result (*zeFenceQueryStatus)(Handle fence);
    Result (*zeDeviceGetCommandQueueGroupProperties)(Handle device, u32* count, QueueGroup*);
    Result (*zeDeviceGetProperties)(Handle device, DeviceProperties*);
    Result (*zeDeviceGetGlobalTimestamps)(Handle device, u64* host, u64* ticks);

    // Whether operations can be timed at all.
    bool is_whole() const;
    // Whether it can reset events on the device.
    bool can_reset() const;
    // Whether it has fences.
    bool has_fences() const;
};

// The functions, looked up once the tables are known.
extern std::atomic<const Driver*> known_driver;
const Driver& look_up_driver();
inline const Driver& driver() {
    const Driver* known = known_driver.load(std::memory_order_acquire);
    return known != nullptr ? *known : look_up_driver();
}

}  // namespace lanescope::levelzero::tracer
