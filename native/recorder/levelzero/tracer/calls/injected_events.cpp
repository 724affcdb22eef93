// Injected events: acquire and recycle them, and determine whether a reset un-signals them.
#include <new>

#include "tracer/state/internal.hpp"

namespace lanescope::levelzero::tracer {

namespace {

// An event with timestamps in a pool of its own; null where the driver refuses.
InjectedEvent* make_event(Handle context) {
    auto* made = new (std::nothrow) InjectedEvent;
    if (made == nullptr) return nullptr;
    const PoolDesc pool = {stype_pool_desc, nullptr, pool_host_visible | pool_timestamps, 1};
    const EventDesc desc = {stype_event_desc, nullptr, 0, scope_host, scope_host};
    if (driver().zeEventPoolCreate(context, &pool, 0, nullptr, &made->pool) == success) {
        if (driver().zeEventCreate(made->pool, &desc, &made->event) == success) return made;
        driver().zeEventPoolDestroy(made->pool);
    }
    delete made;
    return nullptr;
}

void destroy(InjectedEvent& event) {
    driver().zeEventDestroy(event.event);
    driver().zeEventPoolDestroy(event.pool);
    delete &event;
}

}  // namespace

bool make_gate(Handle context, Handle& event, Handle& pool) {
    const PoolDesc pool_desc = {stype_pool_desc, nullptr, pool_host_visible, 1};
    const EventDesc desc = {stype_event_desc, nullptr, 0, scope_host, scope_host};
    if (driver().zeEventPoolCreate(context, &pool_desc, 0, nullptr, &pool) != success) return false;
    if (driver().zeEventCreate(pool, &desc, &event) == success) return true;
    driver().zeEventPoolDestroy(pool);
    event = pool = nullptr;
    return false;
}

InjectedEvent* acquire_event(List& list) {
    Context& context = *list.context;
    if (InjectedEvent* event = list.events) {
        list.events = event->next;
        return event;
    }
    if (InjectedEvent* event = context.events) {
        context.events = event->next;
        return event;
    }
    InjectedEvent* made = make_event(context.handle);
    if (made == nullptr) return nullptr;
    made->context = &context;
    ++context.made_events;
    return made;
}

void recycle_event(InjectedEvent& event, bool was_used, List* list) {
    if (event.pins != 0) {
        event.is_recycled = true;
        return;
    }
    Context& context = *event.context;
    bool is_free = !was_used;
    if (was_used) {
        const Resets resets = context.resets;
        is_free = resets != Resets::fail && driver().zeEventHostReset(event.event) == success;
        // Under some drivers an event with timestamps stays signalled; the next operation would seem to have ended.
        if (is_free && resets != Resets::work) is_free = driver().zeEventQueryStatus(event.event) == not_ready;
    }
    if (is_free) {
        event.is_recycled = false;
        InjectedEvent*& free = list != nullptr ? list->events : context.events;
        event.next = free;
        free = &event;
    } else {
        --context.made_events;
        destroy(event);
    }
}

bool ensure_signal_constant(Context& context) {
    if (context.signal_constant != nullptr) return true;
    const HostMemoryDesc desc = {stype_host_memory_desc, nullptr, 0};
    void* memory = nullptr;
    if (driver().zeMemAllocHost(context.handle, &desc, 8, 8, &memory) != success || memory == nullptr) return false;
    *static_cast<u64*>(memory) = 1;
    context.signal_constant = memory;
    return true;
}

Context* find_or_add_context(Handle handle) {
    State& all = state();
    if (Context* found = all.contexts.find(handle)) return found;
    auto* made = new (std::nothrow) Context;
    if (made == nullptr) return nullptr;
    made->handle = handle;
    if (all.contexts.add(handle, made)) return made;
    delete made;
    return nullptr;
}

// Of one device; of all devices of the context (null): what all have in common.
Resets reset_support(const Context& context, const Device* device) {
    Resets common = Resets::unknown;
    for (const Probe* probe = context.probes; probe != nullptr; probe = probe->next) {
        if (device != nullptr && probe->device == device) return probe->resets;
        if (device != nullptr) continue;
        if (common != Resets::unknown && common != probe->resets) return Resets::undecided;
        common = probe->resets;
    }
    return common;
}

Reason choose_rerun(const State& all, const Context& context, const Device* device, Rerun& rerun) {
    rerun = Rerun::reset;
    if (reset_support(context, device) == Resets::work) return Reason::none;
    if (!all.options.has_reruns) return Reason::out_of_order_no_reset;
    rerun = Rerun::watch;
    for (const Probe* probe = context.probes; probe != nullptr && all.options.has_prologues; probe = probe->next) {
        if (probe->device == device && probe->device_resets) rerun = Rerun::prologue;
    }
    return Reason::none;
}

namespace {

// A device that is busy, or a machine that is, answers late; one that does not answer costs this once.
constexpr u64 longest_probe_ns = 2'000'000'000;

void destroy_probe(Handle list, InjectedEvent& event, Handle plain, Handle pool) {
    if (plain != nullptr) driver().zeEventDestroy(plain);
    if (pool != nullptr) driver().zeEventPoolDestroy(pool);
    driver().zeCommandListDestroy(list);
    destroy(event);
}

// Waits for an event of a probe; keeps what was made for it where the device does not answer in time.
bool is_answered(Probe& probe, Handle list, InjectedEvent& event, Handle plain, Handle pool) {
    const Result result = driver().zeEventHostSynchronize(plain != nullptr ? plain : event.event, longest_probe_ns);
    if (result == not_ready) {
        probe.list = list;
        probe.event = &event;
        probe.plain = plain;
        probe.pool = pool;
    }
    return result == success;
}

// Signals an event, resets it, and asks for its status. Where anything fails, what was made for it is left.
// `device_resets`: whether a command does and plain events can be reset, where the host's reset does not.
Resets try_reset(Handle context, Probe& probe, u32 ordinal, bool& device_resets) {
    const QueueDesc desc = {stype_queue_desc, nullptr, ordinal, 0, 0, queue_mode_asynchronous, 0};
    Handle list = nullptr;
    if (driver().zeCommandListCreateImmediate(context, probe.device->handle, &desc, &list) != success) return Resets::undecided;
    InjectedEvent* event = make_event(context);
    if (event == nullptr) {
        driver().zeCommandListDestroy(list);
        return Resets::undecided;
    }
    if (driver().zeCommandListAppendBarrier(list, event->event, 0, nullptr) != success ||
        !is_answered(probe, list, *event, nullptr, nullptr) || driver().zeEventHostReset(event->event) != success) {
        return Resets::undecided;
    }
    const Resets found = driver().zeEventQueryStatus(event->event) == not_ready ? Resets::work : Resets::fail;
    Handle plain = nullptr, pool = nullptr;
    if (found == Resets::fail && driver().can_reset()) {
        if (!make_gate(context, plain, pool)) return found;
        if (driver().zeCommandListAppendEventReset(list, event->event) != success ||
            driver().zeCommandListAppendBarrier(list, plain, 0, nullptr) != success ||
            !is_answered(probe, list, *event, plain, pool)) {
            return found;
        }
        device_resets = driver().zeEventQueryStatus(event->event) == not_ready && driver().zeEventHostReset(plain) == success &&
                        driver().zeEventQueryStatus(plain) == not_ready;
    }
    destroy_probe(list, *event, plain, pool);
    return found;
}

}  // namespace

// The context is about to be destroyed: what a late answer left is not in use any more, once the answer is there.
void forget_probe(Probe& probe) {
    if (probe.list == nullptr) return;
    const Handle awaited = probe.plain != nullptr ? probe.plain : probe.event->event;
    if (driver().zeEventQueryStatus(awaited) == success) destroy_probe(probe.list, *probe.event, probe.plain, probe.pool);
    probe.list = nullptr;
}

void probe_reset_support(Handle context_handle, Device& device, u32 ordinal) {
    State& all = state();
    StateLock lock;
    Context* context = find_or_add_context(context_handle);
    if (context == nullptr) return;
    Probe* found = context->probes;
    while (found != nullptr && found->device != &device) found = found->next;
    if (found == nullptr) {
        found = new (std::nothrow) Probe{&device, Resets::unknown, context->probes};
        if (found == nullptr) return;
        context->probes = found;
        context->resets = reset_support(*context, nullptr);
    }
    while (found->resets == Resets::probing) lock.wait();
    if (found->resets != Resets::unknown) return;
    found->resets = Resets::probing;
    context->resets = reset_support(*context, nullptr);
    lock.unlock();
    bool device_resets = false;
    const Resets resets = try_reset(context_handle, *found, ordinal, device_resets);
    lock.lock();
    found->device_resets = device_resets;
    found->resets = resets;
    context->resets = reset_support(*context, nullptr);
    all.changed.notify_all();
}

}  // namespace lanescope::levelzero::tracer
