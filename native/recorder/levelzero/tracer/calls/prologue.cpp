// Prologues: where host resets do not un-signal events with timestamps, a list of the recorder in front of a later run of the
// program's list resets our events on the device, and holds the queue back until it has. Nothing waits on the host.
#include <cstdio>

#include "tracer/state/internal.hpp"
#include "tracer/tracer.hpp"

namespace lanescope::levelzero::tracer {

namespace {

constexpr u32 first_minor_in_order = 7;

template <class F>
Result each_event(const List& list, F f) {
    for (const OpChunk* chunk = list.first; chunk != nullptr; chunk = chunk->next) {
        for (u32 i = 0; i < chunk->used; ++i) {
            const TimedOp& op = chunk->ops[i];
            if (op.released || op.injected == nullptr) continue;
            if (const Result result = f(op.injected->event); result != success) return result;
        }
    }
    return success;
}

// Resets in the order of the list, then a wait for an event that the list itself signals behind them: whatever follows
// on the queue starts later. Without in-order lists barriers order the same, and hold back more than they need.
Result fill(List& list, Handle made, bool in_order) {
    list.resets = 0;
    Result result = each_event(list, [&](Handle event) {
        ++list.resets;
        return driver().zeCommandListAppendEventReset(made, event);
    });
    if (in_order) {
        if (result == success) result = driver().zeCommandListAppendSignalEvent(made, list.gate);
        if (result == success) result = driver().zeCommandListAppendWaitOnEvents(made, 1, &list.gate);
    } else if (result == success) {
        result = driver().zeCommandListAppendBarrier(made, nullptr, 0, nullptr);
    }
    return result == success ? driver().zeCommandListClose(made) : result;
}

Result make_prologue(List& list) {
    if (list.gate == nullptr && !make_gate(list.context->handle, list.gate, list.gate_pool)) return out_of_host_memory;
    const u32 minor = state().api_minor.load(std::memory_order_relaxed);
    const bool in_order = minor >= first_minor_in_order;
    const ListDesc desc = {stype_list_desc, nullptr, list.ordinal, in_order ? list_in_order : 0};
    Handle made = nullptr;
    Result result = driver().zeCommandListCreate(list.context->handle, list.device->handle, &desc, &made);
    if (result != success) return result;
    result = fill(list, made, in_order);
    if (result != success) {
        driver().zeCommandListDestroy(made);
        return result;
    }
    list.prologue = made;
    if (!in_order) {
        StateLock lock;
        count_untimed(list, Reason::prologue_barrier);
    }
    return success;
}

// What is left where there can be no prologue: the same by an immediate list, on another engine if there is one, and a
// wait. The program's signals come first: they would fire early if our events stayed as they are.
Result reset_and_wait(List& list) {
    if (list.gate == nullptr && !make_gate(list.context->handle, list.gate, list.gate_pool)) return out_of_host_memory;
    Result result = driver().zeEventHostReset(list.gate);
    if (result != success) return result;
    QueueDesc desc = {stype_queue_desc, nullptr, list.ordinal, 0, 0, queue_mode_asynchronous, 0};
    if (list.device->groups > 1) desc.ordinal = list.ordinal == 0 ? 1 : 0;
    Handle own = nullptr;
    result = driver().zeCommandListCreateImmediate(list.context->handle, list.device->handle, &desc, &own);
    if (result != success) return result;
    result = each_event(list, [&](Handle event) { return driver().zeCommandListAppendEventReset(own, event); });
    if (result == success) result = driver().zeCommandListAppendBarrier(own, list.gate, 0, nullptr);
    constexpr u64 ten_seconds = 10'000'000'000;
    if (result == success) {
        result = driver().zeEventHostSynchronize(list.gate, ten_seconds);
        if (result == not_ready) {
            std::fprintf(stderr, "lanescope: warning: waiting for event resets before a command list runs again\n");
            result = driver().zeEventHostSynchronize(list.gate, ~u64{0});
        }
    }
    // What may still run is left.
    if (result == success) driver().zeCommandListDestroy(own);
    return result;
}

}  // namespace

Result prepare_prologue(List& list, Handle& front) {
    front = nullptr;
    Result result = list.prologue != nullptr ? success : make_prologue(list);
    if (result == success && (result = driver().zeEventHostReset(list.gate)) == success) {
        front = list.prologue;
        return success;
    }
    {
        StateLock lock;
        count_untimed(list, Reason::prologue_refused, result);
    }
    return reset_and_wait(list);
}

void drop_prologue(List& list) {
    if (list.prologue != nullptr) driver().zeCommandListDestroy(list.prologue);
    if (list.gate != nullptr) {
        driver().zeEventDestroy(list.gate);
        driver().zeEventPoolDestroy(list.gate_pool);
    }
    list.prologue = list.gate = list.gate_pool = nullptr;
}

}  // namespace lanescope::levelzero::tracer
