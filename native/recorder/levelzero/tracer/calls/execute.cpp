// Executions of closed lists. A run's results must be in before the next run may overwrite them.
#include "stream/events.hpp"
#include "tracer/state/internal.hpp"
#include "tracer/tracer.hpp"

namespace lanescope::levelzero::tracer {

namespace {

template <class F>
void each_op(const List& list, F f) {
    for (OpChunk* chunk = list.first; chunk != nullptr; chunk = chunk->next) {
        for (u32 i = 0; i < chunk->used; ++i) {
            if (!chunk->ops[i].released) f(chunk->ops[i]);
        }
    }
}

void begin_execution(List& list, bool is_suppressed) {
    ++list.run;
    list.owner = &local;
    each_op(list, [&](TimedOp& op) {
        // Else what hands the signal on would see that of the run before.
        if (op.run > 0) driver().zeEventHostReset(op.injected->event);
        reset_cell(op);
        ++op.run;
        op.is_suppressed = is_suppressed;
        mark_pending(list, op);
    });
    list.cursor = list.first;
    list.cursor_index = 0;
}

void roll_back_execution(List& list) {
    --list.run;
    each_op(list, [&](TimedOp& op) {
        --op.run;
        if (op.live) mark_done(list, op);
    });
}

}  // namespace

void before_execute(Execution& execution, u32 count, const Handle* handles) {
    State& all = state();
    if (local.holds || handles == nullptr) return;
    if (count > Execution::most_here) {
        auto** made = static_cast<List**>(std::malloc(count * sizeof(List*)));
        if (made == nullptr) count = Execution::most_here;
        else execution.lists = made;
    }
    execution.is_suppressed = !recording.load(std::memory_order_relaxed);
    StateLock lock;
    if (all.has_ended) return;
    // All of them in one step: else two threads with some lists in common could each wait for the other.
    const auto any_claimed = [&] {
        for (u32 i = 0; i < count; ++i) {
            const List* list = all.lists.find(handles[i]);
            if (list != nullptr && list->is_claimed) return true;
        }
        return false;
    };
    while (any_claimed()) lock.wait();
    for (u32 i = 0; i < count; ++i) {
        List* list = all.lists.find(handles[i]);
        if (list == nullptr || list->immediate) continue;
        if (list->is_claimed) {
            count_untimed(*list, Reason::duplicate_in_execute);
            continue;
        }
        list->is_claimed = true;
        execution.lists[execution.count++] = list;
    }
    for (u32 i = 0; i < execution.count; ++i) wait_for_results(all, lock, *execution.lists[i]);
    for (u32 i = 0; i < execution.count; ++i) begin_execution(*execution.lists[i], execution.is_suppressed);
}

void after_execute(Call& call, Execution& execution, Handle queue, Result result) {
    State& all = state();
    if (local.holds) return;
    struct Run {
        u32 list, run;
    } here[Execution::most_here], *runs = here;
    if (execution.count > Execution::most_here) {
        runs = static_cast<Run*>(std::malloc(execution.count * sizeof(Run)));
    }
    bool is_synchronous = false;
    {
        StateLock lock;
        for (u32 i = 0; i < execution.count; ++i) {
            List& list = *execution.lists[i];
            if (result != success) roll_back_execution(list);
            if (runs != nullptr) runs[i] = {list.id, list.run};
            list.is_claimed = false;
        }
        if (execution.count != 0) all.changed.notify_all();
        if (result == success) {
            const List* immediate = all.lists.find(queue);
            is_synchronous = immediate != nullptr ? immediate->synchronous : all.queues.find(queue) != nullptr;
        }
    }
    for (u32 i = 0; i < execution.count && result == success && runs != nullptr; ++i) {
        emit<Record::list_run>(call.now(), u32{runs[i].list}, u32{runs[i].run}, number(queue), u64{call.begin},
                               static_cast<u8>(execution.is_suppressed));
    }
    if (runs != here) std::free(runs);
    if (is_synchronous) synced(call, true);
}

}  // namespace lanescope::levelzero::tracer
