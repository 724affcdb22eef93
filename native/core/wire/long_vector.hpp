// Vectors whose memory another may provide: where the memory of a process is limited, long ones are on disk.
#pragma once
#include <cstddef>
#include <new>
#include <vector>

namespace lanescope {

// Who provides memory, as far as he wants to.
struct LongMemory {
    void* (*take)(size_t bytes) = nullptr;  // nullptr: not for these
    bool (*give)(void* data) = nullptr;     // false: it is not his
    bool (*is_wanted)() = nullptr;          // whether he provides any to this thread now
};
// Set once, before any vector is made.
inline LongMemory long_memory;

template <class T>
struct LongAllocator {
    using value_type = T;

    LongAllocator() = default;
    template <class U>
    LongAllocator(const LongAllocator<U>&) noexcept {}  // NOLINT(google-explicit-constructor)

    T* allocate(size_t count) {
        void* const found = long_memory.take == nullptr ? nullptr : long_memory.take(count * sizeof(T));
        return static_cast<T*>(found != nullptr ? found : ::operator new(count * sizeof(T)));
    }
    void deallocate(T* data, size_t) noexcept {
        if (long_memory.give == nullptr || !long_memory.give(data)) ::operator delete(data);
    }
    template <class U>
    bool operator==(const LongAllocator<U>&) const noexcept {
        return true;
    }
};

template <class T>
using LongVector = std::vector<T, LongAllocator<T>>;

}  // namespace lanescope
