// Memory in unnamed files of the temporary folder: it takes disk instead of the resident set of the process.
#pragma once
#include <cstddef>
#include <memory>
#include <string>

namespace lanescope::bind {

// Pages of a file without a name, all zeros at first. Threads give back what is resident of all of them
// together as soon as it is more than some MiB; nothing is lost by that.
class DiskMemory {
public:
    // nullptr where the folder cannot have such a file, or has too little room.
    static std::unique_ptr<DiskMemory> make(const std::string& folder, size_t bytes);
    DiskMemory(const DiskMemory&) = delete;
    DiskMemory& operator=(const DiskMemory&) = delete;
    ~DiskMemory();

    // Give back now what is resident of all of them.
    static void forget_pages();

    void* data() const { return data_; }

    // Give it to someone who frees it by its address.
    void* release() {
        void* const found = data_;
        data_ = nullptr;
        return found;
    }

private:
    explicit DiskMemory(void* data) : data_(data) {}

    void* data_;
};

// What this thread's large arrays are made of: the folder of their files, nullptr while they are in memory.
const std::string* folder_of_arrays() noexcept;
// What is not larger than this stays in memory there.
size_t least_on_disk() noexcept;

// Uninitialised room for scratch: on disk where this thread's large arrays are.
template <class T>
class ScratchMemory {
public:
    explicit ScratchMemory(size_t count) {
        const auto* folder = folder_of_arrays();
        if (folder != nullptr && count * sizeof(T) > least_on_disk()) disk_ = DiskMemory::make(*folder, count * sizeof(T));
        if (disk_ == nullptr) memory_.reset(new T[count]);
    }
    T* get() const { return disk_ == nullptr ? memory_.get() : static_cast<T*>(disk_->data()); }

private:
    std::unique_ptr<DiskMemory> disk_;
    std::unique_ptr<T[]> memory_;
};

}  // namespace lanescope::bind
