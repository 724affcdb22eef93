#include "core/source/mapped_file.hpp"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <mutex>
#include <shared_mutex>

namespace lanescope::source {
namespace {

// Mappings that the handler of SIGBUS knows. A handler may neither lock nor allocate, so the table is of a fixed size.
struct Watched {
    std::atomic<uintptr_t> begin{0}, end{0};
    std::atomic<FileWatch*> watch{nullptr};
};
constexpr size_t kMost = 32;
Watched watched[kMost];
// Shared by those who give pages back: one of them that waits for a processor must not keep the others from it.
std::shared_mutex changing;
struct sigaction before;
size_t page_size = 4096;

// Reading behind the end of a file that became shorter raises SIGBUS. The page becomes one of zeros, at which every reader
// of text stops, and the watch keeps it in mind. Of any other address the signal is left to whoever handled it before.
void on_bus_error(int, siginfo_t* info, void*) {
    const auto at = reinterpret_cast<uintptr_t>(info->si_addr);
    for (Watched& one : watched) {
        if (at < one.begin || at >= one.end) continue;
        void* page = reinterpret_cast<void*>(at / page_size * page_size);
        if (mmap(page, page_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED) break;
        if (FileWatch* watch = one.watch) watch->is_shorter = true;
        return;
    }
    sigaction(SIGBUS, &before, nullptr);  // the instruction runs again, and faults again
}

bool handle_bus_errors() {
    struct sigaction now {};
    if (sigaction(SIGBUS, nullptr, &now) != 0) return false;
    if ((now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == on_bus_error) return true;
    before = now;
    struct sigaction mine {};
    mine.sa_sigaction = on_bus_error;
    mine.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&mine.sa_mask);
    return sigaction(SIGBUS, &mine, nullptr) == 0;
}

}  // namespace

std::unique_ptr<MappedFile> MappedFile::map(int descriptor, size_t size) {
    const std::lock_guard lock(changing);
    page_size = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    size_t place = 0;
    while (place < kMost && watched[place].begin != 0) ++place;
    if (place == kMost || size == 0 || !handle_bus_errors()) return nullptr;
    // Of a file that fills its last page the byte behind it is on a page of its own.
    const size_t mapped = (size / page_size + 1) * page_size;
    void* pages = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (pages == MAP_FAILED) return nullptr;
    if (mmap(pages, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, descriptor, 0) == MAP_FAILED) {
        munmap(pages, mapped);
        return nullptr;
    }
    madvise(pages, size, MADV_SEQUENTIAL);
    std::unique_ptr<MappedFile> made(new MappedFile);
    made->pages_ = static_cast<char*>(pages);
    made->size_ = size;
    made->mapped_ = mapped;
    made->place_ = place;
    made->watch_ = std::make_shared<FileWatch>();
    watched[place].watch = made->watch_.get();
    watched[place].end = reinterpret_cast<uintptr_t>(pages) + mapped;
    watched[place].begin = reinterpret_cast<uintptr_t>(pages);
    // Makes the last page private: what a writer appends does not show up behind the content.
    *static_cast<volatile char*>(made->pages_ + size) = 0;
    return made;
}

void MappedFile::forget_pages() {
    const std::shared_lock lock(changing);
    for (const Watched& one : watched) {
        // All but the last page, which is private: no reader writes to the others.
        const uintptr_t begin = one.begin, end = one.end;
        if (end > begin + page_size) madvise(reinterpret_cast<void*>(begin), end - begin - page_size, MADV_DONTNEED);
    }
}

MappedFile::~MappedFile() {
    const std::lock_guard lock(changing);
    // Forgotten first: what the system puts at these addresses next is not ours.
    Watched& mine = watched[place_];
    mine.end = 0;
    mine.watch = nullptr;
    munmap(pages_, mapped_);
    mine.begin = 0;
}

}  // namespace lanescope::source
