// Slots and the chunks that hold them.
#include <cstring>
#include <new>

#include "rooms.hpp"

namespace lanescope::levelzero::tracer {

namespace {

// Chunks without a list that a context keeps.
constexpr u32 most_free_chunks = 16;

// ... and a list.
constexpr u32 most_spares = 2;

Chunk* take_chunk(List& list) {
    Context& context = *list.context;
    if (Chunk* chunk = list.spare) {
        list.spare = chunk->next;
        --list.spares;
        return chunk;
    }
    if (Chunk* chunk = context.chunks) {
        context.chunks = chunk->next;
        --context.free_chunks;
        return chunk;
    }
    auto* made = static_cast<Chunk*>(std::malloc(sizeof(Chunk)));
    if (made == nullptr) return nullptr;
    const HostMemoryDesc desc = {stype_host_memory_desc, nullptr, 0};
    void* cells = nullptr;
    if (driver().zeMemAllocHost(context.handle, &desc, chunk_slots * sizeof(Ticks), 64, &cells) != success ||
        cells == nullptr) {
        std::free(made);
        return nullptr;
    }
    made->cells = static_cast<Ticks*>(cells);
    made->context = &context;
    return made;
}

Slot& next_slot(Chunk& tail) {
    Slot& slot = tail.slots[tail.used];
    std::memset(static_cast<void*>(&slot), 0, sizeof slot);
    slot.index = static_cast<u8>(tail.used++);
    ++tail.held;
    arm(slot);
    return slot;
}

// One more or one less; only who may change it asks.
u64 change(std::atomic<u64>& count, i64 by) {
    const u64 changed = count.load(std::memory_order_relaxed) + static_cast<u64>(by);
    count.store(changed, std::memory_order_relaxed);
    return changed;
}

}  // namespace

void arm(Slot& slot) {
    Ticks& cell = cell_of(slot);
    for (u64* word : {&cell.start, &cell.end, &cell.context_start, &cell.context_end}) {
        std::atomic_ref(*word).store(unwritten, std::memory_order_release);
    }
}

Slot* reserve(List& list, Batch& batch) {
    Chunk* tail = list.last;
    if (tail == nullptr || tail->used == chunk_slots) {
        // Memory stays bounded even where nobody ever synchronises.
        if (list.immediate && list.live != 0) harvest(state(), batch, false, &list);
        Chunk* made = take_chunk(list);
        if (made == nullptr) return nullptr;
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
        if (tail != nullptr && list.immediate && tail->held == 0) retire(list, *tail);
        tail = made;
    }
    return &next_slot(*tail);
}

Slot* reserve_quickly(List& list) {
    Chunk* tail = list.last;
    return tail == nullptr || tail->used == chunk_slots ? nullptr : &next_slot(*tail);
}

void make_live(List& list, Slot& slot) {
    State& all = state();
    slot.live = true;
    slot.submitted = all.moment;
    if (change(list.live, 1) != 1) return;
    change(all.live, 1);
    list.previous = nullptr;
    list.next = all.active;
    if (all.active != nullptr) all.active->previous = &list;
    all.active = &list;
}

void make_live_quickly(List& list, Slot& slot) {
    slot.live = true;
    change(list.live, 1);
}

void make_idle(List& list, Slot& slot) {
    State& all = state();
    slot.live = false;
    if (change(list.live, -1) != 0) return;
    change(all.live, -1);
    (list.previous != nullptr ? list.previous->next : all.active) = list.next;
    if (list.next != nullptr) list.next->previous = list.previous;
    list.next = list.previous = nullptr;
}

void release(Slot& slot) {
    slot.released = true;
    --chunk_of(slot).held;
    if (slot.user != nullptr && slot.user->id == slot.user_id && slot.user->newest == &slot) slot.user->newest = nullptr;
    unpin(slot);
    List& list = *chunk_of(slot).list;
    put(*slot.injected, slot.run != 0, list.immediate ? &list : nullptr);
}

void retire(List& list, Chunk& chunk) {
    if (list.cursor == &chunk) {
        list.cursor = chunk.next;
        list.cursor_index = 0;
    }
    (chunk.previous != nullptr ? chunk.previous->next : list.first) = chunk.next;
    (chunk.next != nullptr ? chunk.next->previous : list.last) = chunk.previous;
    const bool stays = list.immediate && list.spares < most_spares;
    Chunk*& free = stays ? list.spare : chunk.context->chunks;
    chunk.next = free;
    free = &chunk;
    ++(stays ? list.spares : chunk.context->free_chunks);
}

void empty(List& list, Leftover& left) {
    Context& context = *list.context;
    left.context = context.handle;
    for (Chunk* chunk = list.first; chunk != nullptr; chunk = chunk->next) {
        for (u32 i = 0; i < chunk->used; ++i) {
            if (!chunk->slots[i].released) release(chunk->slots[i]);
        }
    }
    while (list.first != nullptr) retire(list, *list.first);
    while (Chunk* chunk = list.spare) {
        list.spare = chunk->next;
        chunk->next = context.chunks;
        context.chunks = chunk;
        ++context.free_chunks;
    }
    list.spares = 0;
    while (Injected* event = list.events) {
        list.events = event->next;
        event->next = context.events;
        context.events = event;
    }
    list.cursor = nullptr;
    list.cursor_index = 0;
    list.asked = 0;
    while (context.free_chunks > most_free_chunks) {
        Chunk* chunk = context.chunks;
        context.chunks = chunk->next;
        --context.free_chunks;
        chunk->next = left.chunks;
        left.chunks = chunk;
    }
}

void free_memory(const Leftover& left) {
    for (Chunk* chunk = left.chunks; chunk != nullptr;) {
        Chunk* next = chunk->next;
        driver().zeMemFree(left.context, chunk->cells);
        std::free(chunk);
        chunk = next;
    }
    if (left.eight != nullptr) driver().zeMemFree(left.context, left.eight);
}

}  // namespace lanescope::levelzero::tracer
