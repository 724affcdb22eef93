// Appends: our event in the place of the program's, and the command behind that reads its ticks and hands the signal on.
#include <new>

#include "api/program_memory.hpp"
#include "stream/events.hpp"
#include "tracer/state/internal.hpp"
#include "tracer/tracer.hpp"

namespace lanescope::levelzero::tracer {

namespace {

void set_untimed(State& all, Handle event) {
    if (event == nullptr) return;
    if (UserEvent* known = all.events.find(event)) {
        known->untimed_last = true;
        forget_resets(*known);
        forget_last(*known);
    }
    set_foreign(all, event);
}

Reason why_untimed(const List* list) {
    if (list == nullptr) return Reason::unknown_list;
    if (list->untimed != Reason::none) return list->untimed;
    return list->capture != 0 ? Reason::capturing : Reason::none;
}

// Gives back what was taken for an operation that the driver refused: it is the last of its list.
void roll_back(List& list, TimedOp& op) {
    OpChunk& chunk = chunk_of(op);
    if (op.live) mark_done(list, op);
    op.run = 0;  // its event was never signalled
    release(op);
    --chunk.used;
    if (list.cursor == &chunk && list.cursor_index > chunk.used) list.cursor_index = chunk.used;
}

// Where nothing is timed, an Append changes nothing that lists share: its list counts it, if its thread has used it last.
// False: it takes the long way.
bool begin_plain_append(const State& all, Append& append) {
    if (all.options.timing || local.list != append.list ||
        local.generation != list_generation.load(std::memory_order_acquire)) {
        return false;
    }
    List& list = *static_cast<List*>(local.list_data);
    if (list.untimed != Reason::not_timed) return false;
    append.data = &list;
    append.list_id = list.id;
    append.reason = list.untimed;
    // The program has one thread at a time append to a list.
    list.plain_appends.store(list.plain_appends.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    return true;
}

// An Append that signals nothing of the program's, to an immediate list that its thread has used last and whose results
// are awaited anyway, changes nothing that other lists share: it goes without the state mutex. False: it takes the long
// way.
bool begin_append_fast(const State& all, Append& append) {
    if (append.user != nullptr || all.options.host_read || local.list != append.list ||
        local.generation != list_generation.load(std::memory_order_acquire)) {
        return false;
    }
    List& list = *static_cast<List*>(local.list_data);
    if (!list.immediate || !list.computes || list.owner != &local || why_untimed(&list) != Reason::none) return false;
    if (!list.ops_lock.try_lock()) return false;
    TimedOp* op = nullptr;
    if (!all.has_ended && list.live.load(std::memory_order_relaxed) != 0 && list.events != nullptr) {
        op = reserve_fast(list);
    }
    if (op != nullptr) {
        op->injected = acquire_event(list);
        op->op_id = append.op_id;
        op->how = TimestampSource::inline_query;
        op->run = 1;
        mark_pending_fast(list, *op);
        append.data = &list;
        append.list_id = list.id;
        append.reason = Reason::none;
        append.op = op;
        append.signal = op->injected->event;
        append.how = op->how;
    }
    list.ops_lock.unlock();
    return op != nullptr;
}

}  // namespace

void begin_append(Append& append) {
    State& all = state();
    append.is_told = false;
    if (!recording.load(std::memory_order_relaxed)) {
        // Outside of regions those of immediate lists are left out, as they run at once.
        const u64 generation = list_generation.load(std::memory_order_acquire);
        bool is_immediate = false;
        if (local.list == append.list && local.generation == generation) {
            is_immediate = static_cast<List*>(local.list_data)->immediate;
        } else if (!local.holds) {
            StateLock lock;
            const List* list = find_list(all, append.list);
            is_immediate = list == nullptr || list->immediate;
        }
        if (is_immediate) {
            if (append.user != nullptr && all.options.timing) signalled_untimed(append.user);
            return;
        }
    }
    Stream* stream = this_stream();
    if (stream == nullptr || local.holds) return;
    append.is_told = true;
    append.op_id = stream->next_operation();
    if (begin_append_fast(all, append) || begin_plain_append(all, append)) return;
    ResultBatch batch;
    {
        StateLock lock;
        List* list = find_list(all, append.list);
        append.data = list;
        append.list_id = list == nullptr ? 0 : list->id;
        append.reason = why_untimed(list);
        if (all.has_ended && append.reason == Reason::none) append.reason = Reason::not_timed;
        if (append.reason == Reason::none) {
            append.reason = Reason::no_memory;
            Context& context = *list->context;
            list->owner = &local;
            const bool watches = list->rerun == Rerun::watch;
            const bool is_watched = watches && append.user != nullptr;
            const bool is_inline = list->computes && !all.options.host_read && !watches;
            const bool is_chained = !is_inline && !is_watched && append.user != nullptr;
            UserEvent* user = append.user == nullptr ? nullptr : user_event(all, &context, append.user);
            if (user != nullptr && user->is_read && !is_watched) {
                append.reason = Reason::read_by_device;
            } else if (is_watched && watchable(all, append.user) == nullptr) {
                append.reason = Reason::out_of_order_no_reset;
            } else if (is_watched) {
                if (TimedOp* op = user == nullptr ? nullptr : reserve(*list, batch)) {
                    append.reason = Reason::none;
                    append.op = op;
                    append.how = op->how = TimestampSource::watched;
                    op->op_id = append.op_id;
                    op->user = user;
                    op->user_id = user->id;
                }
            } else if ((append.user == nullptr || user != nullptr) && (!is_chained || ensure_signal_constant(context))) {
                if (user != nullptr && all.watches) set_foreign(all, append.user);
                if (InjectedEvent* event = stand_in(all, *list, user, batch)) {
                    TimedOp* op = reserve(*list, batch);
                    if (op == nullptr) {
                        recycle_event(*event, false, list);
                    } else {
                        append.reason = Reason::none;
                        append.op = op;
                        append.signal = event->event;
                        op->injected = event;
                        op->op_id = append.op_id;
                        append.how = is_inline    ? TimestampSource::inline_query
                                     : is_chained ? TimestampSource::chained
                                                  : TimestampSource::bare;
                        op->how = append.how;
                        if (user != nullptr) {
                            op->user = user;
                            op->user_id = user->id;
                            before_another_signal(all, *list, *user);
                            set_newest(*user, *op);
                            user->untimed_last = false;
                        }
                        // It is awaited from here on: another thread may see it end before the driver returns to us.
                        if (list->immediate) {
                            op->run = 1;
                            mark_pending(*list, *op);
                        }
                    }
                }
            }
        }
        if (append.op == nullptr) {
            ++all.untimed[static_cast<size_t>(append.reason)];
            if (list != nullptr) count_untimed(*list, append.reason);
            set_untimed(all, append.user);
        }
    }
    batch.write();
}

void begin_untimed_append(Append& append) {
    State& all = state();
    append.reason = Reason::not_timed;
    append.is_told = false;
    if (local.holds) return;
    StateLock lock;
    const List* list = find_list(all, append.list);
    set_untimed(all, append.user);
    if (!recording.load(std::memory_order_relaxed) && (list == nullptr || list->immediate)) return;
    append.list_id = list == nullptr ? 0 : list->id;
    lock.unlock();
    Stream* stream = this_stream();
    if (stream == nullptr) return;
    append.is_told = true;
    append.op_id = stream->next_operation();
}

Result end_append(Append& append, Result result) {
    TimedOp* op = append.op;
    if (op == nullptr) return result;
    State& all = state();
    if (result != success) {
        StateLock lock;
        roll_back(*append.data, *op);
        return result;
    }
    // Without an added command, another thread may have collected the operation by now.
    if (append.how == TimestampSource::bare || append.how == TimestampSource::watched) return success;
    Handle own = append.signal;
    Result code = success;
    if (append.how == TimestampSource::inline_query) {
        const usize offset = 0;
        code = driver().zeCommandListAppendQueryKernelTimestamps(append.list, 1, &own, &cell_of(*op), &offset,
                                                                 append.user, 1, &own);
        if (code == success) return success;
        StateLock lock;
        count_untimed(*append.data, Reason::query_refused, code);
        if (append.user == nullptr || !ensure_signal_constant(*append.data->context)) {
            op->how = append.how = TimestampSource::bare;
            if (append.user == nullptr) return success;
        } else {
            op->how = append.how = TimestampSource::chained;
        }
    }
    if (append.data->context->signal_constant != nullptr) {
        code = driver().zeCommandListAppendMemoryCopy(append.list, &cell_of(*op), append.data->context->signal_constant, 8,
                                                      append.user, 1, &own);
        if (code == success) return success;
    }
    {
        StateLock lock;
        count_untimed(*append.data, Reason::copy_refused, code);
        op->how = append.how = TimestampSource::bare;
        op->is_pinned = true;  // the barrier may not have run when our event has been seen
    }
    code = driver().zeCommandListAppendBarrier(append.list, append.user, 1, &own);
    if (code == success) return success;
    StateLock lock;
    count_untimed(*append.data, Reason::chain_failed, code);
    append.data->untimed = Reason::chain_failed;
    report_failure(all, Reason::chain_failed, "zeCommandListAppendBarrier", code);
    return code;
}

void collect_if_synchronous(const Append& append) {
    if (!append.data->synchronous) return;
    State& all = state();
    StateLock lock;
    if (!all.has_ended) collect_results_and_write(all, lock, false, append.data);
}

void signalled_untimed(Handle event) {
    State& all = state();
    if (local.holds || !all.options.timing) return;
    StateLock lock;
    set_untimed(all, event);
}

// --- records -------------------------------------------------------------------------------------------------------

namespace {

[[gnu::cold, gnu::noinline]] void note_waits(u64 now, u64 op_id, u32 count) {
    emit<Record::degraded>(now, Scope::op, op_id, Reason::too_many_waits, u32{0}, count);
}

// Events that an operation waits for, as many as are kept.
inline Waits kept(Call& call, const Append& append, u32 count, const Handle* waits) {
    if (waits == nullptr) count = 0;
    if (count > most_waits) [[unlikely]] {
        note_waits(call.now(), append.op_id, count);
        count = most_waits;
    }
    return {waits, static_cast<u16>(count)};
}

template <Record R, class... T>
void emit_append(Call& call, const Append& append, Function api, u32 wait_count, const Handle* waits, T... values) {
    if (!append.is_told) return;
    const Waits told = kept(call, append, wait_count, waits);
    // The record means that the call has succeeded: it also replaces the exit of the call.
    const bool ends = call.is_told;
    Stream* stream = this_stream();
    if (stream == nullptr) return;
    const auto finish = [&] { return ends ? call.finish() : Call::End{call.now(), 0}; };
    const bool is_written =
        write_last(*stream, record_id(R), call.now(), finish, u64{append.op_id}, u32{append.list_id},
                   static_cast<Api>(api), TimestampSource{append.how}, Reason{append.reason}, static_cast<u8>(ends),
                   number(append.user), values..., told);
    if (is_written) call.is_told = false;
}

}  // namespace

void emit_plain(Call& call, const Append& append, Function api, u32 wait_count, const Handle* waits) {
    emit_append<Record::op>(call, append, api, wait_count, waits);
}

void emit_kernel(Call& call, const Append& append, Function api, u32 wait_count, const Handle* waits, Handle kernel,
                 Groups groups) {
    emit_append<Record::op_kernel>(call, append, api, wait_count, waits, number(kernel), groups.x, groups.y, groups.z);
}

void emit_memory(Call& call, const Append& append, Function api, u32 wait_count, const Handle* waits, usize size,
                 Address dst, Address src) {
    emit_append<Record::op_memory>(call, append, api, wait_count, waits, u64{size}, reinterpret_cast<u64>(dst),
                            reinterpret_cast<u64>(src));
}

}  // namespace lanescope::levelzero::tracer
