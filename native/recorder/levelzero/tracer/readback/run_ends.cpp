// Whether a run has ended, where the ticks that the host reads do not show it: fences of the program's or of the recorder.
#include <time.h>

#include <new>

#include "tracer/state/internal.hpp"
#include "tracer/tracer.hpp"

namespace lanescope::levelzero::tracer {

namespace {

// How long a fence may take behind the last event of its lists.
constexpr u64 longest_wait_ns = 100'000'000;

constexpr u64 longer(u64 pause) { return pause >= 1'000'000 ? pause : 2 * pause; }

void sleep_without(StateLock& lock, u64 pause) {
    lock.unlock();
    const timespec time = {0, static_cast<long>(pause)};
    nanosleep(&time, nullptr);
    lock.lock();
}

}  // namespace

bool has_run_ended(List& list) {
    if (!list.has_ended && list.fence != nullptr && driver().has_fences() &&
        driver().zeFenceQueryStatus(list.fence) == success) {
        list.has_ended = true;
    }
    return list.has_ended;
}

// A fence is signalled a moment after the last event of its lists, which is all that the program may have seen. Once that
// did not help, it is not tried again: then other lists of the submission still run, or this one.
bool wait_for_fence(StateLock& lock, List& list) {
    const u64 begin = host_ns();
    for (u64 pause = 1000; !has_run_ended(list); pause = longer(pause)) {
        if (list.fence == nullptr || list.was_unclear || host_ns() - begin > longest_wait_ns) break;
        sleep_without(lock, pause);
    }
    if (!list.has_ended) list.was_unclear = true;
    return list.has_ended;
}

namespace {

// Whether the device has done with a fence of the recorder.
bool is_over(OwnFence& fence) {
    if (fence.is_pending && driver().zeFenceQueryStatus(fence.fence) == success) {
        fence.is_pending = driver().zeFenceReset(fence.fence) != success;
    }
    return !fence.is_pending;
}

}  // namespace

OwnFence* take_fence(State& all, Handle queue, Handle context) {
    if (!driver().has_fences() || queue == nullptr) return nullptr;
    for (OwnFence* fence = all.fences; fence != nullptr; fence = fence->next) {
        if (fence->queue != queue || fence->lists != 0 || !is_over(*fence)) continue;
        fence->lists = 1;
        return fence;
    }
    auto* made = new (std::nothrow) OwnFence{nullptr, queue, context, 1, false, all.fences};
    if (made == nullptr) return nullptr;
    const FenceDesc desc = {stype_fence_desc, nullptr, 0};
    if (driver().zeFenceCreate(queue, &desc, &made->fence) != success) {
        delete made;
        return nullptr;
    }
    all.fences = made;
    return made;
}

void drop_fence(List& list) {
    if (list.own_fence == nullptr) return;
    --list.own_fence->lists;
    list.own_fence = nullptr;
    list.fence = nullptr;
}

OwnFence* remove_fences(State& all, Handle context, Handle queue) {
    OwnFence* removed = nullptr;
    for (OwnFence** at = &all.fences; *at != nullptr;) {
        OwnFence* fence = *at;
        if (context != nullptr ? fence->context != context : fence->queue != queue) {
            at = &fence->next;
            continue;
        }
        *at = fence->next;
        fence->next = removed;
        removed = fence;
    }
    return removed;
}

void destroy_fences(OwnFence* first) {
    while (OwnFence* fence = first) {
        first = fence->next;
        // One that is still to be signalled is left to the driver.
        if (is_over(*fence)) driver().zeFenceDestroy(fence->fence);
        delete fence;
    }
}

namespace {

// Fences of runs that soon cannot be asked any more are asked now. Lists may come and go while the mutex is free.
template <class F>
void ask_before_gone(State& all, StateLock& lock, F is_gone) {
    u64 begin = 0;
    for (u64 pause = 1000;; pause = longer(pause)) {
        bool is_awaited = false;
        const u64 now = host_ns();
        if (begin == 0) begin = now;
        for (List* list = all.active; list != nullptr; list = list->next) {
            if (!list->reads_at_end || list->fence == nullptr || !is_gone(*list)) continue;
            if (!has_run_ended(*list) && !list->was_unclear && now - begin <= longest_wait_ns) {
                is_awaited = true;
                continue;
            }
            if (!list->has_ended) list->was_unclear = true;
            list->fence = nullptr;
        }
        if (!is_awaited) return;
        sleep_without(lock, pause);
    }
}

}  // namespace

void on_fence_unset(Handle fence) {
    State& all = state();
    if (local.holds || fence == nullptr || !all.reads_at_end.load(std::memory_order_relaxed)) return;
    StateLock lock;
    if (!all.has_ended) ask_before_gone(all, lock, [&](const List& list) { return list.fence == fence; });
}

void before_queue_destroy(Handle queue) {
    State& all = state();
    if (local.holds) return;
    OwnFence* fences = nullptr;
    {
        StateLock lock;
        all.queues.remove(queue);
        if (queue == nullptr || all.has_ended || !all.reads_at_end.load(std::memory_order_relaxed)) return;
        ask_before_gone(all, lock, [&](const List& list) { return list.queue == queue; });
        all.lists.each([&](Handle, List* list) {
            if (list->own_fence != nullptr && list->own_fence->queue == queue) drop_fence(*list);
        });
        fences = remove_fences(all, nullptr, queue);
    }
    destroy_fences(fences);
}

}  // namespace lanescope::levelzero::tracer
