// Large pieces of memory that are filled, let go of and wanted again: the system clears each page that it hands out, which
// takes longer than decoding into it. What comes back is kept for the next one who asks.
#pragma once
#include <cstddef>

namespace lanescope {

class LargeMemory {
public:
    LargeMemory() = default;
    // At least so many bytes, of any content; huge pages where the system has them. Memory that is lacking raises what
    // `new` raises.
    explicit LargeMemory(size_t bytes);
    LargeMemory(const LargeMemory&) = delete;
    LargeMemory& operator=(const LargeMemory&) = delete;
    LargeMemory(LargeMemory&& other) noexcept : data_(other.data_), size_(other.size_) { other.data_ = nullptr, other.size_ = 0; }
    LargeMemory& operator=(LargeMemory&& other) noexcept;
    ~LargeMemory();

    void* data() const { return data_; }
    size_t size() const { return size_; }

    // What is kept while it is not used.
    static constexpr size_t most_kept = size_t{48} << 20;
    // Less is malloc's, which keeps it as well.
    static constexpr size_t least = size_t{1} << 20;

private:
    void* data_ = nullptr;
    size_t size_ = 0;
};

}  // namespace lanescope
