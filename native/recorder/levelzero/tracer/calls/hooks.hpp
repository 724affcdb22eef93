// The tracer's hooks: included where the entry points are made.
#pragma once

#include <tuple>

#include "tracer/tracer.hpp"

namespace lanescope::levelzero {

// The place of a parameter among those of a function; too large if it has none of that name.
consteval usize place_of(std::string_view parameters, std::string_view name) {
    usize place = 0;
    while (!parameters.empty()) {
        const usize comma = parameters.find(',');
        std::string_view one = parameters.substr(0, comma);
        while (one.ends_with(' ')) one.remove_suffix(1);
        one.remove_prefix(one.find_last_of(" *") + 1);
        if (one == name) return place;
        if (comma == std::string_view::npos) break;
        parameters.remove_prefix(comma + 1);
        ++place;
    }
    return 1000;
}

inline constexpr usize none = 1000;

struct Plain {
    template <class T>
    static void tell(Call& call, const tracer::Append& append, Function api, u32 waits, const Handle* events, const T&) {
        tracer::emit_plain(call, append, api, waits, events);
    }
};

template <usize kernel, usize groups>
struct Kernel {
    template <class T>
    static void tell(Call& call, const tracer::Append& append, Function api, u32 waits, const Handle* events, const T& all) {
        Groups counts{};
        if constexpr (groups != none) {
            if constexpr (std::is_pointer_v<std::tuple_element_t<groups, T>>) {
                if (std::get<groups>(all) != nullptr) counts = *std::get<groups>(all);
            } else {
                counts = std::get<groups>(all);
            }
        }
        tracer::emit_kernel(call, append, api, waits, events, std::get<kernel>(all), counts);
    }
};

template <usize count, usize kernels>
struct FirstKernel {
    template <class T>
    static void tell(Call& call, const tracer::Append& append, Function api, u32 waits, const Handle* events, const T& all) {
        const auto* found = std::get<kernels>(all);
        const bool is_there = std::get<count>(all) != 0 && found != nullptr;
        tracer::emit_kernel(call, append, api, waits, events, is_there ? found[0] : nullptr, {});
    }
};

template <usize size, usize dst, usize src>
struct Memory_ {
    template <class T>
    static void tell(Call& call, const tracer::Append& append, Function api, u32 waits, const Handle* events, const T& all) {
        Address from = nullptr;
        if constexpr (src != none) from = std::get<src>(all);
        tracer::emit_memory(call, append, api, waits, events, std::get<size>(all), std::get<dst>(all), from);
    }
};

// The hook of a timed Append.
template <Function F, usize signal, class What>
struct TimedAppend {
    static_assert(place_of(Signature<F>::parameters, "hSignalEvent") == signal, "timed.def: the event is elsewhere");
    static_assert(place_of(Signature<F>::parameters, "phWaitEvents") == signal + 2, "timed.def: no events behind it");

    template <class... A>
    static Result call(Call& call, Next<F> next, A... a) {
        std::tuple<A...> all(a...);
        if (tracer::captures.load(std::memory_order_relaxed) != 0) {
            tracer::join_capture(std::get<0>(all), std::get<signal>(all), std::get<signal + 1>(all),
                                 std::get<signal + 2>(all));
        }
        if constexpr (F == Function::zeCommandListAppendGraphExt) {
            if (tracer::state().has_captured.load(std::memory_order_relaxed)) tracer::before_graph();
        }
        tracer::Append append(std::get<0>(all), std::get<signal>(all));
        tracer::begin_append(append);
        std::get<signal>(all) = append.signal;
        if constexpr (F == Function::zeCommandListAppendQueryKernelTimestamps) {
            tracer::translate(append, std::get<1>(all), std::get<2>(all));
            if (append.events != nullptr) std::get<2>(all) = append.events;
        }
        Result result = std::apply(next, all);
        result = tracer::end_append(append, result);
        if (result == success && append.is_told) {
            What::tell(call, append, F, std::get<signal + 1>(all), std::get<signal + 2>(all), all);
        }
        if (append.op != nullptr) tracer::collect_if_synchronous(append);
        return result;
    }
};

#define Memory Memory_
#define TIMED(function, signal, ...) \
    template <>                      \
    struct Hook<Function::function> : TimedAppend<Function::function, signal, __VA_ARGS__> {};
#include "tracer/readback/timed.def"
#undef Memory

// --- what else the tracer sees -------------------------------------------------------------------------------------

INSTEAD(zeCommandListAppendWaitOnEvents, Handle list, u32 count, Handle* events) {
    if (tracer::captures.load(std::memory_order_relaxed) != 0) tracer::join_capture(list, nullptr, count, events);
    return next(list, count, events);
}

INSTEAD(zeCommandListAppendSignalEvent, Handle list, Handle event) {
    if (tracer::captures.load(std::memory_order_relaxed) != 0) tracer::join_capture(list, event, 0, nullptr);
    tracer::Append append(list, event);
    tracer::begin_untimed_append(append);
    const Result result = next(list, event);
    if (result == success) tracer::emit_plain(call, append, Function::zeCommandListAppendSignalEvent, 0, nullptr);
    return result;
}

// What the program's pointers point to is copied: before the driver has accepted a call they may lead nowhere.
INSTEAD(zeCommandListCreate, Handle context, Handle device, const ListDesc* desc, Created* list) {
    ListDesc copied;
    const bool is_there = copy_of_program(&copied, desc, sizeof copied);
    if (is_there) tracer::prepare(context, device, copied.ordinal, false, (copied.flags & list_in_order) != 0);
    const Result result = next(context, device, desc, list);
    if (result == success) tracer::on_list_created(call, static_cast<Handle>(list->value), context, device, copied);
    return result;
}

INSTEAD(zeCommandListCreateImmediate, Handle context, Handle device, const QueueDesc* desc, Created* list) {
    QueueDesc copied;
    const bool is_there = copy_of_program(&copied, desc, sizeof copied);
    if (is_there) tracer::prepare(context, device, copied.ordinal, true, (copied.flags & queue_in_order) != 0);
    const Result result = next(context, device, desc, list);
    if (result == success) tracer::on_list_created(call, static_cast<Handle>(list->value), context, device, copied);
    return result;
}

AFTER(zeCommandListCreateCloneExp, Handle list, Created* clone) {
    tracer::on_list_cloned(call, list, static_cast<Handle>(clone->value));
}

INSTEAD(zeCommandListReset, Handle list) {
    tracer::before_reset(list);
    const Result result = next(list);
    if (result == success) tracer::after_reset(call, list);
    return result;
}

INSTEAD(zeCommandListDestroy, Handle list) {
    call.start();
    tracer::List* known = tracer::before_destroy(list);
    const Result result = next(list);
    tracer::after_destroy(call, known, result == success);
    return result;
}

INSTEAD(zeCommandListBeginGraphCaptureExt, Handle list, auto... more) {
    const Result result = next(list, more...);
    if (result == success) tracer::set_capturing(list, true);
    return result;
}
INSTEAD(zeCommandListBeginCaptureIntoGraphExt, Handle list, auto... more) {
    const Result result = next(list, more...);
    if (result == success) tracer::set_capturing(list, true);
    return result;
}
INSTEAD(zeCommandListEndGraphCaptureExt, Handle list, auto... more) {
    const Result result = next(list, more...);
    if (result == success) tracer::set_capturing(list, false);
    return result;
}

AFTER(zeCommandQueueCreate, Handle, Handle device, const QueueDesc* desc, Created* queue) {
    tracer::on_queue_created(call, static_cast<Handle>(queue->value), device, copy_of_program(desc));
}
INSTEAD(zeCommandQueueDestroy, Handle queue) {
    tracer::before_queue_destroy(queue);
    return next(queue);
}

#define EXECUTE(queue, fence, count, lists, ...)                    \
    call.start();                                                   \
    tracer::Execution execution;                                    \
    tracer::before_execute(execution, queue, fence, count, lists);  \
    if (execution.refused != success) return execution.refused;     \
    if (execution.submitted_count != 0) {                           \
        count = execution.submitted_count;                          \
        lists = execution.submitted;                                \
    }                                                               \
    const Result result = next(__VA_ARGS__);                        \
    tracer::after_execute(call, execution, queue, fence, result);   \
    return result

INSTEAD(zeCommandQueueExecuteCommandLists, Handle queue, u32 count, Handle* lists, Handle fence) {
    EXECUTE(queue, &fence, count, lists, queue, count, lists, fence);
}
// Their own events stay as they are.
#define EXECUTE_NOW(list, count, lists, signal, waits, events, ...)              \
    if (signal != nullptr) tracer::signalled_untimed(signal);                    \
    if (tracer::captures.load(std::memory_order_relaxed) != 0) {                 \
        tracer::join_capture(list, signal, waits, events);                       \
        if (tracer::is_capturing(list)) {                                        \
            const Result result = next(__VA_ARGS__);                             \
            if (result == success) tracer::on_lists_captured(count, lists);      \
            return result;                                                       \
        }                                                                        \
    }                                                                            \
    EXECUTE(list, nullptr, count, lists, __VA_ARGS__)

INSTEAD(zeCommandListImmediateAppendCommandListsExp, Handle list, u32 count, Handle* lists, Handle signal, u32 waits,
        Handle* events) {
    EXECUTE_NOW(list, count, lists, signal, waits, events, list, count, lists, signal, waits, events);
}
INSTEAD(zeCommandListImmediateAppendCommandListsWithParameters, Handle list, u32 count, Handle* lists, auto more,
        Handle signal, u32 waits, Handle* events) {
    EXECUTE_NOW(list, count, lists, signal, waits, events, list, count, lists, more, signal, waits, events);
}
#undef EXECUTE_NOW
#undef EXECUTE

// Without operations whose results are awaited there is nothing to collect, and no clock to read for their sake.
template <>
inline constexpr bool is_collecting<Function::zeEventHostSynchronize> = true;
template <>
inline constexpr bool is_collecting<Function::zeEventQueryStatus> = true;
AFTER(zeEventHostSynchronize, Handle event, u64) { tracer::synced(call, tracer::Waited::event, event, 0); }
AFTER(zeEventQueryStatus, Handle event) { tracer::synced(call, tracer::Waited::event, event, 0); }

// What is submitted while the call waits is not what it has waited for.
#define WAIT(F, what)                                                                \
    INSTEAD(F, Handle handle, auto... more) {                                        \
        const u64 before = tracer::submissions();                                    \
        const Result result = next(handle, more...);                                 \
        if (result == success) tracer::synced(call, tracer::Waited::what, handle, before); \
        return result;                                                               \
    }
WAIT(zeCommandQueueSynchronize, queue)
WAIT(zeCommandListHostSynchronize, list)
WAIT(zeFenceHostSynchronize, fence)
WAIT(zeFenceQueryStatus, fence)
WAIT(zeDeviceSynchronize, device)
#undef WAIT

INSTEAD(zeFenceReset, Handle fence) {
    tracer::on_fence_unset(fence);
    return next(fence);
}
INSTEAD(zeFenceDestroy, Handle fence) {
    tracer::on_fence_unset(fence);
    return next(fence);
}

AFTER(zeEventPoolCreate, Handle, Struct desc, u32, Handle*, Created* pool) {
    tracer::on_pool_created(static_cast<Handle>(pool->value), reinterpret_cast<const tracer::PoolDesc*>(desc));
}
INSTEAD(zeEventPoolDestroy, Handle pool) {
    tracer::on_pool_destroyed(pool);
    return next(pool);
}
INSTEAD(zeEventPoolGetIpcHandle, Handle pool, Struct ipc) {
    tracer::on_pool_shared(pool);
    return next(pool, ipc);
}
AFTER(zeEventCreate, Handle pool, Struct, Created* event) {
    tracer::on_event_created(pool, static_cast<Handle>(event->value));
}
INSTEAD(zeEventHostSignal, Handle event) {
    tracer::on_foreign_use(event);
    return next(event);
}
INSTEAD(zeCommandListAppendEventReset, Handle list, Handle event) {
    tracer::on_foreign_use(event);
    tracer::on_event_reset(event, list);
    return next(list, event);
}
template <>
inline constexpr bool is_for_timing<Function::zeEventHostReset> = true;
INSTEAD(zeEventHostReset, Handle event) {
    tracer::on_event_reset(event, nullptr);
    return next(event);
}

INSTEAD(zeEventDestroy, Handle event) {
    tracer::on_event_destroyed(call, event);
    return next(event);
}

// Of these structures only what is overwritten is named.
struct TimestampsExt {
    u32 stype;
    void* next;
    tracer::Ticks* kernel;
    tracer::Ticks* synchronized;
};

AFTER(zeEventQueryKernelTimestamp, Handle event, auto* ticks) {
    if (ticks != nullptr) tracer::own_ticks(event, *reinterpret_cast<tracer::Ticks*>(ticks));
}
// Who gives no room asks how many there are.
INSTEAD(zeEventQueryTimestampsExp, Handle event, Handle device, u32* count, auto* ticks) {
    const bool has_room = ticks != nullptr && copy_of_program(count) != 0;
    const Result result = next(event, device, count, ticks);
    if (result == success && has_room) tracer::own_ticks(event, *reinterpret_cast<tracer::Ticks*>(ticks));
    return result;
}

inline void correct(Handle event, const TimestampsExt& found) {
    if (found.kernel == nullptr) return;
    i64 shift[2] = {};
    if (!tracer::own_ticks(event, found.kernel[0], &shift) || found.synchronized == nullptr) return;
    tracer::Ticks& times = found.synchronized[0];
    times.start -= static_cast<u64>(shift[0]);
    times.context_start -= static_cast<u64>(shift[0]);
    times.end -= static_cast<u64>(shift[1]);
    times.context_end -= static_cast<u64>(shift[1]);
}

INSTEAD(zeEventQueryKernelTimestampsExt, Handle event, Handle device, u32* count, auto* results) {
    const bool has_room = results != nullptr && copy_of_program(count) != 0;
    const Result result = next(event, device, count, results);
    if (result == success && has_room) correct(event, *reinterpret_cast<const TimestampsExt*>(results));
    return result;
}

INSTEAD(zeContextDestroy, Handle context) {
    tracer::before_context_destroy(context);
    return next(context);
}

}  // namespace lanescope::levelzero
