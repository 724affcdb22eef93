// A limit on the resident set of this process, held by a thread that needs no interpreter: work that keeps the
// interpreter's lock is measured like all other, and ends as soon.
#include <fcntl.h>
#include <malloc.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "bind/disk_memory.hpp"
#include "bind/module.hpp"
#include "bind/prompt_thread.hpp"
#include "core/source/mapped_file.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

// How often the resident set is measured, and how often at most freed memory is given back when it is too large.
using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds every{1}, relief{20};
// How often pages of files are given back before the rest is held to be too much.
constexpr int looks = 4;

// Files and folders that go when the process ends in the middle of its work.
std::mutex changing;
std::set<std::string> unfinished;

// Bytes; 0 where the system does not tell.
size_t resident_of(int statm) {
    char text[128];
    const ssize_t size = pread(statm, text, sizeof text - 1, 0);
    if (size <= 0) return 0;
    text[size] = 0;
    char* next = nullptr;
    std::strtoull(text, &next, 10);
    return std::strtoull(next, nullptr, 10) * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

// Keep a file open until the process has ended.
void keep_open(const std::filesystem::path& path) {
    (void)!open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}

// Remove a file, or a folder with all that is in it. Others work on meanwhile, and take more memory: the room of large files
// takes long to give back, so that is left to the system, which does it when the process has ended, as they are open.
void remove_at_once(const std::filesystem::path& path) {
    std::error_code ignored;
    keep_open(path);
    for (std::filesystem::recursive_directory_iterator each(path, ignored), end; !ignored && each != end; each.increment(ignored)) {
        if (each->is_regular_file(ignored)) keep_open(each->path());
    }
    std::filesystem::remove_all(path, ignored);
}

// Measures until it is destroyed, or ends the process: one thread on each processor.
class MemoryLimit {
public:
    MemoryLimit(size_t limit, std::string message, int status)
        : statm_(open("/proc/self/statm", O_RDONLY | O_CLOEXEC)), limit_(limit), message_(std::move(message)), status_(status) {
        if (resident_of(statm_) == 0) throw std::system_error(errno, std::generic_category(), "/proc/self/statm");
        for (const int processor : lanescope::bind::processors_to_measure_on()) {
            try {
                threads_.emplace_back([this, processor] {
                    lanescope::bind::stay_on(processor);
                    watch();
                });
            } catch (const std::system_error&) {
                break;  // one is enough to hold the limit
            }
        }
        if (threads_.empty()) threads_.emplace_back([this] { watch(); });
    }
    ~MemoryLimit() {
        {
            const std::lock_guard lock(mutex_);
            is_done_ = true;
        }
        done_.notify_all();
        for (std::thread& thread : threads_) thread.join();
        close(statm_);
    }
    MemoryLimit(const MemoryLimit&) = delete;
    MemoryLimit& operator=(const MemoryLimit&) = delete;

private:
    void watch() {
        // Of mapped files and of freed memory nothing is lost. What takes as much again at once is in use.
        lanescope::bind::ask_for_prompt_turns();
        std::optional<Clock::time_point> relieved;
        std::unique_lock lock(mutex_);
        while (!done_.wait_for(lock, every, [this] { return is_done_; })) {
            lock.unlock();  // the others measure meanwhile
            if (is_too_much(relieved)) end();
            lock.lock();
        }
    }

    bool is_too_much(std::optional<Clock::time_point>& relieved) const {
        if (resident_of(statm_) <= limit_ || forgets_enough()) return false;
#ifdef __GLIBC__
        if (!relieved || Clock::now() - *relieved > relief) {
            malloc_trim(0);
            relieved = Clock::now();
            if (forgets_enough()) return false;
        }
#endif
        return true;
    }

    // Whether pages of files were too much. While they are given back, others may come: one look is not enough.
    bool forgets_enough() const {
        for (int i = 0; i < looks; ++i) {
            lanescope::source::MappedFile::forget_pages();
            lanescope::bind::DiskMemory::forget_pages();
            if (resident_of(statm_) <= limit_) return true;
        }
        return false;
    }

    [[noreturn]] void end() const {
        const std::lock_guard lock(changing);  // and never given back: nothing is begun any more
        for (const std::string& path : unfinished) remove_at_once(path);
        size_t written = 0;
        while (written < message_.size()) {
            const ssize_t count = write(STDERR_FILENO, message_.data() + written, message_.size() - written);
            if (count <= 0) break;
            written += static_cast<size_t>(count);
        }
        _exit(status_);
    }

    int statm_;
    size_t limit_;
    std::string message_;
    int status_;
    std::mutex mutex_;
    std::condition_variable done_;
    bool is_done_ = false;
    std::vector<std::thread> threads_;
};

// The one limit of the process.
std::unique_ptr<MemoryLimit> limit;

}  // namespace

void lanescope::bind::memory_limit(nb::module_& m) {
    m.def(
        "limit_memory",
        [](size_t bytes, nb::bytes message, int status) {
            limit.reset();
            if (bytes != 0) limit = std::make_unique<MemoryLimit>(bytes, std::string(message.c_str(), message.size()), status);
        },
        "bytes"_a, "message"_a, "status"_a,
        "End the process as soon as its resident set is larger than so many bytes: what is unfinished is removed, the message "
        "is written to standard error, and the exit status is `status`. First pages of mapped files and freed memory are given "
        "back. 0 bytes: no limit any more. Raises OSError (RuntimeError) where the system does not tell the resident set.");
    m.def(
        "keep_unfinished",
        [](nb::bytes path, bool is_unfinished) {
            const std::lock_guard lock(changing);
            std::string name(path.c_str(), path.size());
            if (is_unfinished) unfinished.insert(std::move(name));
            else unfinished.erase(name);
        },
        "path"_a, "is_unfinished"_a,
        "Keep in mind, or forget, that a file or folder is to be removed when `limit_memory` ends the process.");
}
