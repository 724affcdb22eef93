// Events of the program that are watched: where our own cannot be reset, the ticks of an operation are those of the event
// that it signals anyway, as long as nothing else does.
#include <new>

#include "tracer/state/internal.hpp"
#include "tracer/tracer.hpp"

namespace lanescope::levelzero::tracer {

namespace {

void release_pool(TickedPool* pool) {
    if (pool->is_destroyed && pool->events == 0) delete pool;
}

void forget_ticked(State& all, TickedEvent* event) {
    --event->pool->events;
    release_pool(event->pool);
    event->next = all.free_ticked;
    all.free_ticked = event;
}

}  // namespace

void on_pool_created(Handle pool, const PoolDesc* desc) {
    State& all = state();
    constexpr u32 wanted = pool_host_visible | pool_timestamps;
    if (local.holds || !all.options.timing || desc == nullptr || (desc->flags & wanted) != wanted) return;
    StateLock lock;
    auto* made = new (std::nothrow) TickedPool;
    if (made != nullptr && !all.ticked_pools.add(pool, made)) delete made;
}

void on_pool_destroyed(Handle handle) {
    State& all = state();
    if (local.holds || !all.options.timing) return;
    StateLock lock;
    TickedPool* pool = all.ticked_pools.remove(handle);
    if (pool == nullptr) return;
    pool->is_destroyed = true;
    release_pool(pool);
}

void on_pool_shared(Handle handle) {
    State& all = state();
    if (local.holds) return;
    StateLock lock;
    if (TickedPool* pool = all.ticked_pools.find(handle)) pool->is_shared = true;
}

void on_event_created(Handle pool_handle, Handle handle) {
    State& all = state();
    if (local.holds || !all.options.timing) return;
    StateLock lock;
    TickedPool* pool = all.ticked_pools.find(pool_handle);
    if (pool == nullptr) return;
    TickedEvent* made = all.free_ticked;
    if (made != nullptr) all.free_ticked = made->next;
    else made = new (std::nothrow) TickedEvent;
    if (made == nullptr) return;
    *made = TickedEvent{};
    made->pool = pool;
    ++pool->events;
    // Its end may not have been seen.
    if (TickedEvent* before = all.ticked.remove(handle)) forget_ticked(all, before);
    if (!all.ticked.add(handle, made)) forget_ticked(all, made);
}

void forget_watched(State& all, Handle handle) {
    if (TickedEvent* event = all.ticked.remove(handle)) forget_ticked(all, event);
}

void on_foreign_use(Handle event) {
    State& all = state();
    if (local.holds || all.ticked.size() == 0) return;
    StateLock lock;
    set_foreign(all, event);
}

TickedEvent* watchable(State& all, Handle event) {
    TickedEvent* found = all.ticked.find(event);
    if (found == nullptr || found->is_foreign || found->pool->is_shared) return nullptr;
    // A command of the recorder has signalled it, or will.
    const UserEvent* known = all.events.find(event);
    return known != nullptr && (known->newest != nullptr || known->seen != 0) ? nullptr : found;
}

void set_foreign(State& all, Handle event) {
    if (TickedEvent* found = all.ticked.find(event)) found->is_foreign = true;
}

bool is_watched_alone(State& all, const TimedOp& op) {
    const TickedEvent* event = all.ticked.find(op.user->handle);
    return event != nullptr && !event->is_foreign && !event->pool->is_shared;
}

void begin_watch(State& all, TimedOp& op) {
    op.is_spoilt = op.is_final = op.has_last_end = false;
    TickedEvent* event = op.user->id == op.user_id ? all.ticked.find(op.user->handle) : nullptr;
    if (event == nullptr) {
        op.is_spoilt = true;
        return;
    }
    if (event->is_foreign || event->pool->is_shared || event->watched != 0) op.is_spoilt = true;
    if (event->watched++ == 0) {
        event->watcher = &op;
    } else if (event->watcher != nullptr) {
        event->watcher->is_spoilt = true;
    }
    // Who asks for its timestamps gets those that are in it.
    op.user->untimed_last = true;
    Ticks ticks;
    if (driver().zeEventQueryKernelTimestamp(op.user->handle, &ticks) == success) {
        op.last_end = ticks.end;
        op.has_last_end = true;
    }
}

void end_watch(State& all, TimedOp& op) {
    TickedEvent* event = op.user->id == op.user_id ? all.ticked.find(op.user->handle) : nullptr;
    if (event == nullptr || event->watched == 0) return;
    --event->watched;
    if (event->watcher == &op) event->watcher = nullptr;
}

}  // namespace lanescope::levelzero::tracer
