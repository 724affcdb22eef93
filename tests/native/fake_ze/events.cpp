// Event pools and events.
#include "api.hpp"
#include "driver_quirks.hpp"
#include "timestamps.hpp"
#include "device_state.hpp"

namespace fake_ze {
namespace {

Event* make_event(bool has_ticks) {
    auto* event = make<Event>();
    event->has_ticks = has_ticks;
    event->start = event->end = poison;
    return event;
}

// Whether the host takes it for signalled.
bool host_sees(const Event& event) {
    return event.signalled.load(std::memory_order_acquire) != 0 || event.stuck.load(std::memory_order_acquire) != 0;
}

// What a status query costs on the real driver.
void take_time(const Event& event) {
    if (!event.has_ticks || quirks().status_ns == 0) return;
    const uint64_t until = host_ns() + quirks().status_ns;
    while (host_ns() < until) {
    }
}

ze_result_t ticks_ready(const Event& event) {
    if (!event.has_ticks) return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    if (!host_sees(event) && quirks().unsignalled_not_ready) {
        return ZE_RESULT_NOT_READY;
    }
    return ZE_RESULT_SUCCESS;
}

}  // namespace

ze_result_t zeEventPoolCreate(ze_context_handle_t handle, const ze_event_pool_desc_t* desc, uint32_t,
                              ze_device_handle_t*, ze_event_pool_handle_t* out) {
    FAKE_ZE_ENTER(zeEventPoolCreate);
    auto* context = find<Context>(handle);
    if (context == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    if (desc == nullptr || out == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    if (desc->count == 0) return ZE_RESULT_ERROR_INVALID_SIZE;
    auto* pool = make<Pool>();
    pool->context = Ref<Context>(context);
    pool->flags = desc->flags;
    pool->count = desc->count;
    context->objects.fetch_add(1);
    *out = to_handle(pool);
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeEventPoolDestroy(ze_event_pool_handle_t handle) {
    FAKE_ZE_ENTER(zeEventPoolDestroy);
    auto* pool = find<Pool>(handle);
    if (pool == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    if (pool->events.load() != 0) oddity("event pool destroyed with events in it");
    if (pool->context.is_alive()) pool->context.object->objects.fetch_sub(1);
    destroy(pool);
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeEventPoolGetContextHandle(ze_event_pool_handle_t handle, ze_context_handle_t* context) {
    FAKE_ZE_ENTER(zeEventPoolGetContextHandle);
    const auto* pool = find<Pool>(handle);
    if (pool == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    *context = to_handle(pool->context.object);
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeEventPoolGetFlags(ze_event_pool_handle_t handle, ze_event_pool_flags_t* flags) {
    FAKE_ZE_ENTER(zeEventPoolGetFlags);
    const auto* pool = find<Pool>(handle);
    if (pool == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    *flags = pool->flags;
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeEventCreate(ze_event_pool_handle_t handle, const ze_event_desc_t* desc, ze_event_handle_t* out) {
    FAKE_ZE_ENTER(zeEventCreate);
    auto* pool = find<Pool>(handle);
    if (pool == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    if (desc == nullptr || out == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    if (desc->index >= pool->count) return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    if (!context_lives(*pool, "zeEventCreate")) return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    auto* event = make_event((pool->flags & ZE_EVENT_POOL_FLAG_KERNEL_TIMESTAMP) != 0);
    event->pool = Ref<Pool>(pool);
    event->context = pool->context;
    event->signal_scope = desc->signal;
    event->wait_scope = desc->wait;
    pool->events.fetch_add(1);
    *out = to_handle(event);
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeEventCounterBasedCreate(ze_context_handle_t handle, ze_device_handle_t,
                                      const ze_event_counter_based_desc_t* desc, ze_event_handle_t* out) {
    FAKE_ZE_ENTER(zeEventCounterBasedCreate);
    auto* context = find<Context>(handle);
    if (context == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    if (desc == nullptr || out == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    auto* event = make_event((desc->flags & counter_based_flag_device_timestamp) != 0);
    event->context = Ref<Context>(context);
    event->signal_scope = desc->signal;
    event->wait_scope = desc->wait;
    event->is_counter = true;
    event->signalled.store(1);  // such events are born complete
    *out = to_handle(event);
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeEventDestroy(ze_event_handle_t handle) {
    FAKE_ZE_ENTER(zeEventDestroy);
    auto* event = find<Event>(handle);
    if (event == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    if (event->queued.load() != 0 && !scheduler().is_lost()) mistake("event destroyed while the device uses it");
    if (event->recorded.load() != 0) oddity("event destroyed while a list uses it");
    if (event->pool.is_alive()) event->pool.object->events.fetch_sub(1);
    destroy(event);
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeEventHostSignal(ze_event_handle_t handle) {
    FAKE_ZE_ENTER(zeEventHostSignal);
    auto* event = find<Event>(handle);
    if (event == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    event->signalled.store(1, std::memory_order_release);
    scheduler().changed();
    scheduler().poll();
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeEventHostReset(ze_event_handle_t handle) {
    FAKE_ZE_ENTER(zeEventHostReset);
    auto* event = find<Event>(handle);
    if (event == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    if (!context_lives(*event, "zeEventHostReset")) return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    if (event->is_counter) oddity("counter-based event reset");
    // A query may still wait for what comes after the reset.
    if (event->queued.load() != event->queried.load()) oddity("event reset while the device uses it");
    if (event->has_ticks && quirks().host_reset == HostReset::sticky) return ZE_RESULT_SUCCESS;
    if (event->has_ticks && quirks().host_reset == HostReset::view && event->signalled.load() != 0) event->stuck.store(1);
    event->signalled.store(0, std::memory_order_release);
    reset_ticks(*event);
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeEventHostSynchronize(ze_event_handle_t handle, uint64_t timeout) {
    FAKE_ZE_ENTER(zeEventHostSynchronize);
    auto* event = find<Event>(handle);
    if (event == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    if (!context_lives(*event, "zeEventHostSynchronize")) return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    return scheduler().wait(timeout, [event] { return host_sees(*event); });
}

ze_result_t zeEventQueryStatus(ze_event_handle_t handle) {
    FAKE_ZE_ENTER(zeEventQueryStatus);
    const auto* event = find<Event>(handle);
    if (event == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    if (!context_lives(*event, "zeEventQueryStatus")) return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    if (scheduler().status_is_lost()) return ZE_RESULT_ERROR_DEVICE_LOST;
    scheduler().poll();
    take_time(*event);
    return host_sees(*event) ? ZE_RESULT_SUCCESS : ZE_RESULT_NOT_READY;
}

ze_result_t zeEventQueryKernelTimestamp(ze_event_handle_t handle, ze_kernel_timestamp_result_t* result) {
    FAKE_ZE_ENTER(zeEventQueryKernelTimestamp);
    const auto* event = find<Event>(handle);
    if (event == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    if (!context_lives(*event, "zeEventQueryKernelTimestamp")) return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    if (const ze_result_t code = ticks_ready(*event); code != ZE_RESULT_SUCCESS) return code;
    *result = read_ticks(*event);
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeEventQueryTimestampsExp(ze_event_handle_t handle, ze_device_handle_t, uint32_t* count,
                                      ze_kernel_timestamp_result_t* results) {
    FAKE_ZE_ENTER(zeEventQueryTimestampsExp);
    const auto* event = find<Event>(handle);
    if (event == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    if (!context_lives(*event, "zeEventQueryTimestampsExp")) return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    if (const ze_result_t code = ticks_ready(*event); code != ZE_RESULT_SUCCESS) return code;
    if (*count == 0 || *count > 1) *count = 1;
    if (results != nullptr) results[0] = read_ticks(*event);
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeEventQueryKernelTimestampsExt(ze_event_handle_t handle, ze_device_handle_t, uint32_t* count,
                                            ze_event_query_kernel_timestamps_results_ext_properties_t* results) {
    FAKE_ZE_ENTER(zeEventQueryKernelTimestampsExt);
    const auto* event = find<Event>(handle);
    if (event == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    if (!context_lives(*event, "zeEventQueryKernelTimestampsExt")) return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    if (const ze_result_t code = ticks_ready(*event); code != ZE_RESULT_SUCCESS) return code;
    if (*count == 0 || *count > 1) *count = 1;
    if (results == nullptr) return ZE_RESULT_SUCCESS;
    if (results->pKernelTimestampsBuffer != nullptr) results->pKernelTimestampsBuffer[0] = read_ticks(*event);
    if (results->pSynchronizedTimestampsBuffer != nullptr) {
        const ze_kernel_timestamp_data_t interval = {event->start_ns.load(), event->end_ns.load()};
        results->pSynchronizedTimestampsBuffer[0] = {interval, interval};
    }
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeEventGetEventPool(ze_event_handle_t handle, ze_event_pool_handle_t* pool) {
    FAKE_ZE_ENTER(zeEventGetEventPool);
    const auto* event = find<Event>(handle);
    if (event == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    *pool = to_handle(event->pool.object);
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeEventGetSignalScope(ze_event_handle_t handle, ze_event_scope_flags_t* scope) {
    FAKE_ZE_ENTER(zeEventGetSignalScope);
    const auto* event = find<Event>(handle);
    if (event == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    *scope = event->signal_scope;
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeEventGetWaitScope(ze_event_handle_t handle, ze_event_scope_flags_t* scope) {
    FAKE_ZE_ENTER(zeEventGetWaitScope);
    const auto* event = find<Event>(handle);
    if (event == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    *scope = event->wait_scope;
    return ZE_RESULT_SUCCESS;
}

}  // namespace fake_ze
