// What the parts of the tracer need of each other. Unless a comment says otherwise, the caller holds the state mutex.
#pragma once

#include "tracer/state/state.hpp"

namespace lanescope::levelzero::tracer {

// --- what is written once the state mutex is free ------------------------------------------------------------------

// Results that were collected; they are written when the state mutex is free.
class ResultBatch {
public:
    bool is_full() const { return count_ == size; }
    void add(u64 op_id, u32 run, const Ticks& ticks, Reason lost = Reason::none) {
        results_[count_++] = {op_id, ticks, run, lost};
    }
    // Without the state mutex.
    void write();

private:
    static constexpr u32 size = 128;
    struct Entry {
        u64 op_id;
        Ticks ticks;
        u32 run;
        Reason lost;
    };
    u32 write_short(u32 first, u64 now) const;

    u32 count_ = 0;
    Entry results_[size];
};

// --- injected events (injected_events.cpp) --------------------------------------------------------------------------

InjectedEvent* acquire_event(List& list);
// Gives back an event that no command uses any more, to its context or to a list that will use it again; `was_used`: a
// command may have signalled it.
void recycle_event(InjectedEvent& event, bool was_used, List* list = nullptr);
// Gives back the event that has the ticks of a program's event that is signalled anew, or goes.
void forget_last(UserEvent& user);
// A plain event that the host resets, for one list of the recorder; false where the driver refuses.
bool make_gate(Handle context, Handle& event, Handle& pool);
// Whether the host memory that chains copy from is there.
bool ensure_signal_constant(Context& context);
Context* find_or_add_context(Handle handle);
Resets reset_support(const Context& context, const Device* device);
// How an out-of-order list of a device runs again; `none` or the reason why it cannot be timed.
Reason choose_rerun(const State& all, const Context& context, const Device* device, Rerun& rerun);
// Finds out whether resets work. Without the state mutex.
void probe_reset_support(Handle context, Device& device, u32 ordinal);
void forget_probe(Probe& probe);

// --- the program's events, and its queries of them (user_events.cpp, queries.cpp) --------------------------------------

// The current event of the program; null if out of memory.
UserEvent* user_event(State& all, Context* context, Handle handle);
// What signals it was appended, or is not timed: resets before do not count any more.
void forget_resets(UserEvent& event);
// An operation that signals it is appended.
void set_newest(UserEvent& event, TimedOp& op);
// An operation of a list that is submitted is the next that signals its event.
void signal_next(State& all, List& list, TimedOp& op);
// A query of the program may read other ticks than it would without us: that is said.
void count_false_query(State& all, List& list);
// What a command signals in the place of the program's event: where a query of the program that may run again reads an
// earlier one, that one again if it is free.
InjectedEvent* stand_in(State& all, List& list, UserEvent* user, ResultBatch& batch);
// An operation that signals it is about to be appended: a query that is in a list without order, or has not run, may read
// either.
void before_another_signal(State& all, List& list, const UserEvent& event);
// An operation is about to run again, and its event is reset before.
void before_rerun(State& all, List& list, TimedOp& op);
// The list of an operation is about to be cleared: queries in other lists may wait for a run that never comes.
void before_clear(State& all, const List& list, const TimedOp& op);
// A query goes, or has run.
void unpin(TimedOp& op);

// --- timed operations (timed_ops.cpp) ------------------------------------------------------------------------------

// Returns the next operation of a list, whose cell is unwritten; null, without any change, if out of memory.
TimedOp* reserve(List& list, ResultBatch& batch);
void reset_cell(TimedOp& op);
inline OpChunk& chunk_of(TimedOp& op) { return *reinterpret_cast<OpChunk*>(&op - op.index); }
// Calls f(operation) for all of a list whose events were not given back.
template <class F>
void each_op(const List& list, F f) {
    for (OpChunk* chunk = list.first; chunk != nullptr; chunk = chunk->next) {
        for (u32 i = 0; i < chunk->used; ++i) {
            if (!chunk->ops[i].released) f(chunk->ops[i]);
        }
    }
}
inline Ticks& cell_of(TimedOp& op) { return chunk_of(op).cells[op.index]; }
// Whether the run of an operation is not the first that its event and its cell have seen.
inline bool is_rerun(const TimedOp& op) {
    return op.run > 1 || reinterpret_cast<const OpChunk*>(&op - op.index)->list->was_captured;
}
void mark_pending(List& list, TimedOp& op);
// The same for the owner of a list that has live operations, under `ops_lock` alone; null: it takes the state mutex.
TimedOp* reserve_fast(List& list);
void mark_pending_fast(List& list, TimedOp& op);
void mark_done(List& list, TimedOp& op);
// No query of the program's reads the event of an operation any more.
void forget_newest(const TimedOp& op);
// Gives the event of an operation back, and what else it holds.
void release(TimedOp& op);
// Takes a chunk without held operations out of its list; it goes to the free ones of its context.
void free_chunk(List& list, OpChunk& chunk);
// Memory to be freed once the state mutex is free.
struct DeferredFree {
    Handle context;
    OpChunk* chunks;
    void* signal_constant;
};
void free_memory(const DeferredFree& left);
// Empties a list whose results are in; `left` gets what its context does not keep.
void clear_list(List& list, DeferredFree& left);

// --- collecting (readback.cpp) -------------------------------------------------------------------------------------

// Collects what is there, of one list or of all. False: the batch is full and there may be more.
bool collect_results(State& all, ResultBatch& batch, bool full, List* only = nullptr, u64 now = 0);
// Collects and writes all that is there; the state mutex is free while it writes. With the time, lists that another
// thread uses are left to it if they were looked at a moment ago.
void collect_results_and_write(State& all, StateLock& lock, bool full, List* only = nullptr, u64 now = 0);
// Waits for all results of a list; the state mutex is free while it waits.
void wait_for_results(State& all, StateLock& lock, List& list);
// Gives up the results that a list still awaits; `is_gone`: its events may be used by the device for ever.
void abandon_results(State& all, List& list, ResultBatch& batch, Reason reason, bool is_gone);

// --- watched events (watched_events.cpp) ----------------------------------------------------------------------------

// The program's event if an operation that signals it can be timed by watching it.
TickedEvent* watchable(State& all, Handle event);
// Something besides watched operations signals or resets an event of the program's.
void set_foreign(State& all, Handle event);
void forget_watched(State& all, Handle event);
// Whether that is still so for the event of an operation under way.
bool is_watched_alone(State& all, const TimedOp& op);
void begin_watch(State& all, TimedOp& op);
void end_watch(State& all, TimedOp& op);

// --- ends of runs (run_ends.cpp) ------------------------------------------------------------------------------------

// Whether the host reads ticks of an operation from an event that may have stayed signalled from the run before.
inline bool is_stale(const TimedOp& op) {
    return op.how == TimestampSource::watched || (op.how == TimestampSource::bare && is_rerun(op));
}
// Whether the run of a list is known to have ended.
bool has_run_ended(List& list);
// Waits a moment for the fence of a run that should have ended; the state mutex is free meanwhile. Returns the same.
bool wait_for_fence(StateLock& lock, List& list);
// A fence for the next submission to a queue, if it needs one and the driver has any.
OwnFence* take_fence(State& all, Handle queue, Handle context);
// The run of a list is of no more interest, nor its fence.
void drop_fence(List& list);
// Takes those of a context or of a queue out of the state, for `destroy_fences` without the state mutex.
OwnFence* remove_fences(State& all, Handle context, Handle queue);
void destroy_fences(OwnFence* first);

// --- prologues (prologue.cpp) ---------------------------------------------------------------------------------------

// Before a run after the first: a list that resets our events, and what to put in front of the run. Without the state
// mutex; the list is claimed. `front`: null if the events have been reset already.
Result prepare_prologue(List& list, Handle& front);
// Destroys it. Without the state mutex, when the device is done with the list.
void drop_prologue(List& list);

// --- captures into graphs (captures.cpp) ----------------------------------------------------------------------------

// The capture that a list began is over, or the list is gone.
void end_capture(State& all, List& list);

// --- what is not timed, and failures (degradation.cpp) -------------------------------------------------------------

void count_untimed(List& list, Reason reason, Result code = 0);
// What was counted for a list, to be written when the state mutex is free; its plain appends are counted in first.
struct Degradations {
    u32 list = 0;
    u32 count[reason_count] = {}, code[reason_count] = {};
    void write() const;
};
Degradations degradations_of(State& all, List& list);
// Says once on standard error what does not work, or ends the program if that is what was asked for.
void report_failure(State& all, Reason reason, const char* what, Result code);

// --- clocks (clocks.cpp), without the state mutex ------------------------------------------------------------------

// What the driver says of a device; asked once.
Device* describe(Handle device);
void read_clock(Device& device, u64 now);

}  // namespace lanescope::levelzero::tracer
