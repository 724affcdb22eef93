// Captures into graphs: which lists take part in one, and closed lists that become part of a graph.
#include <new>

#include "api/program_memory.hpp"
#include "tracer/state/internal.hpp"
#include "tracer/tracer.hpp"

namespace lanescope::levelzero::tracer {

void set_capturing(Handle handle, bool on) {
    State& all = state();
    if (local.holds) return;
    StateLock lock;
    List* list = find_list(all, handle);
    if (list == nullptr) return;
    if (!on) {
        end_capture(all, *list);
    } else if (list->capture == 0) {
        captures.fetch_add(1, std::memory_order_relaxed);
        list->capture = ++all.last_capture;
        list->begins_capture = true;
    }
}

void end_capture(State& all, List& list) {
    if (!list.begins_capture) return;
    captures.fetch_sub(1, std::memory_order_relaxed);
    const u32 over = list.capture;
    list.begins_capture = false;
    list.capture = 0;
    all.lists.each([&](Handle, List* each) {
        if (each->capture == over) each->capture = 0;
    });
    for (CapturedEvent** place = &all.captured; *place != nullptr;) {
        CapturedEvent* each = *place;
        if (each->capture != over) {
            place = &each->next;
            continue;
        }
        *place = each->next;
        delete each;
    }
}

void join_capture(Handle handle, Handle signal, u32 count, const Handle* waits) {
    State& all = state();
    // The driver has not looked at them yet.
    if (local.holds || (waits != nullptr && !is_readable(waits, usize{count} * sizeof *waits))) return;
    StateLock lock;
    List* list = find_list(all, handle);
    if (list == nullptr || !list->immediate) return;
    for (u32 i = 0; waits != nullptr && i < count && list->capture == 0; ++i) {
        for (const CapturedEvent* each = all.captured; each != nullptr; each = each->next) {
            if (each->event == waits[i]) list->capture = each->capture;
        }
    }
    if (list->capture == 0 || signal == nullptr) return;
    auto* made = new (std::nothrow) CapturedEvent{signal, list->capture, all.captured};
    if (made == nullptr) {
        count_untimed(*list, Reason::no_memory);
        return;
    }
    all.captured = made;
}

bool is_capturing(Handle handle) {
    if (local.holds) return false;
    StateLock lock;
    const List* list = find_list(state(), handle);
    return list != nullptr && list->capture != 0;
}

namespace {

// Runs of a graph signal the program's events, too.
void forget_ticks(State& all, List& list) {
    each_op(list, [&](TimedOp& op) {
        if (op.user == nullptr || op.user->id != op.user_id) return;
        op.user->untimed_last = true;
        if (all.watches) set_foreign(all, op.user->handle);
    });
}

void give_up_results(State& all, StateLock& lock, List& list) {
    while (list.live != 0) {
        ResultBatch batch;
        abandon_results(all, list, batch, Reason::captured, false);
        lock.unlock();
        batch.write();
        lock.lock();
    }
}

}  // namespace

void on_lists_captured(u32 count, const Handle* lists) {
    State& all = state();
    if (local.holds || lists == nullptr) return;
    StateLock lock;
    for (u32 i = 0; i < count; ++i) {
        List* list = all.lists.find(lists[i]);
        if (list == nullptr || list->immediate) continue;
        u32 ops = 0;
        each_op(*list, [&](const TimedOp&) { ++ops; });
        constexpr auto reason = static_cast<size_t>(Reason::captured);
        all.untimed[reason] += ops;
        list->untimed_count[reason] += ops;
        list->was_captured = true;
        all.has_captured.store(true, std::memory_order_relaxed);
        forget_ticks(all, *list);
        // The first run of the graph then finds our events as a first run does.
        if (all.has_ended || list->live != 0 || list->rerun != Rerun::reset) continue;
        each_op(*list, [](const TimedOp& op) {
            if (op.run > 0 && op.injected != nullptr) driver().zeEventHostReset(op.injected->event);
        });
    }
}

void before_graph() {
    State& all = state();
    if (local.holds) return;
    StateLock lock;
    if (all.has_ended) return;
    collect_results_and_write(all, lock, true);
    while (true) {
        List* pending = nullptr;
        all.lists.each([&](Handle, List* list) {
            if (!list->was_captured) return;
            forget_ticks(all, *list);
            if (list->live != 0) pending = list;
        });
        if (pending == nullptr) return;
        give_up_results(all, lock, *pending);
    }
}

}  // namespace lanescope::levelzero::tracer
