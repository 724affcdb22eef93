// The objects of the device model: devices, contexts, events, lists, queues and what they hold.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "clock.hpp"
#include "objects.hpp"

namespace fake_ze {

struct Driver : Object {
    static constexpr Kind own_kind = Kind::driver;
};

struct Device : Object {
    static constexpr Kind own_kind = Kind::device;
    uint32_t number = 0;        // of the root device
    Device* root = nullptr;     // of a sub-device
    uint32_t subdevice = 0;     // its number
    std::vector<Device*> subdevices;
    Clock* clock = nullptr;     // one for the root device and its sub-devices
};

// Queue groups: 0 is compute and copy, 1 copies only. Each has one engine.
inline constexpr uint32_t engines_per_device = 2;
inline constexpr uint32_t copy_ordinal = 1;

struct Context : Object {
    static constexpr Kind own_kind = Kind::context;
    std::atomic<int64_t> objects{0};  // lists, queues and pools that live in it
};

struct Pool : Object {
    static constexpr Kind own_kind = Kind::pool;
    Ref<Context> context;
    ze_event_pool_flags_t flags = 0;
    uint32_t count = 0;
    std::atomic<int64_t> events{0};
};

struct Event : Object {
    static constexpr Kind own_kind = Kind::event;
    Ref<Pool> pool;
    Ref<Context> context;
    ze_event_scope_flags_t signal_scope = 0, wait_scope = 0;
    bool has_ticks = false;
    bool is_counter = false;              // what is submitted last to signal it is what it means
    std::atomic<uint32_t> signalled{0};
    std::atomic<uint32_t> stuck{0};       // the host sees it signalled although a reset of its own un-signalled it
    std::atomic<uint64_t> start, end;     // counter values of the last signaller, all 64 bits; start is written first
    std::atomic<uint64_t> start_ns, end_ns;
    std::atomic<Device*> device{nullptr};  // whose ticks these are
    std::atomic<int64_t> queued{0};        // submitted commands that use it and have not ended
    std::atomic<int64_t> queried{0};       // of them, those that read its ticks
    std::atomic<int64_t> recorded{0};      // commands of lists that use it
    // The graph into which a command was captured that signals it, and the graph's serial.
    std::atomic<struct Graph*> graph_address{nullptr};
    std::atomic<uint64_t> graph{0};
};

// What commands do to the order of others.
enum class Role { plain, barrier, wait };

struct Command {
    const char* api = "";  // empty: the driver's own, not for the truth
    Role role = Role::plain;
    bool is_query = false;  // an in-list timestamp query
    Ref<Event> signal;
    std::vector<Ref<Event>> waits;
    std::vector<Ref<Event>> uses;  // events that it reads or resets
    std::function<void(Device&)> effect;
    uint64_t cost = 0;  // ticks that it takes at least

    // For the truth.
    uint64_t life = 0, index = 0, bytes = 0;
    std::string kernel, mark;
    ze_group_count_t groups = {0, 0, 0};
    const void* to = nullptr;
    const void* from = nullptr;
};

// Where submitted commands queue up: a command queue, or an immediate list.
struct Stream {
    uint32_t engine = 0;  // of all devices: number * engines_per_device + ordinal
    uint64_t queue = 0;   // serial of the queue, 0 of an immediate list
    std::deque<struct Instance*> instances;
};

// What outlives a list while its commands run.
struct Lane {
    uint64_t serial = 0;
    bool immediate = false, in_order = false;
    Device* device = nullptr;
    int64_t pending = 0;  // under the scheduler's lock
};

struct List : Object {
    static constexpr Kind own_kind = Kind::list;
    Ref<Context> context;
    uint32_t ordinal = 0, index = 0;
    ze_command_list_flags_t flags = 0;
    bool synchronous = false;
    std::shared_ptr<Lane> lane;
    std::shared_ptr<Stream> stream;  // of an immediate list
    std::atomic<bool> open{true};
    std::atomic<bool> busy{false};  // a call that must have the list to itself is under way
    std::vector<std::shared_ptr<const Command>> body;
    uint64_t life = 0, appended = 0;
    std::atomic<uint64_t> runs{0};
    std::vector<std::unique_ptr<char[]>> query_storage;
    bool is_mutable = false;
    struct Graph* graph = nullptr;  // into which it is captured
};

// Commands in the order in which they were captured, which respects what each waits for.
struct Graph : Object {
    static constexpr Kind own_kind = Kind::graph;
    std::mutex mutex;
    List* primary = nullptr;
    std::vector<List*> lists;  // that are captured into it now
    std::vector<std::shared_ptr<const Command>> body;
};

struct Executable : Object {
    static constexpr Kind own_kind = Kind::executable;
    Graph* source = nullptr;
    std::vector<std::shared_ptr<const Command>> body;
    // One run at a time; it outlives the handle while a run is queued.
    std::shared_ptr<std::mutex> running = std::make_shared<std::mutex>();
};

struct Image : Object {
    static constexpr Kind own_kind = Kind::image;
    Ref<Context> context;
    size_t width = 1, height = 1, depth = 1, element = 1;  // in elements; bytes of one
    std::vector<char> bytes;
};

struct Queue : Object {
    static constexpr Kind own_kind = Kind::queue;
    Ref<Context> context;
    Device* device = nullptr;
    uint32_t ordinal = 0, index = 0;
    bool synchronous = false;
    std::shared_ptr<Stream> stream;
};

struct Fence : Object {
    static constexpr Kind own_kind = Kind::fence;
    Ref<Queue> queue;
    std::atomic<uint32_t> signalled{0};
    std::atomic<int64_t> queued{0};
};

// Commands submitted together; the last one to end signals the fence.
struct Batch {
    int64_t left;
    Ref<Fence> fence;

    Batch(int64_t number, Ref<Fence> to_signal) : left(number), fence(to_signal) {}
};

}  // namespace fake_ze
