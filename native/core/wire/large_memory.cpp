#include "core/wire/large_memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <new>
#include <utility>

namespace lanescope {
namespace {

constexpr size_t huge_page = size_t{2} << 20;

struct Piece {
    void* data;
    size_t size;
};

// The pieces that are not used, the one that came back last at the end.
class Kept {
public:
    // Take the smallest piece that is large enough, unless most of it would be idle.
    Piece take(size_t bytes) noexcept {
        const std::lock_guard lock(changing_);
        size_t best = count_;
        for (size_t i = 0; i < count_; ++i) {
            const bool fits = pieces_[i].size >= bytes && pieces_[i].size / 2 <= bytes;
            if (fits && (best == count_ || pieces_[i].size < pieces_[best].size)) best = i;
        }
        if (best == count_) return {nullptr, 0};
        const Piece found = pieces_[best];
        remove(best);
        return found;
    }

    void give(Piece piece) noexcept {
        const std::lock_guard lock(changing_);
        if (piece.size > LargeMemory::most_kept) return unmap(piece);
        while (count_ == most || size_ + piece.size > LargeMemory::most_kept) {
            const Piece oldest = pieces_[0];
            remove(0);
            unmap(oldest);
        }
        pieces_[count_++] = piece;
        size_ += piece.size;
    }

private:
    static constexpr size_t most = 16;

    static void unmap(Piece piece) noexcept { ::munmap(piece.data, piece.size); }

    void remove(size_t at) noexcept {
        size_ -= pieces_[at].size;
        std::move(pieces_ + at + 1, pieces_ + count_, pieces_ + at);
        --count_;
    }

    std::mutex changing_;
    Piece pieces_[most];
    size_t count_ = 0;
    size_t size_ = 0;
};

// Never destroyed: arrays may outlive everything else.
Kept& kept() {
    static Kept* const all = new Kept;
    return *all;
}

}  // namespace

LargeMemory::LargeMemory(size_t bytes) {
    if (bytes < least) {
        data_ = ::operator new(std::max<size_t>(bytes, 1));
        size_ = bytes;
        return;
    }
    const Piece found = kept().take(bytes);
    data_ = found.data, size_ = found.size;
    if (data_ != nullptr) return;
    size_ = (bytes + huge_page - 1) / huge_page * huge_page;
    // Room to begin at a huge page.
    void* const mapped = ::mmap(nullptr, size_ + huge_page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) ::operator delete(::operator new(~size_t{0} >> 1));
    auto* const from = static_cast<char*>(mapped);
    const auto before = (huge_page - reinterpret_cast<size_t>(from) % huge_page) % huge_page;
    if (before > 0) ::munmap(from, before);
    ::munmap(from + before + size_, huge_page - before);
    data_ = from + before;
#ifdef MADV_HUGEPAGE
    if (size_ >= 2 * huge_page) (void)::madvise(data_, size_, MADV_HUGEPAGE);
#endif
}

LargeMemory& LargeMemory::operator=(LargeMemory&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
}

LargeMemory::~LargeMemory() {
    if (size_ >= least) kept().give({data_, size_});
    else ::operator delete(data_);
}

}  // namespace lanescope
