#include "world.hpp"

#include <dlfcn.h>
#include <malloc.h>

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <utility>

#include "journal.hpp"
#include "locks.hpp"
#include "fake_ze.h"

namespace {

constexpr size_t most_cells = 1024;

void add_one(const fake_ze_launch* launch) {
    std::atomic_ref(*static_cast<uint64_t*>(launch->data)).fetch_add(1, std::memory_order_relaxed);
}

std::vector<ze_event_handle_t> handles(const std::vector<const Event*>& events) {
    std::vector<ze_event_handle_t> found;
    for (const Event* event : events) found.push_back(event->handle());
    return found;
}

template <class Function>
Function extension(ze_driver_handle_t driver, const char* name) {
    void* address = nullptr;
    CHECK(zeDriverGetExtensionFunctionAddress, driver, name, &address);
    return reinterpret_cast<Function>(address);
}

}  // namespace

void wrong(const std::string& what) {
    std::printf("wrong: %s\n", what.c_str());
    write_journal();
    std::fflush(stdout);
    std::_Exit(1);
}

void check(ze_result_t result, const char* call) {
    if (result == ZE_RESULT_SUCCESS) return;
    char code[16];
    std::snprintf(code, sizeof code, "0x%x", static_cast<unsigned>(result));
    wrong(std::string(call) + " returned " + code);
}

void* newer_function(const char* name) { return dlsym(RTLD_DEFAULT, name); }

// --- events

Event::Event(World& world, std::string name, bool has_ticks, bool is_counter)
    : world_(world), name_(std::move(name)), has_ticks_(has_ticks) {
    if (is_counter) {
        constexpr uint32_t immediate_and_regular = 3;
        const fake_ze::ze_event_counter_based_desc_t counter = {
            0x00020031, nullptr, immediate_and_regular | (has_ticks ? fake_ze::counter_based_flag_device_timestamp : 0u),
            ZE_EVENT_SCOPE_FLAG_HOST, 0};
        check(NEWER(zeEventCounterBasedCreate)(world.context(), world.device(), &counter, &handle_),
              "zeEventCounterBasedCreate");
        return;
    }
    ze_event_pool_desc_t desc = {};
    desc.stype = ZE_STRUCTURE_TYPE_EVENT_POOL_DESC;
    desc.flags = ZE_EVENT_POOL_FLAG_HOST_VISIBLE;
    if (has_ticks_) desc.flags |= ZE_EVENT_POOL_FLAG_KERNEL_TIMESTAMP;
    desc.count = 1;
    ze_device_handle_t device = world.device();
    CHECK(zeEventPoolCreate, world.context(), &desc, 1, &device, &pool_);
    create();
}

Event::~Event() {
    CHECK(zeEventDestroy, handle_);
    if (pool_ != nullptr) CHECK(zeEventPoolDestroy, pool_);
}

void Event::create() {
    ze_event_desc_t desc = {};
    desc.stype = ZE_STRUCTURE_TYPE_EVENT_DESC;
    desc.signal = desc.wait = ZE_EVENT_SCOPE_FLAG_HOST;
    CHECK(zeEventCreate, pool_, &desc, &handle_);
}

void Event::sync() const { CHECK(zeEventHostSynchronize, handle_, forever); }

bool Event::is_signalled() const {
    const ze_result_t result = zeEventQueryStatus(handle_);
    if (result != ZE_RESULT_NOT_READY) check(result, "zeEventQueryStatus");
    return result == ZE_RESULT_SUCCESS;
}

void Event::poll() const {
    while (!is_signalled()) {
    }
}

void Event::reset() const { CHECK(zeEventHostReset, handle_); }
void Event::signal() const { CHECK(zeEventHostSignal, handle_); }

void Event::renew() {
    CHECK(zeEventDestroy, handle_);
    create();
}

void Event::tell_ticks(const std::string& marks, int run) const {
    const auto tell = [&](const ze_kernel_timestamp_result_t& found) {
        std::string line = "ticks " + marks + " " + std::to_string(run);
        for (const uint64_t value : {found.global.kernelStart, found.global.kernelEnd, found.context.kernelStart,
                                     found.context.kernelEnd}) {
            line += " " + std::to_string(value);
        }
        note(line);
    };
    ze_kernel_timestamp_result_t found = {};
    CHECK(zeEventQueryKernelTimestamp, handle_, &found);
    tell(found);
    uint32_t count = 1;
    found = {};
    CHECK(zeEventQueryTimestampsExp, handle_, world_.device(), &count, &found);
    if (count != 1) wrong("one timestamp");
    tell(found);
    if (auto* ask = NEWER(zeEventQueryKernelTimestampsExt)) {
        count = 1;
        found = {};
        fake_ze::ze_event_query_kernel_timestamps_results_ext_properties_t results = {0, nullptr, &found, nullptr};
        const ze_result_t code = ask(handle_, world_.device(), &count, &results);
        if (code == ZE_RESULT_ERROR_UNSUPPORTED_FEATURE) return;  // an older driver
        check(code, "zeEventQueryKernelTimestampsExt");
        tell(found);
    }
}

// --- lists

Work::Work(World& world, std::string name, Shape shape, ze_context_handle_t context, uint32_t flags,
           const void* chain, ze_device_handle_t device)
    : world_(world), name_(std::move(name)), shape_(shape) {
    const uint32_t group = shape.compute ? 0 : 1;
    if (context == nullptr) context = world.context();
    if (device == nullptr) device = world.device();
    ze_command_queue_desc_t queue = {};
    queue.stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC;
    queue.ordinal = group;
    queue.mode = shape.synchronous ? ZE_COMMAND_QUEUE_MODE_SYNCHRONOUS : ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS;
    if (shape.immediate) {
        if (shape.in_order) queue.flags |= fake_ze::queue_flag_in_order;
        CHECK(zeCommandListCreateImmediate, context, device, &queue, &list_);
        return;
    }
    if (shape.in_order) flags |= fake_ze::list_flag_in_order;
    const ze_command_list_desc_t list = {ZE_STRUCTURE_TYPE_COMMAND_LIST_DESC, chain, group, flags};
    CHECK(zeCommandListCreate, context, device, &list, &list_);
    CHECK(zeCommandQueueCreate, context, device, &queue, &queue_);
    owns_queue_ = true;
}

Work::~Work() { destroy(); }

void Work::destroy() {
    if (list_ != nullptr) CHECK(zeCommandListDestroy, std::exchange(list_, nullptr));
    if (owns_queue_) CHECK(zeCommandQueueDestroy, std::exchange(queue_, nullptr));
    owns_queue_ = false;
}

void Work::use_queue(const Work& other) {
    if (owns_queue_) CHECK(zeCommandQueueDestroy, queue_);
    owns_queue_ = false;
    queue_ = other.queue_;
}

void Work::mark(const std::string& mark) const { world_.mark(mark); }

void Work::appended(const std::string& mark, const char* api, bool has_signal, const std::string& kernel,
                    uint32_t groups) const {
    world_.mark("");  // if the driver was never asked
    note("op " + thread_number() + " " + mark + " " + name_ + " " + std::to_string(life_) + " " +
         (shape_.compute ? "compute" : "copy") + " " + (has_signal ? "1" : "0") + " " + api + " " + kernel + " " +
         std::to_string(groups));
}

void Work::op(const std::string& mark, const Event* signal, std::vector<const Event*> waits, std::string cell) {
    if (cell.empty()) cell = mark;
    auto wait_handles = handles(waits);
    const auto count = static_cast<uint32_t>(wait_handles.size());
    ze_event_handle_t signal_handle = signal == nullptr ? nullptr : signal->handle();
    if (shape_.compute) {
        const ze_group_count_t groups = {world_.groups(cell), 1, 1};
        ze_kernel_handle_t kernel = world_.kernel(cell);
        world_.mark(mark);
        CHECK(zeCommandListAppendLaunchKernel, list_, kernel, &groups, signal_handle, count, wait_handles.data());
        appended(mark, "zeCommandListAppendLaunchKernel", signal != nullptr, "op_" + cell, groups.groupCountX);
    } else {
        uint64_t* target = world_.cell(cell);
        world_.mark(mark);
        CHECK(zeCommandListAppendMemoryCopy, list_, target, world_.one(), sizeof *target, signal_handle, count,
              wait_handles.data());
        appended(mark, "zeCommandListAppendMemoryCopy", signal != nullptr);
    }
}

void Work::barrier(const std::string& mark, const Event* signal, std::vector<const Event*> waits) {
    auto wait_handles = handles(waits);
    world_.mark(mark);
    CHECK(zeCommandListAppendBarrier, list_, signal == nullptr ? nullptr : signal->handle(),
          static_cast<uint32_t>(wait_handles.size()), wait_handles.data());
    appended(mark, "zeCommandListAppendBarrier", signal != nullptr);
}

void Work::signal(const Event& event) {
    world_.mark("-signal");
    CHECK(zeCommandListAppendSignalEvent, list_, event.handle());
}

void Work::wait_on(std::vector<const Event*> events) {
    auto found = handles(events);
    world_.mark("-wait");
    CHECK(zeCommandListAppendWaitOnEvents, list_, static_cast<uint32_t>(found.size()), found.data());
}

void Work::reset_event(const Event& event) {
    world_.mark("-reset");
    CHECK(zeCommandListAppendEventReset, list_, event.handle());
}

void Work::close() { CHECK(zeCommandListClose, list_); }
void Work::execute(ze_fence_handle_t fence) {
    CHECK(zeCommandQueueExecuteCommandLists, queue_, 1, &list_, fence);
}

void Work::submit() {
    if (shape_.immediate) return;
    close();
    execute();
}

void Work::sync() {
    if (!shape_.immediate) {
        CHECK(zeCommandQueueSynchronize, queue_, forever);
        return;
    }
    static const auto wait = NEWER(zeCommandListHostSynchronize);
    if (wait != nullptr) {
        const ze_result_t code = wait(list_, forever);
        if (code != ZE_RESULT_ERROR_UNSUPPORTED_FEATURE) {
            check(code, "zeCommandListHostSynchronize");
            return;
        }
    }
    // Older than API 1.6: an event behind all that there is.
    const Event behind(world_, "sync", false);
    barrier(name_ + ":sync" + std::to_string(syncs_++), &behind);
    behind.sync();
}

void Work::reset() {
    CHECK(zeCommandListReset, list_);
    ++life_;
}

void Work::next() {
    sync();
    if (!shape_.immediate) reset();
}

// --- the world

World::World() {
    CHECK(zeInit, 0);
    uint32_t one = 1;
    CHECK(zeDriverGet, &one, &driver_);
    one = 1;
    CHECK(zeDeviceGet, driver_, &one, &device_);
    mark_ = extension<decltype(mark_)>(driver_, "fake_ze_mark");
    lose_ = extension<decltype(lose_)>(driver_, "fake_ze_lose");
    stat_ = extension<decltype(stat_)>(driver_, "fake_ze_stat");
    register_ = extension<decltype(register_)>(driver_, "fake_ze_register_kernel");
    watch_locks(extension<void (*)(void (*)(const char*))>(driver_, "fake_ze_on_call"));
    context_ = another_context();
    cells_ = static_cast<uint64_t*>(memory((most_cells + 1) * sizeof(uint64_t)));
    for (size_t i = 0; i < most_cells; ++i) cells_[i] = 0;
    one_ = cells_ + most_cells;
    *one_ = 1;
}

World::~World() {
    for (const auto& [name, cell] : by_name_) {
        std::printf("%s ran %llu\n", name.c_str(), static_cast<unsigned long long>(count(name)));
        if (cell.kernel != nullptr) CHECK(zeKernelDestroy, cell.kernel);
        if (cell.module != nullptr) CHECK(zeModuleDestroy, cell.module);
    }
    for (void* pointer : memory_) CHECK(zeMemFree, context_, pointer);
    CHECK(zeContextDestroy, context_);
}

std::vector<ze_device_handle_t> World::devices() const {
    uint32_t count = 0;
    CHECK(zeDeviceGet, driver_, &count, nullptr);
    std::vector<ze_device_handle_t> roots(count), found;
    CHECK(zeDeviceGet, driver_, &count, roots.data());
    for (ze_device_handle_t root : roots) {
        found.push_back(root);
        CHECK(zeDeviceGetSubDevices, root, &(count = 0), nullptr);
        if (count == 0) continue;
        std::vector<ze_device_handle_t> parts(count);
        CHECK(zeDeviceGetSubDevices, root, &count, parts.data());
        found.insert(found.end(), parts.begin(), parts.end());
    }
    return found;
}

ze_context_handle_t World::another_context() const {
    const ze_context_desc_t desc = {ZE_STRUCTURE_TYPE_CONTEXT_DESC, nullptr, 0};
    ze_context_handle_t context;
    CHECK(zeContextCreate, driver_, &desc, &context);
    return context;
}

World::Cell& World::find(const std::string& name) {
    const auto at = by_name_.find(name);
    if (at != by_name_.end()) return at->second;
    const size_t number = by_name_.size();
    if (number == most_cells) wrong("too many cells");
    return by_name_[name] = {cells_ + number, nullptr, nullptr, 1 + static_cast<uint32_t>(number % 7)};
}

ze_kernel_handle_t World::kernel(const std::string& name) {
    Cell& cell = find(name);
    if (cell.kernel != nullptr) return cell.kernel;
    const std::string full = "op_" + name;
    register_(full.c_str(), add_one, cell.value, 20);
    ze_module_desc_t desc = {};
    desc.stype = ZE_STRUCTURE_TYPE_MODULE_DESC;
    desc.format = ZE_MODULE_FORMAT_IL_SPIRV;
    desc.inputSize = full.size();
    desc.pInputModule = reinterpret_cast<const uint8_t*>(full.data());
    CHECK(zeModuleCreate, context_, device_, &desc, &cell.module, nullptr);
    const ze_kernel_desc_t kernel = {ZE_STRUCTURE_TYPE_KERNEL_DESC, nullptr, 0, full.c_str()};
    CHECK(zeKernelCreate, cell.module, &kernel, &cell.kernel);
    return cell.kernel;
}

void World::destroy_kernel(const std::string& name) {
    CHECK(zeKernelDestroy, std::exchange(find(name).kernel, nullptr));
    CHECK(zeModuleDestroy, std::exchange(find(name).module, nullptr));
}

uint64_t* World::cell(const std::string& name) { return find(name).value; }
uint32_t World::groups(const std::string& name) { return find(name).groups; }

void World::prepare(const std::vector<std::string>& cells) {
    for (const auto& name : cells) kernel(name);
}

uint64_t World::count(const std::string& name) {
    return std::atomic_ref(*find(name).value).load(std::memory_order_acquire);
}

void World::clear(const std::string& name) { std::atomic_ref(*find(name).value).store(0, std::memory_order_release); }

void World::done(std::initializer_list<const char*> cells) {
    for (const char* name : cells) {
        if (count(name) == 0) wrong(std::string("told that ") + name + " has ended before it ran");
    }
}

void World::not_done(std::initializer_list<const char*> cells) {
    for (const char* name : cells) {
        if (count(name) != 0) wrong(std::string(name) + " ran too early");
    }
}

void World::due(std::initializer_list<std::string> marks, int run) {
    thread_local int number = 0;
    ze_api_version_t version;
    CHECK(zeDriverGetApiVersion, driver_, &version);
    for (const auto& mark : marks) {
        note("due " + thread_number() + " " + std::to_string(number) + " " + mark + " " + std::to_string(run));
    }
    ++number;
}

void World::mark(const std::string& text) const { mark_(text.c_str()); }
uint64_t World::stat(const char* name) const { return stat_(name); }

void World::tell_levels(const char* stage) const {
    for (const char* name : {"live.event", "live.pool", "live.list", "memory.host", "query_bytes"}) {
        note(std::string("level ") + stage + " " + name + " " + std::to_string(stat(name)));
    }
    note(std::string("level ") + stage + " heap " + std::to_string(mallinfo2().uordblks - noted()));
}

void* World::memory(size_t bytes) {
    const ze_host_mem_alloc_desc_t desc = {ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC, nullptr, 0};
    void* pointer = nullptr;
    CHECK(zeMemAllocHost, context_, &desc, bytes, 64, &pointer);
    memory_.push_back(pointer);
    return pointer;
}
