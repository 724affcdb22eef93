// Executions of closed lists. A run's results must be in before the next run may overwrite them.
#include "api/program_memory.hpp"
#include "stream/events.hpp"
#include "tracer/state/internal.hpp"
#include "tracer/tracer.hpp"

namespace lanescope::levelzero::tracer {

namespace {

void begin_execution(List& list, bool is_suppressed) {
    State& all = state();
    ++list.run;
    list.owner = &local;
    list.has_ended = false;
    list.submitted = ~u64{0};
    drop_fence(list);
    list.queue = list.fence = nullptr;
    each_op(list, [&](TimedOp& op) {
        // Else what hands the signal on would see that of the run before. In ordered lists it comes behind the operation,
        // and where resets fail they are of no use.
        const bool is_reset = list.rerun == Rerun::reset && !(list.in_order && list.reads_at_end);
        const bool is_again = op.run > 0 || list.was_captured;
        if (is_again && (is_reset || list.rerun == Rerun::prologue) && op.injected != nullptr) before_rerun(all, list, op);
        if (is_again && is_reset) driver().zeEventHostReset(op.injected->event);
        signal_next(all, list, op);
        if (list.was_captured && op.user != nullptr && op.user->id == op.user_id) op.user->untimed_last = false;
        reset_cell(op);
        ++op.run;
        op.is_suppressed = is_suppressed;
        op.is_overlapped = list.has_overlapped;
        if (op.how == TimestampSource::watched) begin_watch(all, op);
        mark_pending(list, op);
    });
    list.has_overlapped = false;
    list.cursor = list.first;
    list.cursor_index = 0;
}

void roll_back_execution(List& list) {
    --list.run;
    each_op(list, [&](TimedOp& op) {
        --op.run;
        if (!op.live) return;
        mark_done(list, op);
        if (op.how == TimestampSource::watched) end_watch(state(), op);
    });
}

// Has our events reset in front of the runs that need it. False: the driver refused, and nothing may be submitted.
bool add_prologues(State& all, StateLock& lock, Execution& execution, u32 count, const Handle* handles) {
    u32 fronts = 0;
    for (u32 i = 0; i < execution.count; ++i) {
        List& list = *execution.lists[i];
        const bool is_first = list.run == 0 && !list.was_captured;
        if (list.rerun != Rerun::prologue || is_first || list.first == nullptr) continue;
        if (execution.submitted == nullptr) {
            execution.submitted = static_cast<Handle*>(std::malloc((usize{execution.count} + count) * sizeof(Handle)));
            if (execution.submitted == nullptr) {
                execution.refused = out_of_host_memory;
                return false;
            }
        }
        // It stays claimed, so no other thread changes it.
        lock.unlock();
        Handle front = nullptr;
        execution.refused = prepare_prologue(list, front);
        lock.lock();
        if (execution.refused != success) {
            count_untimed(list, Reason::chain_failed, execution.refused);
            report_failure(all, Reason::chain_failed, "reset of events", execution.refused);
            return false;
        }
        if (front == nullptr) continue;
        count_untimed(list, Reason::prologue);
        ++all.untimed[static_cast<size_t>(Reason::prologue)];
        execution.submitted[fronts++] = front;
    }
    if (execution.submitted == nullptr) return true;
    for (u32 i = 0; i < count; ++i) execution.submitted[fronts + i] = handles[i];
    execution.submitted_count = fronts + count;
    return true;
}

}  // namespace

namespace {

// The handles that the program names, as many as there is room for; none if they cannot be read: then the driver refuses
// the call, or fails as it would without us.
struct Handles {
    Handle here[Execution::most_here];
    Handle* all = here;

    ~Handles() {
        if (all != here) std::free(all);
    }
};

bool has_stale(const List& list) {
    bool found = false;
    each_op(list, [&](const TimedOp& op) { found = found || is_stale(op); });
    return found;
}

}  // namespace

void before_execute(Execution& execution, Handle queue, Handle* fence, u32 count, const Handle* given) {
    State& all = state();
    if (local.holds || given == nullptr || queue == nullptr) return;
    Handles copied;
    if (count > Execution::most_here) {
        execution.lists = static_cast<List**>(std::malloc(usize{count} * sizeof(List*)));
        copied.all = static_cast<Handle*>(std::malloc(usize{count} * sizeof(Handle)));
        if (execution.lists == nullptr || copied.all == nullptr) return;
    }
    if (!copy_of_program(copied.all, given, usize{count} * sizeof(Handle))) return;
    const Handle* handles = copied.all;
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
    if (!add_prologues(all, lock, execution, count, handles)) {
        for (u32 i = 0; i < execution.count; ++i) execution.lists[i]->is_claimed = false;
        execution.count = 0;
        all.changed.notify_all();
        return;
    }
    bool needs_end = false;
    for (u32 i = 0; i < execution.count; ++i) {
        List& list = *execution.lists[i];
        begin_execution(list, execution.is_suppressed);
        needs_end = needs_end || (list.reads_at_end && has_stale(list));
    }
    if (needs_end && fence != nullptr && *fence == nullptr) {
        execution.fence = take_fence(all, queue, execution.lists[0]->context->handle);
        if (execution.fence != nullptr) *fence = execution.fence->fence;
    }
}

void after_execute(Call& call, Execution& execution, Handle queue, const Handle* fence, Result result) {
    State& all = state();
    if (local.holds) return;
    struct Run {
        u32 list, run, resets;
    } here[Execution::most_here], *runs = here;
    if (execution.count > Execution::most_here) {
        runs = static_cast<Run*>(std::malloc(execution.count * sizeof(Run)));
    }
    bool is_synchronous = false;
    {
        StateLock lock;
        for (u32 i = 0; i < execution.count; ++i) {
            List& list = *execution.lists[i];
            if (result != success) {
                roll_back_execution(list);
            } else {
                list.queue = queue;
                list.fence = fence == nullptr ? nullptr : *fence;
                if (execution.fence != nullptr) {
                    list.own_fence = execution.fence;
                    ++execution.fence->lists;
                }
                list.submitted = all.submissions.load(std::memory_order_relaxed) + 1;
            }
            const bool has_prologue = execution.submitted != nullptr && list.prologue != nullptr &&
                                      (list.run > 1 || list.was_captured);
            if (runs != nullptr) runs[i] = {list.id, list.run, has_prologue ? list.resets : 0};
            list.is_claimed = false;
        }
        if (OwnFence* own = execution.fence) {
            --own->lists;
            own->is_pending = result == success;
        }
        if (execution.count != 0) all.changed.notify_all();
        if (result == success) {
            all.submissions.fetch_add(1, std::memory_order_release);
            const List* immediate = all.lists.find(queue);
            is_synchronous = immediate != nullptr ? immediate->synchronous : all.queues.find(queue) != nullptr;
        }
    }
    for (u32 i = 0; i < execution.count && result == success && runs != nullptr; ++i) {
        emit<Record::list_run>(call.now(), u32{runs[i].list}, u32{runs[i].run}, number(queue), u64{call.begin},
                               static_cast<u8>(execution.is_suppressed),
                               u32{runs[i].resets});
    }
    if (runs != here) std::free(runs);
    if (is_synchronous) synced(call, Waited::queue, queue, submissions());
}

}  // namespace lanescope::levelzero::tracer
