// Queries of the program, by which the device writes the timestamps of events into memory: what stands in for its events.
#include <new>

#include "api/program_memory.hpp"
#include "tracer/state/internal.hpp"
#include "tracer/tracer.hpp"

namespace lanescope::levelzero::tracer {

namespace {

// A query of a regular list that reads what another list signals may run after each of several signallers.
void keep_for_query(UserEvent& user, InjectedEvent& event, List& reader) {
    if (reader.immediate) return;
    if (user.kept == nullptr && event.keeper == nullptr) {
        user.kept = &event;
        event.keeper = &user;
        event.reader = event.pins == 0 ? &reader : nullptr;
    } else if (event.reader != &reader) {
        event.reader = nullptr;
    }
}

// Whether a query may read what another operation than the newest signals: one that has ended after that, or one that
// signals the event as well, where the newest is not known to have ended when the query runs. In the list of the query a
// reset in between tells which is meant.
bool is_one_of_several(const UserEvent& event, const List& reader, bool is_for_next) {
    if (event.is_overtaken) return true;
    TimedOp* op = event.newest;
    if (op == nullptr) return false;
    const List* list = chunk_of(*op).list;
    if (list == &reader ? list->in_order || !event.is_again : !event.is_again && !event.is_among) return false;
    return op->live || op->run == 0 || is_for_next || !reader.immediate;
}

void pin_event(InjectedEvent& event, QueryRef& pin, TimedOp& query, bool is_for_next) {
    pin = {&event, query.pins, &query, is_for_next, event.readers, &event.readers};
    query.pins = &pin;
    if (event.readers != nullptr) event.readers->at = &pin.other;
    event.readers = &pin;
    ++event.pins;
}

// Takes an event again that a query of the program reads, for an operation of a list. False: it is in use, or stays
// signalled.
bool reuse_event(InjectedEvent& event, const List& list) {
    const Resets resets = list.context->resets;
    const bool is_free = event.is_recycled && event.context == list.context && event.reader != nullptr &&
                         event.reader != &list && event.reader->live == 0 && resets != Resets::fail &&
                         driver().zeEventHostReset(event.event) == success &&
                         (resets == Resets::work || driver().zeEventQueryStatus(event.event) == not_ready);
    if (is_free) event.is_recycled = false;
    return is_free;
}

// Whether a query that was submitted is still to read the last run of what signals an event.
bool is_still_read(const InjectedEvent& event) {
    for (const QueryRef* pin = event.readers; pin != nullptr; pin = pin->other) {
        if (pin->query->live && !pin->is_for_next) return true;
    }
    return false;
}

}  // namespace

void count_false_query(State& all, List& list) {
    ++all.untimed[static_cast<size_t>(Reason::user_query_untranslated)];
    count_untimed(list, Reason::user_query_untranslated);
}

InjectedEvent* stand_in(State& all, List& list, UserEvent* user, ResultBatch& batch) {
    if (user == nullptr) return acquire_event(list);
    if (user->is_asked) count_false_query(all, list);
    InjectedEvent* kept = user->kept;
    if (kept == nullptr) {
        forget_last(*user);
        return acquire_event(list);
    }
    // Who signals the event again knows that both have ended.
    for (List* other : {user->newest == nullptr ? nullptr : chunk_of(*user->newest).list, kept->reader}) {
        if (other != nullptr && other != &list) collect_results(all, batch, true, other);
    }
    forget_last(*user);
    if (reuse_event(*kept, list)) return kept;
    count_false_query(all, list);
    return acquire_event(list);
}

void before_another_signal(State& all, List& list, const UserEvent& event) {
    const TimedOp* before = event.newest;
    if (before == nullptr || before->injected == nullptr || event.is_reset_in_list) return;
    for (const QueryRef* pin = before->injected->readers; pin != nullptr; pin = pin->other) {
        // A reset by the host tells which is meant, but does not stand between two commands of a closed list.
        List* reader = chunk_of(*pin->query).list;
        const bool is_apart = reader == &list ? list.in_order || (event.is_reset && list.immediate)
                                              : event.is_reset || !pin->query->live;
        if (!is_apart) count_false_query(all, *reader);
    }
}

void unpin(TimedOp& op) {
    while (QueryRef* pin = op.pins) {
        InjectedEvent& event = *pin->event;
        op.pins = pin->next;
        *pin->at = pin->other;
        if (pin->other != nullptr) pin->other->at = pin->at;
        delete pin;
        if (event.reader == chunk_of(op).list) event.reader = nullptr;
        if (--event.pins != 0) continue;
        if (event.keeper != nullptr) event.keeper->kept = nullptr;
        event.keeper = nullptr;
        if (event.is_recycled) recycle_event(event, true);
    }
}

void before_rerun(State& all, List& list, TimedOp& op) {
    InjectedEvent& event = *op.injected;
    if (is_still_read(event)) count_false_query(all, list);
    for (QueryRef* pin = event.readers; pin != nullptr; pin = pin->other) pin->is_for_next = false;
}

void before_clear(State& all, const List& list, const TimedOp& op) {
    if (op.injected == nullptr) return;
    for (const QueryRef* pin = op.injected->readers; pin != nullptr; pin = pin->other) {
        List* reader = chunk_of(*pin->query).list;
        if (reader != &list && (op.run == 0 || pin->is_for_next)) count_false_query(all, *reader);
    }
}

void translate(Append& append, u32 count, const Handle* events) {
    if (append.op == nullptr || events == nullptr || count == 0) return;
    State& all = state();
    append.events = append.events_here;
    if (count > sizeof append.events_here / sizeof *append.events_here) {
        append.made = static_cast<Handle*>(std::malloc(usize{count} * sizeof(Handle)));
        if (append.made == nullptr) {
            append.events = nullptr;
            return;
        }
        append.events = append.made;
    }
    // The driver refuses or fails as it would alone.
    if (!copy_of_program(append.events, events, usize{count} * sizeof(Handle))) {
        append.events = nullptr;
        return;
    }
    StateLock lock;
    for (u32 i = 0; i < count; ++i) {
        UserEvent* event = user_event(all, append.data->context, append.events[i]);
        if (event == nullptr) continue;
        TimedOp* op = event->newest;
        if (op != nullptr && op->how == TimestampSource::watched) continue;  // its event is the program's
        InjectedEvent* injected = op != nullptr ? op->injected : event->last;
        const List* signals = op == nullptr ? nullptr : chunk_of(*op).list;
        const bool is_behind_own_reset = event->is_reset_in_list && event->reset_in == append.data->id;
        const bool is_behind_reset = is_behind_own_reset || (event->is_reset && append.data->immediate);
        const bool runs_again = signals != nullptr && signals != append.data && !signals->immediate;
        if (event->is_read) {
            // A closed list may signal it that was made before.
            if (runs_again && !is_behind_own_reset) count_false_query(all, *append.data);
            continue;
        }
        const bool is_new = injected == nullptr && event->seen == 0 && !event->untimed_last;
        if (is_new || (is_behind_reset && !runs_again)) {
            // What will signal it is not known yet, and this query goes to the driver now.
            event->is_read = true;
            continue;
        }
        if (event->untimed_last) {
            event->is_read = !append.data->immediate;  // it may run again for one that would be timed
            continue;
        }
        // A list that has such a command may run before this query, or after it.
        const bool may_be_reset = (event->is_reset_in_list || event->is_perhaps_reset) && append.data->immediate;
        event->is_asked |= is_behind_reset || (may_be_reset && runs_again);
        auto* pin = injected == nullptr || op == append.op ? nullptr : new (std::nothrow) QueryRef;
        // Else the ticks will be those of the command that handed its signal on.
        if (pin == nullptr || (may_be_reset && !runs_again) || is_one_of_several(*event, *append.data, is_behind_reset)) {
            count_false_query(all, *append.data);
        }
        if (pin == nullptr) continue;
        if (signals != append.data) keep_for_query(*event, *injected, *append.data);
        pin_event(*injected, *pin, *append.op, is_behind_reset);
        append.events[i] = injected->event;
    }
}

}  // namespace lanescope::levelzero::tracer
