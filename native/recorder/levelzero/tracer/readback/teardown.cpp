// The ends of contexts and of the process.
#include "stream/events.hpp"
#include "tracer/state/internal.hpp"
#include "tracer/tracer.hpp"

namespace lanescope::levelzero::tracer {

namespace {

// A list of a context, if there is one left.
List* list_of(State& all, const Context* context) {
    List* found = nullptr;
    all.lists.each([&](Handle, List* list) {
        if (list->context == context) found = list;
    });
    return found;
}

void forget_events(State& all, const Context* context) {
    while (true) {
        UserEvent* gone = nullptr;
        all.events.each([&](Handle, UserEvent* event) {
            if (event->context == context) gone = event;
        });
        if (gone == nullptr) return;
        all.events.remove(gone->handle);
        gone->id = 0;
        forget_last(*gone);
        if (gone->kept != nullptr) gone->kept->keeper = nullptr;
        gone->next = all.free_events;
        all.free_events = gone;
    }
}

// What was kept for graphs, which end with their context.
void destroy_captured(Context& context, DeferredFree& left) {
    while (OpChunk* chunk = context.captured) {
        context.captured = chunk->next;
        for (u32 i = 0; i < chunk->used; ++i) {
            const TimedOp& op = chunk->ops[i];
            if (op.released || op.injected == nullptr) continue;
            driver().zeEventDestroy(op.injected->event);
            driver().zeEventPoolDestroy(op.injected->pool);
            delete op.injected;
        }
        chunk->next = left.chunks;
        left.chunks = chunk;
    }
}

}  // namespace

// The context still lives. Commands of lists that the program destroys later use injected events: these are left to the
// driver. Calls of those lists pass through.
void before_context_destroy(Handle handle) {
    State& all = state();
    if (local.holds) return;
    DeferredFree left{};
    OwnFence* fences = nullptr;
    bool had_lists = false;
    while (true) {
        ResultBatch batch;
        Degradations degradations;
        {
            StateLock lock;
            Context* context = all.contexts.find(handle);
            if (context == nullptr) return;
            List* list = list_of(all, context);
            if (list == nullptr) {
                all.contexts.remove(handle);
                forget_events(all, context);
                if (!all.has_ended) fences = remove_fences(all, handle, nullptr);
                if (!had_lists && !all.has_ended) {
                    left.context = handle;
                    left.signal_constant = context->signal_constant;
                    left.chunks = context->chunks;
                    destroy_captured(*context, left);
                    for (InjectedEvent *event = context->events, *next = nullptr; event != nullptr; event = next) {
                        next = event->next;
                        driver().zeEventDestroy(event->event);
                        driver().zeEventPoolDestroy(event->pool);
                        delete event;
                    }
                }
                for (Probe *probe = context->probes, *next = nullptr; probe != nullptr; probe = next) {
                    next = probe->next;
                    if (!all.has_ended) forget_probe(*probe);
                    delete probe;
                }
                delete context;
                break;
            }
            had_lists = true;
            if (list->live != 0 && !all.has_ended) collect_results_and_write(all, lock, true, list);
            abandon_results(all, *list, batch, Reason::not_drained, false);
            if (list->live == 0) {
                degradations = degradations_of(all, *list);
                drop_fence(*list);
                end_capture(all, *list);
                all.lists.remove(list->handle);
                list_generation.fetch_add(1, std::memory_order_release);
                // Its chunks are a few kilobytes, and other threads may be at its last words: they stay.
            }
        }
        batch.write();
        degradations.write();
    }
    destroy_fences(fences);
    free_memory(left);
}

// Whoever holds the state mutex then will not let it go any more if it is blocked in a driver that is being taken down.
void end() {
    State& all = state();
    if (local.holds) return;
    while (true) {
        ResultBatch batch;
        Degradations degradations;
        bool is_done = true;
        {
            StateLock lock;
            all.has_ended = true;
            all.lists.each([&](Handle, List* list) {
                if (!is_done) return;
                if (list->live != 0) {
                    abandon_results(all, *list, batch, Reason::not_drained, false);
                    is_done = false;
                    return;
                }
                degradations = degradations_of(all, *list);
                for (size_t i = 0; i < reason_count; ++i) {
                    if (list->untimed_count[i] != 0) is_done = false;
                    list->untimed_count[i] = 0;
                }
            });
        }
        batch.write();
        degradations.write();
        if (is_done) return;
    }
}

}  // namespace lanescope::levelzero::tracer
