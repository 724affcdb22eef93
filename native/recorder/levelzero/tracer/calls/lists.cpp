// Command lists and queues: made, emptied, destroyed.
#include <new>

#include "api/program_memory.hpp"
#include "stream/events.hpp"
#include "tracer/state/internal.hpp"
#include "tracer/tracer.hpp"

namespace lanescope::levelzero::tracer {

namespace {

struct Extension {
    u32 stype;
    const Extension* next;
};

// A driver without extensions does not follow the chain, which may then end nowhere or not at all.
bool is_mutable(const void* next) {
    constexpr int most = 64;
    for (int i = 0; next != nullptr && i < most; ++i) {
        const Extension at = copy_of_program(static_cast<const Extension*>(next));
        if (at.stype == stype_mutable_list) return true;
        next = at.next;
    }
    return false;
}

struct ListInfo {
    u32 id = 0;
    u64 handle = 0, context = 0, device = 0;
    u32 ordinal = 0, index = 0;
    u8 immediate = 0, in_order = 0, computes = 0;
    Reason untimed = Reason::none;

    void write(u64 now) const {
        if (id == 0) return;
        emit<Record::list>(now, u32{id}, u64{handle}, u64{context}, u64{device}, u32{ordinal}, u32{index}, u8{immediate},
                           u8{in_order}, u8{computes}, Reason{untimed});
    }
};

ListInfo list_info(const List& list) {
    return {list.id,
            number(list.handle),
            list.context != nullptr ? number(list.context->handle) : 0,
            list.device != nullptr ? number(list.device->handle) : 0,
            list.ordinal,
            list.index,
            static_cast<u8>(list.immediate),
            static_cast<u8>(list.in_order),
            static_cast<u8>(list.computes),
            list.untimed};
}

// Fills in what follows from the rest, and remembers the list.
void add(Call& call, Handle handle, const ListKind& kind, Handle context, Reason untimed) {
    State& all = state();
    ListInfo told;
    {
        StateLock lock;
        auto* list = new (std::nothrow) List(kind);
        if (list == nullptr) return;
        list->handle = handle;
        list->context = find_or_add_context(context);
        list->untimed = untimed;
        if (list->untimed == Reason::none) {
            if (!all.options.timing || !driver().is_whole()) {
                list->untimed = Reason::not_timed;
            } else if (list->context == nullptr) {
                list->untimed = Reason::no_memory;
            } else if (!list->immediate && !list->in_order) {
                list->untimed = choose_rerun(all, *list->context, list->device, list->rerun);
            }
            list->reads_at_end = !list->immediate && list->context != nullptr &&
                                 reset_support(*list->context, list->device) != Resets::work;
            if (list->reads_at_end) all.reads_at_end = true;
            all.watches |= list->rerun == Rerun::watch;
        }
        if (list->device != nullptr && list->ordinal < list->device->groups) {
            list->computes = (list->device->group_flags[list->ordinal] & group_computes) != 0;
        }
        list->id = ++all.last_list;
        if (List* before = all.lists.find(handle); before != nullptr && before->live == 0) {
            // Its end was not seen: it was destroyed by somebody whose calls are not.
            all.lists.remove(handle);
        }
        if (!all.lists.add(handle, list)) {
            delete list;
            return;
        }
        if (list->context != nullptr) ++list->context->lists;
        list_generation.fetch_add(1, std::memory_order_release);
        told = list_info(*list);
    }
    told.write(call.now());
    static const bool is_registered = [] { return std::atexit([] {
        // While the driver is still loaded: operations that have ended without a synchronization.
        State& still = state();
        if (local.holds) return;
        StateLock lock;
        if (!still.has_ended) collect_results_and_write(still, lock, true);
    }) == 0; }();
    (void)is_registered;
}

}  // namespace

void prepare(Handle context, Handle device, u32 ordinal, bool immediate, bool in_order) {
    State& all = state();
    if (local.holds || all.has_ended || context == nullptr || device == nullptr) return;
    Device* known = describe(device);
    if (known == nullptr || !all.options.timing || !driver().is_whole()) return;
    if (all.options.eager_probe || (!immediate && !in_order)) probe_reset_support(context, *known, ordinal);
}

void on_list_created(Call& call, Handle list, Handle context, Handle device, const ListDesc& desc) {
    if (local.holds) return;
    ListKind made;
    made.device = describe(device);
    made.ordinal = desc.ordinal;
    made.in_order = (desc.flags & list_in_order) != 0;
    const Reason untimed = (desc.flags & list_cloneable) != 0 ? Reason::cloneable
                           : is_mutable(desc.next)            ? Reason::is_mutable
                                                              : Reason::none;
    add(call, list, made, context, untimed);
}

void on_list_created(Call& call, Handle list, Handle context, Handle device, const QueueDesc& desc) {
    if (local.holds) return;
    ListKind made;
    made.device = describe(device);
    made.ordinal = desc.ordinal;
    made.index = desc.index;
    made.immediate = true;
    made.in_order = (desc.flags & queue_in_order) != 0;
    made.synchronous = desc.mode == queue_mode_synchronous;
    add(call, list, made, context, Reason::none);
}

// A clone shares what was recorded with its original.
void on_list_cloned(Call& call, Handle handle, Handle clone) {
    if (local.holds) return;
    ListKind made;
    Handle context = nullptr;
    {
        StateLock lock;
        const List* known = find_list(state(), handle);
        if (known == nullptr || known->context == nullptr) return;
        context = known->context->handle;
        made.device = known->device;
        made.ordinal = known->ordinal;
        made.in_order = known->in_order;
    }
    add(call, clone, made, context, Reason::cloneable);
}

void before_reset(Handle handle) {
    State& all = state();
    if (local.holds) return;
    StateLock lock;
    List* list = find_list(all, handle);
    if (list == nullptr || all.has_ended) return;
    wait_for_results(all, lock, *list);
    drop_fence(*list);
}

void after_reset(Call& call, Handle handle) {
    State& all = state();
    if (local.holds) return;
    DeferredFree left{};
    ListInfo told;
    Degradations degradations;
    List* list = nullptr;
    {
        StateLock lock;
        list = find_list(all, handle);
        if (list == nullptr) return;
    }
    if (list->gate != nullptr && !all.has_ended) drop_prologue(*list);
    {
        StateLock lock;
        degradations = degradations_of(all, *list);
        if (list->context != nullptr && !all.has_ended) clear_list(*list, left);
        for (size_t i = 0; i < reason_count; ++i) list->untimed_count[i] = list->reason_code[i] = 0;
        list->run = 0;
        list->id = ++all.last_list;
        list_generation.fetch_add(1, std::memory_order_release);
        told = list_info(*list);
    }
    free_memory(left);
    degradations.write();
    told.write(call.now());
}

// Another thread may be given the same handle as soon as the driver is done with it, so the list goes first.
List* before_destroy(Handle handle) {
    State& all = state();
    if (local.holds) return nullptr;
    StateLock lock;
    List* list = all.lists.find(handle);
    if (list == nullptr) return nullptr;
    if (!all.has_ended) wait_for_results(all, lock, *list);
    drop_fence(*list);
    all.lists.remove(handle);
    list_generation.fetch_add(1, std::memory_order_release);
    return list;
}

void after_destroy(Call& call, List* list, bool is_gone) {
    State& all = state();
    if (list == nullptr) return;
    DeferredFree left{};
    Degradations degradations;
    {
        StateLock lock;
        if (!is_gone) {
            all.lists.add(list->handle, list);
            list_generation.fetch_add(1, std::memory_order_release);
            return;
        }
    }
    if (list->gate != nullptr && !all.has_ended) drop_prologue(*list);
    {
        StateLock lock;
        end_capture(all, *list);
        degradations = degradations_of(all, *list);
        if (list->context != nullptr) {
            if (!all.has_ended) clear_list(*list, left);
            --list->context->lists;
        }
    }
    free_memory(left);
    degradations.write();
    emit<Record::list_end>(call.begin, u32{list->id});
    delete list;
}

void on_driver(u32 version) {
    const u32 minor = version & 0xffff;
    std::atomic<u32>& oldest = state().api_minor;
    for (u32 known = oldest.load(); known == 0 || minor < known;) {
        if (oldest.compare_exchange_weak(known, minor)) return;
    }
}

void on_queue_created(Call& call, Handle queue, Handle device, const QueueDesc& desc) {
    emit<Record::queue>(call.now(), number(queue), number(device), u32{desc.ordinal}, u32{desc.index});
    if (local.holds || desc.mode != queue_mode_synchronous) return;
    static Queue synchronous{true};
    StateLock lock;
    state().queues.add(queue, &synchronous);
}

}  // namespace lanescope::levelzero::tracer
