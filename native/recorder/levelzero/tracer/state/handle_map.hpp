// A map from handles to what is known of them. Its memory grows with the most entries there ever were at one time, and
// is reused, so handles that come and go cost no allocation.
#pragma once

#include <atomic>
#include <cstdlib>

#include "api/api.hpp"

namespace lanescope::levelzero::tracer {

template <class T>
class HandleMap {
public:
    HandleMap() = default;
    HandleMap(const HandleMap&) = delete;

    // Null when there is none.
    T* find(Handle key) const {
        if (count_ == 0 || key == nullptr) return nullptr;
        for (usize at = home(key);; at = (at + 1) & mask_) {
            if (entries_[at].key == key) return entries_[at].value;
            if (entries_[at].key == nullptr) return nullptr;
        }
    }

    // Adds or replaces an entry; false if out of memory.
    bool add(Handle key, T* value) {
        if (key == nullptr || (2 * (count_ + 1) > capacity() && !grow())) return false;
        usize at = home(key);
        while (entries_[at].key != nullptr && entries_[at].key != key) at = (at + 1) & mask_;
        if (entries_[at].key == nullptr) set_count(count_ + 1);
        entries_[at] = {key, value};
        return true;
    }

    // Returns what was there.
    T* remove(Handle key) {
        if (count_ == 0 || key == nullptr) return nullptr;
        usize at = home(key);
        while (entries_[at].key != key) {
            if (entries_[at].key == nullptr) return nullptr;
            at = (at + 1) & mask_;
        }
        T* value = entries_[at].value;
        // Those behind it move up, so that none is cut off from its home.
        for (usize next = (at + 1) & mask_; entries_[next].key != nullptr; next = (next + 1) & mask_) {
            if (((next - home(entries_[next].key)) & mask_) >= ((next - at) & mask_)) {
                entries_[at] = entries_[next];
                at = next;
            }
        }
        entries_[at] = {};
        set_count(count_ - 1);
        return value;
    }

    // Calls f(handle, value) for each; f must not change the map.
    template <class F>
    void each(F f) const {
        for (usize at = 0; at < capacity(); ++at) {
            if (entries_[at].key != nullptr) f(entries_[at].key, entries_[at].value);
        }
    }

    // May be asked without the lock: about how many there are.
    usize size() const { return std::atomic_ref(const_cast<usize&>(count_)).load(std::memory_order_relaxed); }

    // Forgets all, and leaves the memory to whoever else has it.
    void forget() {
        entries_ = nullptr;
        mask_ = 0;
        set_count(0);
    }

private:
    struct Entry {
        Handle key;
        T* value;
    };

    usize capacity() const { return entries_ == nullptr ? 0 : mask_ + 1; }
    usize home(Handle key) const {
        return static_cast<usize>((reinterpret_cast<u64>(key) * 0x9E3779B97F4A7C15u) >> 32) & mask_;
    }

    bool grow() {
        const usize before = capacity(), after = before == 0 ? 64 : 2 * before;
        auto* made = static_cast<Entry*>(std::calloc(after, sizeof(Entry)));
        if (made == nullptr) return false;
        Entry* old = entries_;
        entries_ = made;
        mask_ = after - 1;
        set_count(0);
        for (usize at = 0; at < before; ++at) {
            if (old[at].key != nullptr) add(old[at].key, old[at].value);
        }
        std::free(old);
        return true;
    }

    Entry* entries_ = nullptr;
    void set_count(usize count) { std::atomic_ref(count_).store(count, std::memory_order_relaxed); }

    usize mask_ = 0, count_ = 0;
};

}  // namespace lanescope::levelzero::tracer
