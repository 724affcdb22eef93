// The program's own events: their ends, and their timestamps, which are those of our command that signalled them.
#include <new>

#include "stream/events.hpp"
#include "tracer/state/internal.hpp"
#include "tracer/tracer.hpp"

namespace lanescope::levelzero::tracer {

UserEvent* user_event(State& all, Context* context, Handle handle) {
    if (UserEvent* found = all.events.find(handle)) return found;
    UserEvent* made = all.free_events;
    if (made != nullptr) {
        all.free_events = made->next;
    } else {
        made = new (std::nothrow) UserEvent;
        if (made == nullptr) return nullptr;
    }
    if (!all.events.add(handle, made)) {
        made->next = all.free_events;
        all.free_events = made;
        return nullptr;
    }
    *made = UserEvent{};
    made->id = ++all.last_event;
    made->handle = handle;
    made->context = context;
    made->has_ticks = all.ticked.find(handle) != nullptr;
    return made;
}

void forget_resets(UserEvent& event) {
    event.is_reset = event.is_reset_in_list = event.is_perhaps_reset = event.is_asked = event.is_again = event.is_overtaken = false;
    event.reset_in = 0;
}

void set_newest(UserEvent& event, TimedOp& op) {
    const bool is_first = event.newest == nullptr && event.seen == 0 && !event.untimed_last;
    const bool is_again = !is_first && !event.is_reset && !event.is_reset_in_list;
    const List* list = chunk_of(op).list;
    event.is_among = !list->immediate && event.newest != nullptr && chunk_of(*event.newest).list == list;
    forget_resets(event);
    event.is_again = is_again;
    event.newest = &op;
}

void signal_next(State& all, List& list, TimedOp& op) {
    if (op.user == nullptr || op.user->id != op.user_id || op.how == TimestampSource::watched) return;
    UserEvent& event = *op.user;
    const List* before = event.newest == nullptr ? nullptr : chunk_of(*event.newest).list;
    if (before != &list) {
        if (event.is_asked) count_false_query(all, list);
        set_newest(event, op);
        return;
    }
    // A list that runs again signals it as often as before.
    const bool is_again = event.is_again;
    forget_resets(event);
    event.is_again = is_again;
    event.is_among = event.is_among || event.newest != &op;
    event.newest = &op;
}

void on_event_destroyed(Call& call, Handle handle) {
    State& all = state();
    if (local.holds || !all.options.timing) return;
    {
        StateLock lock;
        if (const TickedEvent* ticked = all.ticked.find(handle)) {
            // Who destroys it knows that what signals it has ended.
            if (ticked->watcher != nullptr && !all.has_ended) {
                ticked->watcher->is_final = true;
                collect_results_and_write(all, lock, true, chunk_of(*ticked->watcher).list);
            }
            forget_watched(all, handle);
        }
        UserEvent* event = all.events.remove(handle);
        if (event == nullptr) return;
        // Operations that await it keep its number, and find another one here.
        event->id = 0;
        forget_last(*event);
        if (event->kept != nullptr) event->kept->keeper = nullptr;
        event->next = all.free_events;
        all.free_events = event;
    }
    emit<Record::event_end>(call.now(), number(handle));
}

void on_event_reset(Handle handle, Handle list_handle) {
    State& all = state();
    if (local.holds || !all.options.timing) return;
    StateLock lock;
    UserEvent* event = all.events.find(handle);
    if (event == nullptr) return;
    if (list_handle != nullptr) {
        const List* list = find_list(all, list_handle);
        event->reset_in = list == nullptr ? 0 : list->id;
        event->is_reset_in_list = true;
    } else if (event->context->resets != Resets::fail) {
        // Where the host's resets do nothing, the event stays signalled, and its ticks are those that it had.
        event->is_reset = true;
    } else {
        event->is_perhaps_reset = true;
    }
}

bool own_ticks(Handle handle, Ticks& ticks, i64 (*shift_ns)[2]) {
    State& all = state();
    if (local.holds || !all.options.timing) return false;
    bool is_ours = false;
    {
        StateLock lock;
        const UserEvent* event = all.events.find(handle);
        if (event == nullptr) return false;
        // Of the list that signals it everything, however much that is. While it is written another thread may end the
        // list, so what is known of the event is looked up again.
        for (bool is_done = all.has_ended || event->newest == nullptr; !is_done;) {
            ResultBatch batch;
            is_done = collect_results(all, batch, true, chunk_of(*event->newest).list);
            lock.unlock();
            batch.write();
            lock.lock();
            event = all.events.find(handle);
            if (event == nullptr) return false;
            is_done = is_done || all.has_ended || event->newest == nullptr;
        }
        if (!all.has_ended) {
            // Of the others what costs little.
            collect_results_and_write(all, lock, false);
            event = all.events.find(handle);
            if (event == nullptr) return false;
        }
        is_ours = event->seen != 0 && !event->untimed_last;
        if (is_ours) {
            if (shift_ns != nullptr) {
                const Device* device = all.first_device.load();
                const u32 bits = device != nullptr ? device->kernel_bits : 64;
                const auto shift = [&](u64 theirs, u64 ours) {
                    const i64 later = static_cast<i64>((theirs - ours) << (64 - bits)) >> (64 - bits);
                    if (device == nullptr || device->ticks_num == 0) return i64{0};
                    return static_cast<i64>(static_cast<double>(later) * 1e9 * static_cast<double>(device->ticks_den) /
                                            static_cast<double>(device->ticks_num));
                };
                (*shift_ns)[0] = shift(ticks.start, event->result.start);
                (*shift_ns)[1] = shift(ticks.end, event->result.end);
            }
            ticks = event->result;
        }
    }
    return is_ours;
}

}  // namespace lanescope::levelzero::tracer
