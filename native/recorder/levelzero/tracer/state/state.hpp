// The state of the tracer, and the locks that guard it.
//
// How operations are timed: each timed Append (`TimedOp`) signals an injected event (`InjectedEvent`) instead of the
// program's. Its ticks come by a query in the same list into a cell of host memory, or are asked of our event by the
// host. A result counts only when it is there; every call of the program that tells it that something has ended collects
// what is there. A command list (`List`) holds its operations in chunks (`OpChunk`), which belong to its `Context`.
//
// Locks, in the order in which they are taken:
//   1. The state mutex: `State::mutex`, which a thread holds by a `StateLock`. It guards all that is declared here, but
//      for the operations of a list whose owner appends. The driver may be called under it: hooks that it calls in
//      turn see `local.holds` and leave.
//   2. `List::ops_lock` (`ListLock`): the operations of one immediate list. Taken under the state mutex or with nothing
//      else held; under it the state mutex is never asked for, nor is the driver called for long.
// Memory that the device writes (`OpChunk::cells`) is read and armed by atomics, whatever lock is held.
#pragma once

#include <sched.h>

#include <atomic>
#include <condition_variable>

#include "stream/process.hpp"
#include "tracer/state/driver.hpp"
#include "tracer/state/handle_map.hpp"

namespace lanescope::levelzero::tracer {

struct OpChunk;
struct Context;
struct List;
struct TimedOp;

inline constexpr u32 chunk_ops = 64;
inline constexpr u64 unwritten = ~u64{0};

// An event of the recorder, alone in its pool.
struct InjectedEvent {
    Handle event = nullptr, pool = nullptr;
    Context* context = nullptr;
    InjectedEvent* next = nullptr;  // free ones
    u32 pins = 0;                   // queries of the program that will read it
    struct QueryRef* readers = nullptr;  // those
    bool is_recycled = false;       // given back while pinned
    // One that a query in a regular list reads, which may run again: the program's event that it replaces, and the list.
    struct UserEvent* keeper = nullptr;
    List* reader = nullptr;  // null: none, or not only this one
};

// A fence of the recorder: tells that lists of one submission have ended, where the program has not asked for one.
struct OwnFence {
    Handle fence = nullptr, queue = nullptr, context = nullptr;
    u32 lists = 0;             // of its submission, or one while that is made; 0: free
    bool is_pending = false;   // submitted, and not seen signalled since
    OwnFence* next = nullptr;  // all
};

// A pool of the program's, of events with timestamps that the host can read.
struct TickedPool {
    u32 events = 0;           // that live
    bool is_shared = false;   // with other processes
    bool is_destroyed = false;
};

// Such an event, from its creation on: its ticks are those of its last signaller, so an operation that signals it can be
// timed without any event of the recorder.
struct TickedEvent {
    TickedPool* pool = nullptr;
    TimedOp* watcher = nullptr;  // the one operation that it is watched for
    u32 watched = 0;             // operations that are
    bool is_foreign = false;     // something else signals or resets it as well
    TickedEvent* next = nullptr;  // free ones
};

// An event of the program, from the first Append that signals it on. The memory is used again, numbers are not.
struct UserEvent {
    u64 id = 0;
    Handle handle = nullptr;
    Context* context = nullptr;
    Ticks result{};
    u64 seen = 0;               // when the result was collected, 0: none was
    TimedOp* newest = nullptr;     // the newest operation that signals it, as long as its injected event exists
    bool untimed_last = false;  // it was last signalled by something that is not timed
    bool is_read = false;       // a query in a command list reads it itself, so nothing stands in for it
    // Since the newest operation was appended, the host has reset it; or a list got a command that does, the last time this.
    bool is_reset = false, is_reset_in_list = false;
    u32 reset_in = 0;
    bool is_perhaps_reset = false;  // by the host, which does not see the effect: the device may
    bool is_asked = false;      // and then a query that runs once took its ticks to be those of a closed list's next run
    bool is_again = false;      // nothing had reset it when the newest operation was appended, and others signalled it before
    bool is_among = false;      // the closed list of the newest operation has others that signal it, reset in between or not
    bool is_overtaken = false;  // one of those ended after the newest one
    bool has_ticks = false;     // queries may ask for its timestamps
    InjectedEvent* last = nullptr;  // what was signalled in its place, of an operation that is forgotten: for queries
    InjectedEvent* kept = nullptr;  // what a query that may run again reads in its place
    UserEvent* next = nullptr;  // free ones
};

// An injected event that a query of the program reads.
struct QueryRef {
    InjectedEvent* event;
    QueryRef* next;             // of the query
    TimedOp* query;
    bool is_for_next;           // it reads the next run of what signals the event, not the last one
    QueryRef *other, **at;      // of the event: the next one, and what points at this one
};

// One timed operation of a list.
struct TimedOp {
    InjectedEvent* injected;  // null: the event of the program is watched
    u64 op_id;
    UserEvent* user;   // null: none
    u64 user_id;
    u64 last_end;      // of the run before
    u64 submitted;     // State::sequence at this run's submission
    QueryRef* pins;
    u32 run;
    TimestampSource how;
    u8 index;
    bool live;         // this run's result is awaited
    bool is_suppressed;  // ... and will not be written
    bool has_last_end;
    bool released;     // its event was given back
    bool is_pinned;    // its event must stay until the list is emptied
    bool is_spoilt;    // watched: others signal the event as well
    bool is_final;     // ... and this run of it is known to have ended
    bool is_overlapped;  // what the host reads may be of another run
};

// 64 operations that never move, with a cell of host memory each.
struct OpChunk {
    TimedOp ops[chunk_ops];
    Ticks* cells;
    Context* context;
    List* list;
    OpChunk *next, *previous;
    u64 number;  // counts up within a list
    u32 used, held;
};

inline constexpr size_t reason_count = static_cast<size_t>(Reason::count);

// Guards the operations of an immediate list between the thread that appends to it and those that collect its results.
// Taken under the state mutex, or with nothing else held; never is the state mutex asked for under it, nor the driver
// called for long.
class ListLock {
public:
    bool try_lock() { return !held_.exchange(true, std::memory_order_acquire); }
    void lock() {
        for (int tries = 1; !try_lock(); ++tries) {
            if (tries % 64 == 0) sched_yield();  // its holder may be off the processor
        }
    }
    void unlock() { held_.store(false, std::memory_order_release); }

private:
    std::atomic<bool> held_ = false;
};

// As what a command list was made.
struct ListKind {
    struct Device* device = nullptr;
    u32 ordinal = 0, index = 0;
    bool immediate = false, in_order = false, synchronous = false, computes = false;
};

// How an out-of-order list runs again.
enum class Rerun : u8 {
    reset,     // the host resets our events
    prologue,  // commands of the recorder in front of the run do
    watch,     // nothing does: operations with a signal of the recorder and the program's are not timed
};

// A command list.
struct List : ListKind {
    explicit List(const ListKind& kind) : ListKind(kind) {}

    Handle handle = nullptr;
    u32 id = 0;  // never used again; a new one after each reset
    Context* context = nullptr;
    bool is_claimed = false;
    u32 capture = 0;  // the capture that its commands go into, 0: none
    bool begins_capture = false;  // ... which ends with it
    bool was_captured = false;    // closed, and part of a graph: it also runs whenever that does, which is not seen
    Reason untimed = Reason::none;
    Rerun rerun = Rerun::reset;
    // Ticks that the host reads of a run after the first count once that run is known to have ended: where resets may
    // not un-signal, they may be those of the run before, or of the first part of a command.
    bool reads_at_end = false;
    bool has_ended = true;           // the run is known to have
    // The end of its run could not be seen when it was submitted again: it may still have run, which Level Zero forbids.
    bool has_overlapped = false;
    bool was_unclear = false;        // ever: its fences are asked, and no longer waited for
    Handle queue = nullptr, fence = nullptr;  // of the run; no fence: none that can be asked
    OwnFence* own_fence = nullptr;   // where that is ours
    u64 submitted = 0;               // place among all submissions; the largest number until the driver has returned
    Handle prologue = nullptr;       // the list of the recorder in front of later runs
    Handle gate = nullptr, gate_pool = nullptr;  // holds the queue until it has run
    u32 resets = 0;                  // events that it resets
    u32 run = 0;                     // executions so far
    OpChunk *first = nullptr, *last = nullptr;
    OpChunk* cursor = nullptr;         // the first operation that may be live
    u32 cursor_index = 0;
    u64 chunks = 0;                  // ever
    u64 asked = 0;                   // place of the operation that was polled last when the poll budget was used up
    ListLock ops_lock;               // see there; all but the owner take it besides the state mutex
    std::atomic<u64> live = 0;       // changed under the state mutex, or by the owner under `ops_lock`
    const void* owner = nullptr;     // the thread that used it last
    u64 looked = 0;                  // when its results were collected last, host ns
    InjectedEvent* events = nullptr;      // free ones that this list used before: they stay with its thread
    OpChunk* spare = nullptr;          // such chunks
    u32 spares = 0;
    List *next = nullptr, *previous = nullptr;  // lists with live operations
    // Appends where nothing at all is timed: counted by the thread that appends, without the state mutex.
    std::atomic<u32> plain_appends = 0;
    u32 told_appends = 0;            // of them, in `untimed_count`
    u32 untimed_count[reason_count] = {};
    u32 reason_code[reason_count] = {};
};

enum class Resets : u8 { unknown, probing, work, fail, undecided };

// Whether a host reset un-signals events with timestamps there.
struct Probe {
    struct Device* device = nullptr;
    Resets resets = Resets::unknown;
    Probe* next = nullptr;
    bool device_resets = false;  // whether a command of the device does, where the host does not
    // What was made for it and may still be in use, as the device did not answer in time.
    Handle list = nullptr, plain = nullptr, pool = nullptr;
    InjectedEvent* event = nullptr;
};

struct Context {
    Handle handle = nullptr;
    InjectedEvent* events = nullptr;  // free ones
    OpChunk* chunks = nullptr;     // free ones
    u32 free_chunks = 0;
    OpChunk* captured = nullptr;   // of lists that are gone, but may be part of a graph
    u64 made_events = 0, lost_events = 0;
    void* signal_constant = nullptr;       // 8 bytes of host memory that hold a 1
    Probe* probes = nullptr;
    Resets resets = Resets::unknown;  // what all of them have in common
    u32 lists = 0;
};

struct Device {
    Handle handle = nullptr;
    u32 groups = 0;                // known ones
    u32 group_flags[32] = {};
    u32 kernel_bits = 64;
    u64 ticks_num = 0, ticks_den = 1;  // per second; 0: unknown
    std::atomic<u64> next_pair = 0;    // when its clock is to be read again, host ns
    u64 quarter_ns = ~u64{0};
    Device* next = nullptr;
};

struct Queue {
    bool synchronous = false;
};

struct Options {
    bool timing = true;      // whether operations are timed at all
    bool host_read = false;  // option H: no queries in lists, the host asks for all ticks
    bool abort = false;      // what to do when something that the program needs fails: end it, or go on without
    bool eager_probe = true; // whether all lists probe, not only those that must
    bool has_prologues = true;    // whether commands of the recorder may come in front of a run
    bool has_reruns = true;       // whether operations of lists are timed that need them, or are watched
    u32 poll_budget = 64;         // status calls of one collection
};

// A thread's hold on the state mutex, which guards what follows.
class StateLock {
public:
    StateLock() { lock(); }
    ~StateLock() {
        if (is_held_) unlock();
    }
    StateLock(const StateLock&) = delete;

    void lock();
    void unlock();
    // Waits until another thread has changed whose list is claimed, or what a probe found.
    void wait();

private:
    bool is_held_ = false;
};

struct CapturedEvent {
    Handle event;
    u32 capture;
    CapturedEvent* next;
};

struct State {
    Options options;
    // What every operation changes lies together.
    alignas(64) Mutex mutex;
    u64 sequence = 1;                  // counts collected results: orders them with submissions
    List* active = nullptr;            // lists with live operations
    alignas(64) std::condition_variable_any changed;
    HandleMap<List> lists;
    HandleMap<Context> contexts;
    HandleMap<Device> devices;
    HandleMap<Queue> queues;
    HandleMap<UserEvent> events;
    HandleMap<TickedPool> ticked_pools;
    HandleMap<TickedEvent> ticked;
    TickedEvent* free_ticked = nullptr;
    bool watches = false;              // whether a list was ever made that does
    std::atomic<bool> reads_at_end = false;  // ... that does
    OwnFence* fences = nullptr;
    std::atomic<u64> submissions = 0;  // of lists, counted when the driver has returned
    std::atomic<u32> api_minor = 0;    // of the oldest driver, 0: unknown
    UserEvent* free_events = nullptr;
    u32 last_list = 0;
    u64 last_event = 0;
    u32 last_capture = 0;
    CapturedEvent* captured = nullptr;  // what captured commands signal
    std::atomic<bool> has_captured = false;  // whether a closed list ever became part of a graph
    std::atomic<bool> has_ended = false;
    bool has_reported[reason_count] = {};
    u64 untimed[reason_count] = {};    // operations of this process that are not timed
    std::atomic<Device*> first_device = nullptr;
};

// Made at the begin of a process that is recorded, and never destroyed: calls come until the very end.
extern constinit State* the_state;
inline State& state() { return *the_state; }

// Captures of commands into graphs under way; changed under the state mutex.
extern std::atomic<u32> captures;

// How many lists have live operations; changed under the state mutex.
extern std::atomic<u64> live_lists;

// Changes whenever a list comes or goes; see `find_list`.
extern std::atomic<u64> list_generation;

// A list by its handle; the state mutex is held. Without a search if this thread has used it last.
inline List* find_list(State& all, Handle handle) {
    const u64 generation = list_generation.load(std::memory_order_relaxed);
    if (local.list == handle && local.generation == generation) return static_cast<List*>(local.list_data);
    List* found = all.lists.find(handle);
    if (found != nullptr) {
        local.list = handle;
        local.list_data = found;
        local.generation = generation;
    }
    return found;
}

inline u64 number(Handle handle) { return reinterpret_cast<u64>(handle); }

}  // namespace lanescope::levelzero::tracer
