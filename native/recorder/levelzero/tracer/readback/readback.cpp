// Collecting results: whatever is there, without waiting; and the one wait for the results of one list.
#include <time.h>

#include <cstdio>
#include <mutex>

#include "stream/events.hpp"
#include "tracer/state/internal.hpp"
#include "tracer/tracer.hpp"

namespace lanescope::levelzero::tracer {

namespace {

// Whether the short form of a record holds a result.
bool is_short(u32 run, const Ticks& ticks) {
    return run == 1 && ((ticks.start | ticks.end | ticks.context_start | ticks.context_end) >> 32) == 0;
}

}  // namespace

void ResultBatch::write() {
    if (count_ == 0) return;
    const u64 now = host_ns();
    for (u32 i = 0; i < count_;) {
        const Entry& one = results_[i];
        const Ticks& ticks = one.ticks;
        if (one.lost != Reason::none) {
            emit<Record::lost>(now, one.op_id, one.run, one.lost);
        } else if (!is_short(one.run, ticks)) {
            emit<Record::result>(now, one.op_id, one.run, ticks.start, ticks.end, ticks.context_start, ticks.context_end);
        } else if (const u32 written = write_short(i, now)) {
            i += written;
            continue;
        } else {
            // The packet is full, or there is none yet.
            emit<Record::result_short>(now, one.op_id, static_cast<u32>(ticks.start), static_cast<u32>(ticks.end),
                                       static_cast<u32>(ticks.context_start), static_cast<u32>(ticks.context_end));
        }
        ++i;
    }
    count_ = 0;
}

// Most results are short, and of one list: they are written together. Returns how many there were from `first` on.
u32 ResultBatch::write_short(u32 first, u64 now) const {
    u32 end = first;
    while (end < count_ && results_[end].lost == Reason::none && is_short(results_[end].run, results_[end].ticks)) ++end;
    constexpr usize bytes = event_header + sizeof(u64) + 4 * sizeof(u32);
    Stream* stream = this_stream();
    if (stream == nullptr) return 0;
    const auto put_result = [&](u8* at, usize i) {
        const Entry& one = results_[first + i];
        at = put(at, one.op_id);
        for (const u64 tick : {one.ticks.start, one.ticks.end, one.ticks.context_start, one.ticks.context_end}) {
            at = put(at, static_cast<u32>(tick));
        }
    };
    return static_cast<u32>(stream->write_block(record_id(Record::result_short), now, bytes, end - first, put_result));
}

namespace {

enum class PollResult : u8 { nothing, result, failure, shared, destroyed, overlapping };

u64 word(const u64& at) { return std::atomic_ref(const_cast<u64&>(at)).load(std::memory_order_acquire); }

// How long a list that another thread uses is left to it. That thread collects its results itself, or somebody will; two
// threads that take turns at one list's memory cost more than all the rest.
constexpr i64 fresh_ns = 1'000'000;

u64 place_of(TimedOp& op) { return chunk_of(op).number * chunk_ops + op.index + 1; }

PollResult poll_watched(TimedOp& op, Ticks& ticks) {
    // Who destroys its event knows that the operation has ended, but we did not see it.
    if (op.user->id != op.user_id) return PollResult::destroyed;
    if (!chunk_of(op).list->has_ended && !op.is_final) return PollResult::nothing;
    if (op.is_spoilt || !is_watched_alone(state(), op)) return PollResult::shared;
    const Result result = driver().zeEventQueryKernelTimestamp(op.user->handle, &ticks);
    if (result != success) return result == not_ready ? PollResult::nothing : PollResult::failure;
    return op.has_last_end && ticks.end == op.last_end ? PollResult::nothing : PollResult::result;
}

// Whether the result of an operation is there. Never waits.
PollResult poll(TimedOp& op, u32& poll_budget, Ticks& ticks) {
    const Ticks& cell = cell_of(op);
    switch (op.how) {
        case TimestampSource::inline_query:
            ticks = {word(cell.start), word(cell.end), word(cell.context_start), word(cell.context_end)};
            // A cell that is half written is not ready.
            return ticks.start != unwritten && ticks.end != unwritten && ticks.context_start != unwritten &&
                           ticks.context_end != unwritten
                       ? PollResult::result
                       : PollResult::nothing;
        case TimestampSource::chained: {
            // Our event alone would not do: the copy that hands the signal on must have seen it, too.
            if (word(cell.start) == unwritten) return PollResult::nothing;
            const Result result = driver().zeEventQueryKernelTimestamp(op.injected->event, &ticks);
            return result == success ? PollResult::result : result == not_ready ? PollResult::nothing : PollResult::failure;
        }
        default: {
            if (op.how == TimestampSource::watched) return poll_watched(op, ticks);
            const List& list = *chunk_of(op).list;
            if (list.reads_at_end && is_rerun(op) && !list.has_ended) return PollResult::nothing;
            --poll_budget;
            if (driver().zeEventQueryStatus(op.injected->event) != success) return PollResult::nothing;
            const Result result = driver().zeEventQueryKernelTimestamp(op.injected->event, &ticks);
            if (result != success) return result == not_ready ? PollResult::nothing : PollResult::failure;
            // Where resets do not un-signal, these may be the ticks of the run before.
            return op.has_last_end && ticks.end == op.last_end ? PollResult::nothing : PollResult::result;
        }
    }
}

// Why an operation has no result, if it will never have one.
Reason reason_of(PollResult found) {
    switch (found) {
        case PollResult::shared: return Reason::shared_event;
        case PollResult::destroyed: return Reason::event_destroyed;
        case PollResult::overlapping: return Reason::overlapping;
        default: return Reason::none;
    }
}

// Keeps the ticks for the program's own questions; of several signallers the one that ends last counts.
void keep_for_user(State& all, TimedOp& op, const Ticks& ticks) {
    UserEvent* event = op.user;
    if (event == nullptr || event->id != op.user_id) return;
    if (op.how == TimestampSource::watched) {
        end_watch(all, op);
        return;
    }
    const u32 bits = chunk_of(op).list->device == nullptr ? 64 : chunk_of(op).list->device->kernel_bits;
    const u64 ahead = (ticks.end - event->result.end) << (64 - bits);
    // What was submitted after the other result was seen ended later, however far the clock has run meanwhile.
    if (event->seen == 0 || op.submitted > event->seen || static_cast<i64>(ahead) >= 0) {
        event->result = ticks;
        event->seen = all.sequence;
        event->is_overtaken = event->newest != &op;
    }
}

void collect(State& all, List& list, TimedOp& op, const Ticks& ticks, ResultBatch& batch) {
    mark_done(list, op);
    if (!op.is_suppressed) batch.add(op.op_id, op.run, ticks);
    op.last_end = ticks.end;
    op.has_last_end = true;
    keep_for_user(all, op, ticks);
    ++all.sequence;
    if (list.immediate && !op.is_pinned) release(op);
}

// The same for nearly all operations of immediate lists: those that signal nothing of the program's, and whose query wrote
// all that there is to know. False: it has not.
bool collect_plain(State& all, List& list, OpChunk& chunk, TimedOp& op, ResultBatch& batch) {
    const Ticks& cell = chunk.cells[op.index];
    const Ticks ticks = {word(cell.start), word(cell.end), word(cell.context_start), word(cell.context_end)};
    if (ticks.start == unwritten || ticks.end == unwritten || ticks.context_start == unwritten ||
        ticks.context_end == unwritten) {
        return false;
    }
    mark_done(list, op);
    if (!op.is_suppressed) batch.add(op.op_id, op.run, ticks);
    ++all.sequence;
    op.released = true;
    --chunk.held;
    recycle_event(*op.injected, true, &list);
    return true;
}

bool is_plain(const List& list, const TimedOp& op) {
    return op.how == TimestampSource::inline_query && list.immediate && op.user == nullptr && op.pins == nullptr &&
           !op.is_pinned && !op.is_overlapped;
}

void move_to_front(State& all, List& list) {
    if (all.active == &list) return;
    list.previous->next = list.next;
    if (list.next != nullptr) list.next->previous = list.previous;
    list.previous = nullptr;
    list.next = all.active;
    all.active->previous = &list;
    all.active = &list;
}

enum class ListVisitor : u8 { done, full, poor };

// Looks at the live operations of a list; `from`: those asked before are left out.
ListVisitor visit_lists(State& all, List& list, ResultBatch& batch, u32& poll_budget, u64 from, bool& has_skipped) {
    ListVisitor end = ListVisitor::done;
    bool is_prefix = true;
    u32 index = list.cursor_index;
    for (OpChunk *chunk = list.cursor, *next = nullptr; chunk != nullptr; chunk = next, index = 0) {
        for (; index < chunk->used; ++index) {
            TimedOp& op = chunk->ops[index];
            if (op.live) {
                if (batch.is_full()) return ListVisitor::full;
                if (is_plain(list, op)) {
                    if (!collect_plain(all, list, *chunk, op, batch)) {
                        if (list.in_order) return end;
                        is_prefix = false;
                    } else if (is_prefix) {
                        list.cursor = chunk;
                        list.cursor_index = index + 1;
                    }
                    continue;
                }
                Ticks ticks;
                PollResult found = PollResult::nothing;
                if (op.how != TimestampSource::bare) {
                    found = poll(op, poll_budget, ticks);
                } else if (place_of(op) <= from) {
                    has_skipped = true;
                } else if (poll_budget == 0) {
                    end = ListVisitor::poor;
                    if (list.in_order) return end;
                } else {
                    list.asked = place_of(op);
                    found = poll(op, poll_budget, ticks);
                }
                if (found == PollResult::result && op.is_overlapped && is_stale(op)) {
                    op.last_end = ticks.end;
                    op.has_last_end = true;
                    found = PollResult::overlapping;
                }
                if (found == PollResult::result) {
                    collect(all, list, op, ticks, batch);
                } else if (const Reason reason = reason_of(found); reason != Reason::none) {
                    if (!op.is_suppressed) batch.add(op.op_id, op.run, {}, reason);
                    mark_done(list, op);
                    if (op.how == TimestampSource::watched) end_watch(all, op);
                } else if (found == PollResult::failure) {
                    batch.add(op.op_id, op.run, {}, Reason::device_error);
                    op.is_pinned = true;
                    mark_done(list, op);
                    if (op.how == TimestampSource::watched) end_watch(all, op);
                } else {
                    // One that is not to be read yet says nothing of those behind it.
                    if (list.in_order && (list.has_ended || !is_stale(op))) return end;
                    is_prefix = false;
                }
            }
            if (is_prefix) {
                list.cursor = chunk;
                list.cursor_index = index + 1;
            }
        }
        next = chunk->next;
        // Only here, so that no chunk goes while somebody walks over it.
        if (list.immediate && chunk->held == 0 && next != nullptr) free_chunk(list, *chunk);
        if (list.live == 0) break;
    }
    return end;
}

ListVisitor collect_results_of(State& all, List& list, ResultBatch& batch, u32& poll_budget) {
    const std::scoped_lock guard(list.ops_lock);
    bool has_skipped = false;
    const u64 from = list.in_order ? 0 : list.asked;
    ListVisitor end = visit_lists(all, list, batch, poll_budget, from, has_skipped);
    if (end == ListVisitor::done && has_skipped && poll_budget != 0) {
        // Those before the one that was asked last have their turn.
        list.asked = 0;
        end = visit_lists(all, list, batch, poll_budget, 0, has_skipped);
    }
    if (end == ListVisitor::done) list.asked = 0;
    return end;
}

}  // namespace

bool collect_results(State& all, ResultBatch& batch, bool full, List* only, u64 now) {
    u32 poll_budget = full ? ~u32{0} : all.options.poll_budget;
    if (only != nullptr) return only->live == 0 || collect_results_of(all, *only, batch, poll_budget) != ListVisitor::full;
    for (List *list = all.active, *next = nullptr; list != nullptr; list = next) {
        next = list->next;
        if (now != 0 && list->owner != &local && static_cast<i64>(now - list->looked) < fresh_ns) continue;
        switch (collect_results_of(all, *list, batch, poll_budget)) {
            case ListVisitor::full: return false;
            case ListVisitor::poor:
                // It is the first one to be asked next time; lists behind it may have cells that are written.
                if (list->live != 0) move_to_front(all, *list);
                break;
            case ListVisitor::done: break;
        }
        if (now != 0) list->looked = now;
    }
    return true;
}

void collect_results_and_write(State& all, StateLock& lock, bool full, List* only, u64 now) {
    ResultBatch batch;
    for (bool is_done = false; !is_done;) {
        is_done = collect_results(all, batch, full, only, now);
        lock.unlock();
        batch.write();
        lock.lock();
    }
}

void abandon_results(State& all, List& list, ResultBatch& batch, Reason reason, bool is_gone) {
    const std::scoped_lock guard(list.ops_lock);
    for (OpChunk* chunk = list.first; chunk != nullptr && list.live != 0; chunk = chunk->next) {
        for (u32 i = 0; i < chunk->used; ++i) {
            TimedOp& op = chunk->ops[i];
            if (!op.live) continue;
            if (batch.is_full()) return;
            if (!op.is_suppressed) batch.add(op.op_id, op.run, {}, reason);
            mark_done(list, op);
            if (op.how == TimestampSource::watched) end_watch(all, op);
            if (!is_gone) continue;
            // The device may still signal it: it is never used again.
            forget_newest(op);
            op.released = true;
            --chunk->held;
            ++list.context->lost_events;
        }
    }
}

namespace {

// There is one.
TimedOp* oldest_live(List& list) {
    for (OpChunk* chunk = list.first; chunk != nullptr; chunk = chunk->next) {
        for (u32 i = 0; i < chunk->used; ++i) {
            if (chunk->ops[i].live) return &chunk->ops[i];
        }
    }
    std::abort();
}

}  // namespace

namespace {

// Calls f(operation) for live ones whose ticks the host reads of an event that stays signalled from run to run.
template <class F>
void each_stale(List& list, F f) {
    for (OpChunk* chunk = list.first; chunk != nullptr; chunk = chunk->next) {
        for (u32 i = 0; i < chunk->used; ++i) {
            TimedOp& op = chunk->ops[i];
            if (op.live && is_stale(op)) f(op);
        }
    }
}

// A list is submitted again, reset or destroyed, and nothing shows that its run has ended. What the host reads may then be a
// part of this run, and what comes later a part of this run or of the next: neither counts.
void note_overlap(List& list) {
    const std::scoped_lock guard(list.ops_lock);
    list.has_ended = list.has_overlapped = true;
    count_untimed(list, Reason::overlapping);
    each_stale(list, [](TimedOp& op) { op.is_overlapped = true; });
}

}  // namespace

void wait_for_results(State& all, StateLock& lock, List& list) {
    constexpr u64 ms = 1'000'000;
    u64 pause = 1000, next_question = 0, complaint = 0, last_moment = 0;
    // By the rules of the API it has, but for what follows the program's own commands. Where the host may read a part of
    // a run, that comes last.
    const auto is_rest_there = [&] {
        u64 stale = 0;
        each_stale(list, [&](TimedOp&) { ++stale; });
        return list.live == stale;
    };
    const auto give_up = [&](const char* what, Result code) {
        while (list.live != 0) {
            ResultBatch batch;
            abandon_results(all, list, batch, Reason::device_error, true);
            lock.unlock();
            batch.write();
            lock.lock();
        }
        list.untimed = Reason::device_error;
        report_failure(all, Reason::device_error, what, code);
    };
    if (!list.reads_at_end) list.has_ended = true;
    while (true) {
        collect_results_and_write(all, lock, true, &list);
        if (list.live != 0 && !list.has_ended && is_rest_there()) {
            if (!wait_for_fence(lock, list)) note_overlap(list);
            collect_results_and_write(all, lock, true, &list);
        }
        if (list.live == 0) return;
        const u64 now = host_ns();
        if (complaint == 0) complaint = now + 10'000 * ms;
        if (now >= complaint) {
            std::fprintf(stderr, "lanescope: warning: waiting for a command list that was submitted again while it ran\n");
            complaint = ~u64{0};
        }
        // A question for a status need not notice that the device is lost. What is there is there at once.
        if (is_device_lost.load(std::memory_order_relaxed)) {
            if (last_moment == 0) last_moment = now + 100 * ms;
            if (now >= last_moment) return give_up("zeEventQueryStatus", device_lost);
        }
        if (now >= next_question) {
            next_question = now + ms;
            // With the state mutex: else another thread may collect it meanwhile, and destroy the event.
            const TimedOp& oldest = *oldest_live(list);
            const Handle asked = oldest.injected != nullptr ? oldest.injected->event : oldest.user->handle;
            const Result status = driver().zeEventQueryStatus(asked);
            if (status != success && status != not_ready) return give_up("zeEventQueryStatus", status);
        }
        lock.unlock();
        const timespec time = {0, static_cast<long>(pause)};
        nanosleep(&time, nullptr);
        pause = pause >= ms ? ms : 2 * pause;
        lock.lock();
    }
}

}  // namespace lanescope::levelzero::tracer
