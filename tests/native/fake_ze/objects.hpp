// What handles point at. Destroyed objects leave their address to the next one of their kind, and are recognised as
// destroyed until then.
#pragma once

#include <level_zero/ze_api.h>

#include <atomic>
#include <cstdint>
#include <new>
#include <string>

#include "stats.hpp"
#include "truth.hpp"

namespace fake_ze {

enum class Kind : uint32_t { none, driver, device, context, queue, list, pool, event, fence, module, build_log, kernel, image, graph,
                            executable, metric_pool, metric_query };

const char* name_of(Kind kind);

struct Object {
    void* tables[4] = {};  // newer loaders look for tables at the head of a handle
    std::atomic<Kind> kind{Kind::none};
    uint64_t serial = 0;  // never reused
};

// Before each object lies its life: the serial number of the object that lives there, 0 for none. It stays when objects
// come and go, so threads may ask for it at any time.
using Life = std::atomic<uint64_t>;
inline constexpr size_t life_size = 64;
inline Life& life_at(const void* object) {
    return *reinterpret_cast<Life*>(static_cast<char*>(const_cast<void*>(object)) - life_size);
}

// Addresses for objects of one kind, last freed first. `size` is the same on every call for a kind.
void* take_address(Kind kind, size_t size);
void give_address(Kind kind, void* address);
uint64_t next_serial();
Level& live(Kind kind);

template <class T>
T* make() {
    T* object = new (take_address(T::own_kind, sizeof(T))) T;
    object->serial = next_serial();
    object->kind.store(T::own_kind);
    life_at(object).store(object->serial);
    live(T::own_kind).add(1);
    return object;
}

template <class T>
void destroy(T* object) {
    life_at(object).store(0);
    object->~T();
    new (static_cast<void*>(object)) Object;  // what a stale handle finds
    live(T::own_kind).add(-1);
    give_address(T::own_kind, object);
}

// The object behind a handle. Null, after saying so, if there is none of that kind: destroyed, foreign or null.
template <class T, class Handle>
T* find(Handle handle) {
    T* object = reinterpret_cast<T*>(handle);
    if (object != nullptr && object->kind.load() == T::own_kind) return object;
    mistake(std::string(name_of(T::own_kind)) + ": " + (object == nullptr ? "null" : "dead or foreign") + " handle");
    return nullptr;
}

// A reference that knows when its object is gone, even if another lives at the address.
template <class T>
struct Ref {
    T* object = nullptr;
    uint64_t serial = 0;

    Ref() = default;
    explicit Ref(T* to) : object(to), serial(to == nullptr ? 0 : to->serial) {}
    bool is_alive() const { return object != nullptr && life_at(object).load() == serial; }
};

}  // namespace fake_ze
