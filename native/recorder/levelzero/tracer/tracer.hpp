// What hooks ask of the tracer. None of it is called with the state mutex held, nor holds it on return.
#pragma once

#include "intercept/hooks.hpp"
#include "tracer/state/state.hpp"

namespace lanescope::levelzero::tracer {

// --- lists ---------------------------------------------------------------------------------------------------------

// Before a list is made: what has to be known of its device.
void prepare(Handle context, Handle device, u32 ordinal, bool immediate, bool in_order);
void on_list_created(Call& call, Handle list, Handle context, Handle device, const ListDesc& desc);
void on_list_created(Call& call, Handle list, Handle context, Handle device, const QueueDesc& desc);
void on_list_cloned(Call& call, Handle list, Handle clone);
void set_capturing(Handle list, bool on);
// Before an Append while anything is captured: a list that waits for what captured commands signal is captured, too.
void join_capture(Handle list, Handle signal, u32 count, const Handle* waits);
bool is_capturing(Handle list);
// Closed lists were appended to a list that is captured: what they run as part of the graph is not seen.
void on_lists_captured(u32 count, const Handle* lists);
// Before a graph runs: closed lists in it will write to their cells again. What a run of their own has not written by now
// is given up, as it could not be told from what the graph writes.
void before_graph();
// Around the driver's own call.
void before_reset(Handle list);
void after_reset(Call& call, Handle list);
List* before_destroy(Handle list);
void after_destroy(Call& call, List* list, bool is_gone);

// The program uses a driver of an API version.
void on_driver(u32 version);
void on_queue_created(Call& call, Handle queue, Handle device, const QueueDesc& desc);
// The driver still has it.
void before_queue_destroy(Handle queue);
// A fence of the program will be reset or destroyed.
void on_fence_unset(Handle fence);

// --- operations ----------------------------------------------------------------------------------------------------

// One Append under way.
struct Append {
    Handle list, user;         // user: the event that the program wants signalled
    TimedOp* op = nullptr;     // null: not timed
    List* data = nullptr;
    u64 op_id = 0;
    u32 list_id = 0;
    TimestampSource how = TimestampSource::untimed;
    Reason reason = Reason::none;
    bool is_told = true;       // false: nothing is written of it
    Handle signal;             // what the driver is to signal
    Handle events_here[16];
    Handle* events = nullptr;  // of a query of the program, in the place of its own
    Handle* made = nullptr;    // ... where there are many

    Append(Handle list_, Handle user_) : list(list_), user(user_), signal(user_) {}
    ~Append() { std::free(made); }
    Append(const Append&) = delete;
};

void begin_append(Append& append);
// For an Append that is never timed.
void begin_untimed_append(Append& append);
// For a query of the program: reads our events where it names its own.
void translate(Append& append, u32 count, const Handle* events);
// After the driver; returns what the program gets.
Result end_append(Append& append, Result result);
// A synchronous list may never be synchronised. Of a timed Append.
void collect_if_synchronous(const Append& append);
// An Append that is never timed signals an event.
void signalled_untimed(Handle event);

// Records of operations that were appended.
void emit_plain(Call& call, const Append& append, Function api, u32 wait_count, const Handle* waits);
void emit_kernel(Call& call, const Append& append, Function api, u32 wait_count, const Handle* waits, Handle kernel,
                 Groups groups);
void emit_memory(Call& call, const Append& append, Function api, u32 wait_count, const Handle* waits, usize size,
                 Address dst, Address src);

// --- executions ----------------------------------------------------------------------------------------------------

struct Execution {
    static constexpr u32 most_here = 16;
    List* here[most_here];
    List** lists = here;
    u32 count = 0;
    bool is_suppressed = false;
    // What the driver is to be given instead of the program's lists: those, with prologues in front; null: the same.
    Handle* submitted = nullptr;
    u32 submitted_count = 0;
    Result refused = success;  // what the program gets if nothing may be submitted
    struct OwnFence* fence = nullptr;  // ours, where the program has none and the host must know the end of the run

    ~Execution() {
        if (lists != here) std::free(lists);
        std::free(submitted);
    }
};
// `fence`: of the call, null for calls that have none; ours is put there.
void before_execute(Execution& execution, Handle queue, Handle* fence, u32 count, const Handle* lists);
void after_execute(Call& call, Execution& execution, Handle queue, const Handle* fence, Result result);

// --- the program's own events, and the ends of things --------------------------------------------------------------

// What a call has waited for, or was told the end of.
enum class Waited : u8 { event, queue, list, fence, device };
// What has been submitted before such a call; see `synced`.
u64 submissions();
// Something was seen to have ended: all that was submitted to a queue, an immediate list or a device, or with a fence,
// before the call; or an event was.
void synced(Call& call, Waited waited, Handle handle, u64 before);
void on_pool_created(Handle pool, const PoolDesc* desc);
void on_pool_destroyed(Handle pool);
void on_pool_shared(Handle pool);
void on_event_created(Handle pool, Handle event);
// Something signals or resets an event besides the operations of lists.
void on_foreign_use(Handle event);
// The program resets an event; a command list, a command that will: null: the host does it.
void on_event_reset(Handle event, Handle list);
void on_event_destroyed(Call& call, Handle event);
// Puts the ticks of the operation that signalled an event in the place of those of our command that handed it on; false:
// they are those of the operation. `shift_ns`: how much earlier they are on the device's clock, begin and end.
bool own_ticks(Handle event, Ticks& ticks, i64 (*shift_ns)[2] = nullptr);
void before_context_destroy(Handle context);

// --- the process ---------------------------------------------------------------------------------------------------

void start(const Options& options);
void before_fork();
void after_fork_in_parent();
void after_fork_in_child();
// The last words of the process; the driver is not touched any more.
void end();
// Operations that are not timed, by the names of their reasons: `REASON COUNT`, a line each. After `end`.
std::string untimed_operations();
u64 lock_waits();

}  // namespace lanescope::levelzero::tracer
