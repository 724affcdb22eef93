// Operations and the chunks that hold them.
#include <cstring>
#include <new>

#include "intercept/routes.hpp"
#include "tracer/state/internal.hpp"

namespace lanescope::levelzero::tracer {

namespace {

// Chunks without a list that a context keeps.
constexpr u32 most_free_chunks = 16;

// ... and a list.
constexpr u32 most_spares = 2;

OpChunk* take_chunk(List& list) {
    Context& context = *list.context;
    if (OpChunk* chunk = list.spare) {
        list.spare = chunk->next;
        --list.spares;
        return chunk;
    }
    if (OpChunk* chunk = context.chunks) {
        context.chunks = chunk->next;
        --context.free_chunks;
        return chunk;
    }
    auto* made = static_cast<OpChunk*>(std::malloc(sizeof(OpChunk)));
    if (made == nullptr) return nullptr;
    const HostMemoryDesc desc = {stype_host_memory_desc, nullptr, 0};
    void* cells = nullptr;
    if (driver().zeMemAllocHost(context.handle, &desc, chunk_ops * sizeof(Ticks), 64, &cells) != success ||
        cells == nullptr) {
        std::free(made);
        return nullptr;
    }
    made->cells = static_cast<Ticks*>(cells);
    made->context = &context;
    return made;
}

TimedOp& next_op(OpChunk& tail) {
    TimedOp& op = tail.ops[tail.used];
    std::memset(static_cast<void*>(&op), 0, sizeof op);
    op.index = static_cast<u8>(tail.used++);
    ++tail.held;
    return op;
}

// Before any of its operations is submitted: all cells at once, which costs a fraction of one after the other.
void reset_cells(OpChunk& chunk) {
    static_assert(sizeof(Ticks) == 4 * sizeof(u64));
    u64* const words = &chunk.cells[0].start;
    for (u32 i = 0; i < 4 * chunk_ops; i += 4) {
        std::atomic_ref(words[i]).store(unwritten, std::memory_order_release);
        std::atomic_ref(words[i + 1]).store(unwritten, std::memory_order_release);
        std::atomic_ref(words[i + 2]).store(unwritten, std::memory_order_release);
        std::atomic_ref(words[i + 3]).store(unwritten, std::memory_order_release);
    }
}

// One more or one less; only who may change it asks.
u64 change(std::atomic<u64>& count, i64 by) {
    const u64 changed = count.load(std::memory_order_relaxed) + static_cast<u64>(by);
    count.store(changed, std::memory_order_relaxed);
    return changed;
}

}  // namespace

void reset_cell(TimedOp& op) {
    Ticks& cell = cell_of(op);
    for (u64* word : {&cell.start, &cell.end, &cell.context_start, &cell.context_end}) {
        std::atomic_ref(*word).store(unwritten, std::memory_order_release);
    }
}

TimedOp* reserve(List& list, ResultBatch& batch) {
    OpChunk* tail = list.last;
    if (tail == nullptr || tail->used == chunk_ops) {
        // Memory stays bounded even if the program never synchronizes.
        if (list.immediate && list.live != 0) collect_results(state(), batch, false, &list);
        OpChunk* made = take_chunk(list);
        if (made == nullptr) return nullptr;
        reset_cells(*made);
        made->list = &list;
        made->number = list.chunks++;
        made->used = made->held = 0;
        made->next = nullptr;
        made->previous = tail;
        (tail != nullptr ? tail->next : list.first) = made;
        list.last = made;
        if (list.cursor == nullptr) {
            list.cursor = made;
            list.cursor_index = 0;
        }
        if (tail != nullptr && list.immediate && tail->held == 0) free_chunk(list, *tail);
        tail = made;
    }
    return &next_op(*tail);
}

TimedOp* reserve_fast(List& list) {
    OpChunk* tail = list.last;
    return tail == nullptr || tail->used == chunk_ops ? nullptr : &next_op(*tail);
}

void mark_pending(List& list, TimedOp& op) {
    State& all = state();
    op.live = true;
    op.submitted = all.sequence;
    if (change(list.live, 1) != 1) return;
    if (change(live_lists, 1) == 1) choose_collecting_routes();
    list.previous = nullptr;
    list.next = all.active;
    if (all.active != nullptr) all.active->previous = &list;
    all.active = &list;
}

void mark_pending_fast(List& list, TimedOp& op) {
    op.live = true;
    change(list.live, 1);
}

void mark_done(List& list, TimedOp& op) {
    State& all = state();
    op.live = false;
    if (change(list.live, -1) != 0) return;
    if (change(live_lists, -1) == 0) choose_collecting_routes();
    (list.previous != nullptr ? list.previous->next : all.active) = list.next;
    if (list.next != nullptr) list.next->previous = list.previous;
    list.next = list.previous = nullptr;
}

void forget_newest(const TimedOp& op) {
    if (op.user != nullptr && op.user->id == op.user_id && op.user->newest == &op) op.user->newest = nullptr;
}

void forget_last(UserEvent& user) {
    if (user.last != nullptr && !state().has_ended) recycle_event(*user.last, true);
    user.last = nullptr;
}

void release(TimedOp& op) {
    op.released = true;
    --chunk_of(op).held;
    UserEvent* user = op.user;
    const bool is_newest = user != nullptr && user->id == op.user_id && user->newest == &op;
    if (is_newest) user->newest = nullptr;
    unpin(op);
    if (is_newest && user->has_ticks && op.run != 0 && op.injected != nullptr) {
        forget_last(*user);
        user->last = op.injected;
        return;
    }
    List& list = *chunk_of(op).list;
    if (list.immediate) {
        recycle_event(*op.injected, op.run != 0, &list);
    } else if (op.injected != nullptr) {
        recycle_event(*op.injected, op.run != 0);
    }
}

void free_chunk(List& list, OpChunk& chunk) {
    if (list.cursor == &chunk) {
        list.cursor = chunk.next;
        list.cursor_index = 0;
    }
    (chunk.previous != nullptr ? chunk.previous->next : list.first) = chunk.next;
    (chunk.next != nullptr ? chunk.next->previous : list.last) = chunk.previous;
    const bool stays = list.immediate && list.spares < most_spares;
    OpChunk*& free = stays ? list.spare : chunk.context->chunks;
    chunk.next = free;
    free = &chunk;
    ++(stays ? list.spares : chunk.context->free_chunks);
}

namespace {

// Forgets operations that a graph may still run: their events and cells are kept as long as the context.
void leave_to_graphs(List& list) {
    each_op(list, [](TimedOp& op) {
        forget_newest(op);
        unpin(op);
    });
    if (list.last != nullptr) {
        list.last->next = list.context->captured;
        list.context->captured = list.first;
    }
    list.first = list.last = nullptr;
    list.was_captured = false;
}

}  // namespace

void clear_list(List& list, DeferredFree& left) {
    Context& context = *list.context;
    left.context = context.handle;
    if (list.was_captured) leave_to_graphs(list);
    for (OpChunk* chunk = list.first; chunk != nullptr; chunk = chunk->next) {
        for (u32 i = 0; i < chunk->used; ++i) {
            TimedOp& op = chunk->ops[i];
            if (op.released) continue;
            before_clear(state(), list, op);
            release(op);
        }
    }
    while (list.first != nullptr) free_chunk(list, *list.first);
    while (OpChunk* chunk = list.spare) {
        list.spare = chunk->next;
        chunk->next = context.chunks;
        context.chunks = chunk;
        ++context.free_chunks;
    }
    list.spares = 0;
    while (InjectedEvent* event = list.events) {
        list.events = event->next;
        event->next = context.events;
        context.events = event;
    }
    list.cursor = nullptr;
    list.cursor_index = 0;
    list.asked = 0;
    while (context.free_chunks > most_free_chunks) {
        OpChunk* chunk = context.chunks;
        context.chunks = chunk->next;
        --context.free_chunks;
        chunk->next = left.chunks;
        left.chunks = chunk;
    }
}

void free_memory(const DeferredFree& left) {
    for (OpChunk* chunk = left.chunks; chunk != nullptr;) {
        OpChunk* next = chunk->next;
        driver().zeMemFree(left.context, chunk->cells);
        std::free(chunk);
        chunk = next;
    }
    if (left.signal_constant != nullptr) driver().zeMemFree(left.context, left.signal_constant);
}

}  // namespace lanescope::levelzero::tracer
