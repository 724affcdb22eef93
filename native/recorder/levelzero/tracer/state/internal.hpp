// What the parts of the tracer need of each other. M is held where nothing else is said.
#pragma once

#include "tracer/state/state.hpp"

namespace lanescope::levelzero::tracer {

// --- what is written once M is free -------------------------------------------------------------------------------

// Results that were collected; they are written when M is free.
class ResultBatch {
public:
    bool is_full() const { return count_ == size; }
    void add(u64 op_id, u32 run, const Ticks& ticks, Reason lost = Reason::none) {
        results_[count_++] = {op_id, ticks, run, lost};
    }
    // Without M.
    void write();

private:
    static constexpr u32 size = 128;
    struct One {
        u64 op_id;
        Ticks ticks;
        u32 run;
        Reason lost;
    };
    u32 count_ = 0;
    One results_[size];
};

// --- events of ours (events.cpp) ----------------------------------------------------------------------------------

InjectedEvent* acquire_event(List& list);
// Gives back an event that no command uses any more, to its context or to a list that will use it again; `was_used`: a
// command may have signalled it.
void recycle_event(InjectedEvent& event, bool was_used, List* list = nullptr);
void unpin(TimedOp& slot);
// Whether the host memory that chains copy from is there.
bool ensure_signal_constant(Context& context);
Context* find_or_add_context(Handle handle);
Resets reset_support(const Context& context, const Device* device);
// Finds out whether resets work. Without M.
void probe_reset_support(Handle context, Device& device, u32 ordinal);

// --- slots (slots.cpp) --------------------------------------------------------------------------------------------

// Gives the next slot of a list, with its cell armed; null when there is no memory, and then nothing has changed.
TimedOp* reserve(List& list, ResultBatch& batch);
void reset_cell(TimedOp& slot);
inline OpChunk& chunk_of(TimedOp& slot) { return *reinterpret_cast<OpChunk*>(&slot - slot.index); }
inline Ticks& cell_of(TimedOp& slot) { return chunk_of(slot).cells[slot.index]; }
void mark_pending(List& list, TimedOp& slot);
// The same for the owner of a list that has live slots, under the lock of its slots alone; null: it takes M.
TimedOp* reserve_quickly(List& list);
void mark_pending_fast(List& list, TimedOp& slot);
void mark_done(List& list, TimedOp& slot);
// Gives the event of a slot back, and what else it holds.
void release(TimedOp& slot);
// Takes a chunk without held slots out of its list; it goes to the free ones of its context.
void free_chunk(List& list, OpChunk& chunk);
// Memory to be freed once M is free.
struct DeferredFree {
    Handle context;
    OpChunk* chunks;
    void* signal_constant;
};
void free_memory(const DeferredFree& left);
// Empties a list whose results are in; `left` gets what its context does not keep.
void clear_list(List& list, DeferredFree& left);

// --- collecting (harvest.cpp) -------------------------------------------------------------------------------------

// Collects what is there, of one list or of all. False: the batch is full and there may be more.
bool harvest(State& all, ResultBatch& batch, bool full, List* only = nullptr, u64 now = 0);
// Collects and writes all that is there; M is free while it writes. With the time, lists that another thread uses are left
// to it if somebody has looked at them a moment ago.
void harvest_and_write(State& all, StateLock& hold, bool full, List* only = nullptr, u64 now = 0);
// Waits for all results of a list; M is free while it waits.
void wait_for_results(State& all, StateLock& hold, List& list);
// Gives up the results that a list still awaits; `is_gone`: its events may be used by the device for ever.
void abandon_results(State& all, List& list, ResultBatch& batch, Reason reason, bool is_gone);

// --- what is not timed, and failures (failure.cpp) ----------------------------------------------------------------

void count_untimed(List& list, Reason reason, Result code = 0);
// What was counted for a list, to be written when M is free.
struct Degradations {
    u32 list = 0;
    u32 count[reason_count] = {}, code[reason_count] = {};
    void write() const;
};
Degradations degradations_of(const List& list);
// Says once on standard error what does not work, or ends the program if that is what was asked for.
void report_failure(State& all, Reason reason, const char* what, Result code);

// --- clocks (clocks.cpp), without M -------------------------------------------------------------------------------

// What the driver says of a device; asked once.
Device* describe(Handle device);
void read_clock(Device& device, u64 now);

}  // namespace lanescope::levelzero::tracer
