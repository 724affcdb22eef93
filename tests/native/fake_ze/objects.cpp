#include "objects.hpp"

#include <mutex>
#include <vector>

#include "driver_quirks.hpp"

namespace fake_ze {
namespace {

constexpr size_t kinds = static_cast<size_t>(Kind::metric_query) + 1;

struct Addresses {
    std::mutex mutex;
    std::vector<void*> free;
    std::vector<void*> all;  // kept, so that a leak checker sees objects of programs that never destroy them
};

Addresses& addresses(Kind kind) {
    static Addresses* const of_kind = new Addresses[kinds];
    return of_kind[static_cast<size_t>(kind)];
}

}  // namespace

const char* name_of(Kind kind) {
    static constexpr const char* names[kinds] = {"nothing", "driver", "device",    "context", "queue",
                                                 "list",    "pool",   "event",     "fence",   "module",
                                                 "build_log", "kernel", "image",   "graph",   "executable",
                                                 "metric_pool", "metric_query"};
    return names[static_cast<size_t>(kind)];
}

void* take_address(Kind kind, size_t size) {
    Addresses& of_kind = addresses(kind);
    const std::lock_guard lock(of_kind.mutex);
    if (of_kind.free.empty()) {
        char* block = static_cast<char*>(::operator new(life_size + size, std::align_val_t{life_size}));
        new (block) Life{0};
        of_kind.all.push_back(block);
        return block + life_size;
    }
    void* address = of_kind.free.back();
    of_kind.free.pop_back();
    return address;
}

void give_address(Kind kind, void* address) {
    if (!quirks().recycle) return;
    Addresses& of_kind = addresses(kind);
    const std::lock_guard lock(of_kind.mutex);
    of_kind.free.push_back(address);
}

uint64_t next_serial() {
    static std::atomic<uint64_t> last{0};
    return ++last;
}

Level& live(Kind kind) {
    static Level* const levels = [] {
        void* room = ::operator new(sizeof(Level) * kinds);
        static std::string* const names = new std::string[kinds];
        for (size_t i = 0; i < kinds; ++i) {
            names[i] = std::string("live.") + name_of(Kind(i));
            new (static_cast<Level*>(room) + i) Level(names[i].c_str());
        }
        return static_cast<Level*>(room);
    }();
    return levels[static_cast<size_t>(kind)];
}

}  // namespace fake_ze
