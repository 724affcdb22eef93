#include "bind/disk_memory.hpp"

#include <fcntl.h>
#include <nanobind/nanobind.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "bind/module.hpp"
#include "bind/prompt_thread.hpp"
#include "core/wire/long_vector.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using lanescope::bind::DiskMemory;

namespace {

// How often it is looked at how much of the files is resident, and how much may be. Pages that are in the system's cache
// come back sixteen at a time: reading here and there makes 30 MiB resident within a millisecond.
constexpr std::chrono::microseconds every{200};
constexpr size_t most_resident = size_t{24} << 20;
// What of arrays that are gone is kept for the next ones: a page of a new file takes several times as long as one of these.
constexpr size_t most_idle = size_t{128} << 20;
// The share of the folder's disk, one of so many, that stays free.
constexpr size_t free_share = 50;

// Pages of files that are resident, in bytes; 0 where the system does not tell.
size_t resident_of_files(int statm) {
    char text[128];
    const ssize_t size = pread(statm, text, sizeof text - 1, 0);
    if (size <= 0) return 0;
    text[size] = 0;
    char* next = nullptr;
    std::strtoull(text, &next, 10);
    std::strtoull(next, &next, 10);
    return std::strtoull(next, nullptr, 10) * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

// All such memory of the process, and the threads that keep it small while there is any: one on each processor, as work
// on one processor makes pages resident while a thread waits for its turn on another.
class Mapped {
public:
    void add(void* data, size_t size) {
        // On a busy machine the threads that watch may have to wait: what arrays made before is not to add up meanwhile.
        if ((made_ += size) > most_resident) forget_pages();
        const std::lock_guard lock(changing_);
        pieces_[reinterpret_cast<uintptr_t>(data)] = size;
        for (Watcher& watcher : watchers_) {
            if (watcher.is_at_work) continue;
            try {
                std::thread([this, &watcher] { watch(watcher); }).detach();
                watcher.is_at_work = true;
            } catch (const std::system_error&) {
                break;  // one is enough where the machine is not busy, and whoever makes arrays gives back, too
            }
        }
    }

    // Bytes of the piece that begins at an address; 0 where none does.
    size_t size_of(const void* data) {
        const std::shared_lock lock(changing_);
        const auto found = pieces_.find(reinterpret_cast<uintptr_t>(data));
        return found == pieces_.end() ? 0 : found->second;
    }

    void forget_pages() {
        const std::shared_lock lock(changing_);
        forget();
    }

    void remove(void* data) {
        const std::lock_guard lock(changing_);
        unmap(reinterpret_cast<uintptr_t>(data));
    }

    // A piece that is not used any more, with what was in it: the smallest that is large enough, unless most of it would be
    // idle; nullptr where there is none.
    void* take_idle(size_t bytes) {
        uintptr_t data = 0;
        size_t forgotten = 0;
        {
            const std::lock_guard lock(changing_);
            const auto found = idle_.lower_bound(bytes);
            if (found == idle_.end() || found->first / 2 > bytes) return nullptr;
            data = found->second.data;
            if (found->second.forgets != forgets_) forgotten = found->first;  // its pages come once more
            idle_size_ -= found->first;
            idle_.erase(found);
        }
        if (forgotten != 0 && (made_ += forgotten) > most_resident) forget_pages();
        return reinterpret_cast<void*>(data);
    }

    // Keep a piece for others while there is anyone who makes arrays on disk.
    void give(void* data) {
        const std::lock_guard lock(changing_);
        const auto place = reinterpret_cast<uintptr_t>(data);
        const size_t size = pieces_.find(place)->second;
        if (users_ == 0 || idle_size_ + size > most_idle) return unmap(place);
        idle_.insert({size, {place, forgets_}});
        idle_size_ += size;
    }

    void begin_use() {
        const std::lock_guard lock(changing_);
        ++users_;
    }
    void end_use() {
        const std::lock_guard lock(changing_);
        if (--users_ != 0) return;
        for (const auto& [size, piece] : idle_) unmap(piece.data);
        idle_.clear();
        idle_size_ = 0;
    }

private:
    struct Idle {
        uintptr_t data;
        size_t forgets;  // how often pages had been given back when it came
    };

    // The lock is held by no other.
    void unmap(uintptr_t data) {
        const auto found = pieces_.find(data);
        munmap(reinterpret_cast<void*>(data), found->second);
        pieces_.erase(found);
    }

    struct Watcher {
        int processor;  // -1: any
        bool is_at_work = false;
    };

    static std::vector<Watcher> watchers_of_processors() {
        std::vector<Watcher> found;
        for (const int processor : lanescope::bind::processors_to_measure_on()) found.push_back({processor});
        if (found.empty()) found.push_back({-1});
        return found;
    }

    // The lock is held, and shared: who waits for a processor in here must not keep others from giving back.
    void forget() {
        made_ = 0;
        ++forgets_;
        for (const auto& [data, size] : pieces_) madvise(reinterpret_cast<void*>(data), size, MADV_DONTNEED);
    }

    void watch(Watcher& watcher) {
        if (watcher.processor >= 0) lanescope::bind::stay_on(watcher.processor);
        lanescope::bind::ask_for_prompt_turns();
        const int statm = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
        // And of libraries, which may be loaded meanwhile. What is read while pages are given back is resident again: of the
        // last times the least is that of the others.
        std::array<size_t, 8> rest;
        rest.fill(resident_of_files(statm));
        size_t next = 0;
        while (true) {
            std::this_thread::sleep_for(every);
            {
                const std::shared_lock lock(changing_);
                if (!pieces_.empty()) {
                    const auto resident = resident_of_files(statm);
                    if (resident != 0 && resident <= *std::min_element(rest.begin(), rest.end()) + most_resident) continue;
                    forget();
                    rest[next++ % rest.size()] = resident_of_files(statm);
                    continue;
                }
            }
            const std::lock_guard lock(changing_);
            if (!pieces_.empty()) continue;
            watcher.is_at_work = false;
            break;
        }
        if (statm >= 0) close(statm);
    }

    std::shared_mutex changing_;  // alone for those who map and unmap
    std::map<uintptr_t, size_t> pieces_;
    std::multimap<size_t, Idle> idle_;  // by size
    size_t idle_size_ = 0;
    size_t users_ = 0;
    std::atomic<size_t> forgets_{0};
    std::atomic<size_t> made_{0};  // bytes that arrays were made of since pages were given back
    std::vector<Watcher> watchers_ = watchers_of_processors();
};

// Never destroyed: arrays may outlive everything else.
Mapped& mapped() {
    static Mapped* const all = new Mapped;
    return *all;
}

int unnamed_file(const std::string& folder) {
#ifdef O_TMPFILE
    const int made = open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (made >= 0) return made;
#endif
    std::string name = folder + "/lanescope-XXXXXX";
    const int file = mkostemp(name.data(), O_CLOEXEC);
    if (file >= 0) unlink(name.c_str());
    return file;
}

void* map_new_file(const std::string& folder, size_t size) {
    const int file = unnamed_file(folder);
    if (file < 0) return nullptr;
    struct statvfs disk {};
    void* found = MAP_FAILED;
    // Room is reserved, so that no page is without a place when it is written.
    const bool has_room = fstatvfs(file, &disk) == 0 &&
                          disk.f_bavail * disk.f_frsize >= size + disk.f_blocks * disk.f_frsize / free_share;
    if (has_room && posix_fallocate(file, 0, static_cast<off_t>(size)) == 0) {
        found = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    }
    close(file);
    return found == MAP_FAILED ? nullptr : found;
}

thread_local const std::string* folder = nullptr;
thread_local size_t least = 0;

// How NumPy is told where arrays get their memory from (NEP 49), as its ABI has it: no header of it is needed.
struct Allocator {
    void* of;
    void* (*malloc)(void*, size_t);
    void* (*calloc)(void*, size_t, size_t);
    void* (*realloc)(void*, void*, size_t);
    void (*free)(void*, void*, size_t);
};
struct Handler {
    char name[127];
    uint8_t version;
    Allocator allocator;
};
constexpr const char* handler_name = "mem_handler";
constexpr size_t set_handler_at = 304, get_handler_at = 305;

// Arrays of more than some bytes are files, all others what they were before.
struct ArraysOnDisk {
    Handler handler{};
    std::string in;
    size_t from = 0;
    Allocator others{};
    nb::object before;  // what has the others

    // `is_new`: whether it is all zeros.
    void* large(size_t size, bool* is_new) const {
        if (size <= from) return nullptr;
        void* const idle = mapped().take_idle(size);
        *is_new = idle == nullptr;
        if (idle != nullptr) return idle;
        auto made = DiskMemory::make(in, size);
        return made == nullptr ? nullptr : made->release();
    }

    static const ArraysOnDisk& of(void* self) { return *static_cast<const ArraysOnDisk*>(self); }

    static void* allocate(void* self, size_t size) {
        bool is_new = false;
        void* found = of(self).large(size, &is_new);
        return found != nullptr ? found : of(self).others.malloc(of(self).others.of, size);
    }
    static void* allocate_zeros(void* self, size_t count, size_t each) {
        const bool fits = each == 0 || count <= SIZE_MAX / each;
        bool is_new = false;
        void* found = fits ? of(self).large(count * each, &is_new) : nullptr;
        if (found != nullptr && !is_new) std::memset(found, 0, count * each);
        return found != nullptr ? found : of(self).others.calloc(of(self).others.of, count, each);
    }
    static void free(void* self, void* data, size_t size) {
        if (mapped().size_of(data) > 0) mapped().give(data);
        else of(self).others.free(of(self).others.of, data, size);
    }
    static void* reallocate(void* self, void* data, size_t size) {
        const auto had = mapped().size_of(data);
        if (had == 0) return of(self).others.realloc(of(self).others.of, data, size);
        if (size <= had) return data;
        void* found = allocate(self, size);
        if (found == nullptr) return nullptr;
        std::memcpy(found, data, had);
        mapped().give(data);
        return found;
    }
};

// NumPy's functions, by their places in its table.
void** numpy_table() {
    nb::object table = nb::module_::import_("numpy._core._multiarray_umath").attr("_ARRAY_API");
    void* found = PyCapsule_GetPointer(table.ptr(), nullptr);
    if (found == nullptr) nb::raise_python_error();
    return static_cast<void**>(found);
}

nb::object set_handler(const nb::object& handler) {
    auto* const set = reinterpret_cast<PyObject* (*)(PyObject*)>(numpy_table()[set_handler_at]);
    PyObject* before = set(handler.ptr());
    if (before == nullptr) nb::raise_python_error();
    return nb::steal(before);
}

class DiskArrays {
public:
    DiskArrays(nb::bytes in, size_t from) {
        auto* const get = reinterpret_cast<PyObject* (*)()>(numpy_table()[get_handler_at]);
        auto made = std::make_unique<ArraysOnDisk>();
        made->before = nb::steal(get());
        const auto* handler = static_cast<const Handler*>(PyCapsule_GetPointer(made->before.ptr(), handler_name));
        if (handler == nullptr) nb::raise_python_error();
        made->others = handler->allocator;
        made->in = std::string(in.c_str(), in.size());
        made->from = from;
        std::strncpy(made->handler.name, "lanescope_on_disk", sizeof made->handler.name - 1);
        made->handler.version = 1;
        made->handler.allocator = {made.get(), ArraysOnDisk::allocate, ArraysOnDisk::allocate_zeros,
                                   ArraysOnDisk::reallocate, ArraysOnDisk::free};
        of_ = made.get();
        // Arrays keep what they are freed by.
        PyObject* capsule = PyCapsule_New(&made->handler, handler_name, [](PyObject* self) {
            auto* const handler = static_cast<Handler*>(PyCapsule_GetPointer(self, handler_name));
            delete static_cast<ArraysOnDisk*>(handler->allocator.of);
        });
        if (capsule == nullptr) nb::raise_python_error();
        made.release();
        handler_ = nb::steal(capsule);
    }

    void enter() {
        before_ = set_handler(handler_);
        mapped().begin_use();
        outer_ = {folder, least};
        folder = &of_->in, least = of_->from;
    }
    void leave() {
        folder = outer_.first, least = outer_.second;
        if (!before_.is_valid()) return;
        set_handler(before_);
        before_.reset();
        mapped().end_use();
    }

private:
    nb::object handler_, before_;
    const ArraysOnDisk* of_ = nullptr;
    std::pair<const std::string*, size_t> outer_{};
};

}  // namespace

namespace {

// Vectors of the core are on disk where arrays are.
void* take_long(size_t bytes) {
    if (folder == nullptr || bytes <= least) return nullptr;
    if (void* const idle = mapped().take_idle(bytes)) return idle;
    auto made = DiskMemory::make(*folder, bytes);
    return made == nullptr ? nullptr : made->release();
}
bool give_long(void* data) {
    if (mapped().size_of(data) == 0) return false;
    mapped().give(data);
    return true;
}

}  // namespace

const std::string* lanescope::bind::folder_of_arrays() noexcept { return folder; }

size_t lanescope::bind::least_on_disk() noexcept { return least; }

std::unique_ptr<DiskMemory> DiskMemory::make(const std::string& folder, size_t bytes) {
    void* const found = map_new_file(folder, std::max<size_t>(bytes, 1));
    if (found == nullptr) return nullptr;
    mapped().add(found, std::max<size_t>(bytes, 1));
    return std::unique_ptr<DiskMemory>(new DiskMemory(found));
}

void DiskMemory::forget_pages() { mapped().forget_pages(); }

DiskMemory::~DiskMemory() {
    if (data_ != nullptr) mapped().remove(data_);
}

void lanescope::bind::disk_memory(nb::module_& m) {
    long_memory = {take_long, give_long, [] { return folder != nullptr; }};
    m.def("forget_disk_pages", &DiskMemory::forget_pages,
          "Give back the memory of what is resident of arrays that are on disk; nothing of them is lost.");
    nb::class_<DiskArrays>(m, "DiskArrays",
                           "NumPy arrays of this thread that are larger than some bytes are unnamed files of a folder between "
                           "`enter` and `leave`; those that are made then stay so. Where the folder has no room, they are in memory.")
        .def(nb::init<nb::bytes, size_t>(), "folder"_a, "larger_than"_a)
        .def("enter", &DiskArrays::enter)
        .def("leave", &DiskArrays::leave);
}
