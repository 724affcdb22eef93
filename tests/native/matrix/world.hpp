// What the programs of the matrix are made of: a context with its events, and command lists whose operations leave
// something behind that shows whether they ran.
#pragma once

#include <level_zero/ze_api.h>

#include <atomic>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "api_versions.hpp"

inline constexpr uint64_t forever = UINT64_MAX;

// End the program, unsuccessfully.
[[noreturn]] void wrong(const std::string& what);
void check(ze_result_t result, const char* call);
#define CHECK(function, ...) check(function(__VA_ARGS__), #function)

// A function of API 1.6 or newer; null if the loader here is older.
void* newer_function(const char* name);
#define NEWER(function) reinterpret_cast<decltype(&fake_ze::function)>(newer_function(#function))

// How a list works.
struct Shape {
    bool immediate = true, in_order = false, compute = true, synchronous = false;

    Shape on(bool on_compute) const { return {immediate, in_order, on_compute, synchronous}; }
};
inline constexpr Shape unordered = {true, false, true, false};

class World;

class Event {
public:
    // `is_counter`: one that is never reset, and means what was last submitted to signal it.
    Event(World& world, std::string name, bool has_ticks, bool is_counter = false);
    ~Event();
    Event(const Event&) = delete;

    ze_event_handle_t handle() const { return handle_; }
    const std::string& name() const { return name_; }
    bool has_ticks() const { return has_ticks_; }

    void sync() const;                          // wait
    void poll() const;                          // ask until it is signalled
    bool is_signalled() const;                  // ask once
    void reset() const;
    void signal() const;
    void renew();                               // destroy it and create another one, with the same handle as a rule
    // Ask for its timestamps: they must be those of the command of `marks` (one, or several with commas) that ended last.
    void tell_ticks(const std::string& marks, int run = 1) const;

private:
    void create();

    World& world_;
    std::string name_;
    bool has_ticks_;
    ze_event_pool_handle_t pool_ = nullptr;  // null: it has a counter
    ze_event_handle_t handle_ = nullptr;
};

// A command list, and if it is regular the queue that executes it.
class Work {
public:
    Work(World& world, std::string name, Shape shape, ze_context_handle_t context = nullptr, uint32_t flags = 0,
         const void* extension = nullptr, ze_device_handle_t device = nullptr);
    ~Work();
    Work(const Work&) = delete;

    // An operation, called `mark` in the truth. It adds 1 to the cell called `cell` (on the copy engine: makes it 1).
    void op(const std::string& mark, const Event* signal = nullptr, std::vector<const Event*> waits = {},
            std::string cell = "");
    void barrier(const std::string& mark, const Event* signal = nullptr, std::vector<const Event*> waits = {});
    void signal(const Event& event);            // these take no time
    void wait_on(std::vector<const Event*> events);
    void reset_event(const Event& event);

    void close();
    void execute(ze_fence_handle_t fence = nullptr);
    void submit();                              // regular: close and execute
    void sync();                                // wait for all that was submitted
    void reset();                               // regular: begin a new life
    void next();                                // sync, and if it is regular begin a new life
    void destroy();

    ze_command_list_handle_t handle() const { return list_; }
    ze_command_queue_handle_t queue() const { return queue_; }
    const Shape& shape() const { return shape_; }
    // Have it executed by the queue of another one.
    void use_queue(const Work& other);
    // Note that a command was appended in another way; before it, mark().
    void mark(const std::string& mark) const;
    void appended(const std::string& mark, const char* api, bool has_signal, const std::string& kernel = "-",
                  uint32_t groups = 0) const;

private:
    World& world_;
    std::string name_;
    Shape shape_;
    ze_command_list_handle_t list_ = nullptr;
    ze_command_queue_handle_t queue_ = nullptr;
    bool owns_queue_ = false;
    int life_ = 0, syncs_ = 0;
};

class World {
public:
    World();
    ~World();  // prints what the cells hold, destroys all
    World(const World&) = delete;

    ze_driver_handle_t driver() const { return driver_; }
    ze_device_handle_t device() const { return device_; }
    // All root devices, each followed by its sub-devices.
    std::vector<ze_device_handle_t> devices() const;
    // Lose the device; whether questions for a status do not notice.
    void lose(bool is_silent) const { lose_(is_silent ? 1 : 0); }
    ze_context_handle_t context() const { return context_; }
    ze_context_handle_t another_context() const;

    // The kernel of a cell, and the cell. Made at the first call, so threads must find them made.
    ze_kernel_handle_t kernel(const std::string& cell);
    uint64_t* cell(const std::string& cell);
    const uint64_t* one() const { return one_; }
    uint32_t groups(const std::string& cell);
    void prepare(const std::vector<std::string>& cells);
    // Forget the kernel of a cell: the next one may get its handle.
    void destroy_kernel(const std::string& cell);

    uint64_t count(const std::string& cell);
    // Every operation of these cells has run by now, or none.
    void done(std::initializer_list<const char*> cells);
    void not_done(std::initializer_list<const char*> cells);
    void clear(const std::string& cell);

    // By now this thread has seen these commands end: their results must have been recorded.
    void due(std::initializer_list<std::string> marks, int run = 1);

    void mark(const std::string& text) const;
    uint64_t stat(const char* name) const;
    // Note the driver's levels and the heap.
    void tell_levels(const char* stage) const;
    // A host allocation of the program's.
    void* memory(size_t bytes);

private:
    struct Cell {
        uint64_t* value;
        ze_module_handle_t module;
        ze_kernel_handle_t kernel;
        uint32_t groups;
    };
    Cell& find(const std::string& name);

    ze_driver_handle_t driver_;
    ze_device_handle_t device_;
    ze_context_handle_t context_;
    uint64_t* cells_;
    uint64_t* one_;
    std::map<std::string, Cell> by_name_;
    std::vector<void*> memory_;
    void (*mark_)(const char*);
    void (*lose_)(int);
    uint64_t (*stat_)(const char*);
    void (*register_)(const char*, void (*)(const struct fake_ze_launch*), void*, uint64_t);
};
