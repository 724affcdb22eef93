// Arrays that grow at their end; a caller may take the memory. Large ones lie in huge pages, where the system has some: a
// fault for each small page costs more than what fills it. They grow by moving their pages, not their bytes. Where the
// memory of a process is limited, they are on disk.
#pragma once
#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "core/wire/long_vector.hpp"

namespace lanescope {

// Memory without an owner: the one who has it frees it.
struct Memory {
    static constexpr size_t kLong = ~size_t{0};

    void* data = nullptr;
    size_t mapped = 0;  // bytes; 0: of malloc; `kLong`: of `long_memory`

    bool is_mapped() const { return mapped != 0 && mapped != kLong; }
    void free() const {
        if (mapped == kLong) {
            long_memory.give(data);
        } else if (is_mapped()) {
            ::munmap(data, mapped);
        } else {
            std::free(data);
        }
    }
};

template <class T>
class Growing {
public:
    Growing() = default;
    Growing(const Growing&) = delete;
    Growing& operator=(const Growing&) = delete;
    Growing(Growing&& other) noexcept
        : data_(std::exchange(other.data_, nullptr)), mapped_(std::exchange(other.mapped_, 0)),
          size_(std::exchange(other.size_, 0)), room_(std::exchange(other.room_, 0)), expected_(other.expected_),
          is_clear_(std::exchange(other.is_clear_, false)) {}
    ~Growing() { memory().free(); }

    void push_back(T value) {
        if (size_ == room_) [[unlikely]] grow();
        data_[size_++] = value;
    }
    // For columns of one length: the first one's `is_full` tells when to `grow` all, then each takes a value.
    bool is_full() const { return size_ == room_; }
    void grow(size_t least = 0) {
        const size_t room = std::max<size_t>({kFirst, 2 * room_, least});
        if (make_long_room(room)) return;
        const bool is_limited = long_memory.is_wanted != nullptr && long_memory.is_wanted();
        make_room(is_limited ? room : std::max(room, expected_));
    }
    void push_within(T value) { data_[size_++] = value; }
    // A zero for such a column: the system's memory has it already, so that pages of nothing else are never taken.
    void push_zero_within() {
        if (!is_clear_) data_[size_] = T{};
        ++size_;
    }
    size_t room() const { return room_; }
    void append(const T* values, size_t count) {
        if (count > room_ - size_) [[unlikely]] grow(size_ + count);
        if (count != 0) std::memcpy(data_ + size_, values, count * sizeof(T));
        size_ += count;
    }
    // The same of bytes behind which 16 of any kind may be read: few are moved as 16.
    void append_slack(const T* values, size_t count)
        requires(sizeof(T) == 1)
    {
        if (count > 16 || room_ - size_ < 16) [[unlikely]] return append(values, count);
        std::memcpy(data_ + size_, values, 16);
        size_ += count;
        is_clear_ = false;
    }
    // So many values may come: address space for them is taken at once, memory only as they do, and disk, too.
    void expect(size_t count) { expected_ = count * sizeof(T) < kLarge ? 0 : count; }
    void fill_up(size_t count, T value) {
        while (size_ < count) push_back(value);
    }
    void shorten(size_t count) {
        is_clear_ = is_clear_ && count >= size_;
        size_ = std::min(size_, count);
    }
    size_t size() const { return size_; }
    bool empty() const { return size_ == 0; }
    T& operator[](size_t i) { return data_[i]; }
    const T& operator[](size_t i) const { return data_[i]; }
    T& back() { return data_[size_ - 1]; }
    T* data() { return data_; }
    const T* data() const { return data_; }

    // Return the memory and how many values are in it. What lies behind them is given back: a huge page came whole.
    std::pair<Memory, size_t> release() {
        constexpr size_t page = 4096;
        const size_t used = std::max((size_ * sizeof(T) + page - 1) / page * page, page);
        const bool has_more = memory().is_mapped() && mapped_ > used;
        if (has_more && ::munmap(reinterpret_cast<char*>(data_) + used, mapped_ - used) == 0) mapped_ = used;
        room_ = 0;
        is_clear_ = false;
        return {Memory{std::exchange(data_, nullptr), std::exchange(mapped_, 0)}, std::exchange(size_, 0)};
    }

private:
    static constexpr size_t kFirst = 64;
    static constexpr size_t kPage = size_t{2} << 20;
    static constexpr size_t kLarge = kPage / 2;

    Memory memory() const { return {data_, mapped_}; }

    // Raise what running out of memory raises.
    static void fail() { ::operator delete(::operator new(~size_t{0} >> 1)); }

    // Address space that begins where a huge page may.
    static void* space(size_t bytes) {
        void* const found =
            ::mmap(nullptr, bytes + kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (found == MAP_FAILED) fail();
        char* const from = static_cast<char*>(found);
        const size_t before = (kPage - reinterpret_cast<uintptr_t>(from) % kPage) % kPage;
        if (before != 0) ::munmap(from, before);
        ::munmap(from + before + bytes, kPage - before);
#ifdef MADV_HUGEPAGE
        (void)::madvise(from + before, bytes, MADV_HUGEPAGE);
#endif
        return from + before;
    }

    // Whether the memory is limited, and there is disk for so many.
    bool make_long_room(size_t room) {
        if (long_memory.take == nullptr || room * sizeof(T) < kLarge) return false;
        void* const found = long_memory.take(room * sizeof(T));
        if (found == nullptr) return false;
        if (size_ != 0) std::memcpy(found, data_, size_ * sizeof(T));
        memory().free();
        data_ = static_cast<T*>(found);
        mapped_ = Memory::kLong;
        room_ = room;
        is_clear_ = false;  // it may be what another array had
        return true;
    }

    void make_room(size_t room) {
        const size_t bytes = room * sizeof(T);
        if (bytes < kLarge) {  // and so was what there is
            void* const moved = std::realloc(data_, bytes);
            if (moved == nullptr) fail();
            data_ = static_cast<T*>(moved);
            room_ = room;
            return;
        }
        const size_t wanted = (bytes + kPage - 1) / kPage * kPage;
        void* found = space(wanted);
        const bool was_mapped = memory().is_mapped();
#ifdef MREMAP_FIXED
        if (was_mapped) {
            if (::mremap(data_, mapped_, mapped_, MREMAP_MAYMOVE | MREMAP_FIXED, found) == MAP_FAILED) fail();
            mapped_ = 0;
            data_ = nullptr;
        }
#endif
        if (data_ != nullptr) {
            if (size_ != 0) std::memcpy(found, data_, size_ * sizeof(T));
            memory().free();
        }
        // What was shortened may still stand where it moved from.
        is_clear_ = is_clear_ || !was_mapped;
        data_ = static_cast<T*>(found);
        mapped_ = wanted;
        room_ = wanted / sizeof(T);
    }

    T* data_ = nullptr;
    size_t mapped_ = 0;
    size_t size_ = 0;
    size_t room_ = 0;
    size_t expected_ = 0;
    bool is_clear_ = false;  // whether all behind the values is zero
};

}  // namespace lanescope
