// Arrays that grow at their end: what is there moves by pages where the system can, and a caller may take the memory.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <new>
#include <utility>

namespace lanescope {

template <class T>
class Growing {
public:
    Growing() = default;
    Growing(const Growing&) = delete;
    Growing& operator=(const Growing&) = delete;
    Growing(Growing&& other) noexcept
        : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)), room_(std::exchange(other.room_, 0)) {}
    ~Growing() { std::free(data_); }

    void push_back(T value) {
        if (size_ == room_) [[unlikely]] grow();
        data_[size_++] = value;
    }
    void reserve(size_t room) {
        if (room > room_) make_room(room);
    }
    size_t size() const { return size_; }
    bool empty() const { return size_ == 0; }
    T& operator[](size_t i) { return data_[i]; }
    const T& operator[](size_t i) const { return data_[i]; }
    T* data() { return data_; }

    // Return the memory, to be freed by `free`, and how many values are in it.
    std::pair<T*, size_t> release() {
        room_ = 0;
        return {std::exchange(data_, nullptr), std::exchange(size_, 0)};
    }

private:
    void grow() { make_room(std::max<size_t>(64, room_ + room_ / 2)); }
    void make_room(size_t room) {
        void* const moved = std::realloc(data_, room * sizeof(T));
        if (moved == nullptr) ::operator delete(::operator new(~size_t{0} >> 1));  // raises what running out of memory raises
        data_ = static_cast<T*>(moved);
        room_ = room;
    }

    T* data_ = nullptr;
    size_t size_ = 0;
    size_t room_ = 0;
};

}  // namespace lanescope
