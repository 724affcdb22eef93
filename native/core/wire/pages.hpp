// Pages of memory that is about to be filled.
#pragma once
#include <cstddef>
#include <cstdint>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace lanescope {

// Have the system provide the pages of memory that will be written whole, all in one go: a fault for each takes longer than
// most of what fills them. Its contents stay as they are; where the system cannot do so, pages come one by one as ever.
template <class T>
void provide([[maybe_unused]] T* data, [[maybe_unused]] size_t count) noexcept {
#ifdef MADV_POPULATE_WRITE
    constexpr uintptr_t page = 4096, least = 16 * page;  // less is not worth the call
    const auto from = (reinterpret_cast<uintptr_t>(data) + page - 1) & ~(page - 1);
    const auto to = reinterpret_cast<uintptr_t>(data + count) & ~(page - 1);
    if (from < to && to - from >= least) (void)madvise(reinterpret_cast<void*>(from), to - from, MADV_POPULATE_WRITE);
#endif
}

}  // namespace lanescope
