// Which functions tell more than that they were called.
#include "intercept/hooks.hpp"

#include <sched.h>

#include <string_view>

#include "api/entry_points.hpp"
#include "api/object_table.hpp"
#include "telemetry/sampler.hpp"
#include "tracer/calls/hooks.hpp"

namespace lanescope::levelzero {

std::atomic<void*> targets[way_count][function_count];
std::atomic<bool> is_device_lost{false};
std::atomic<void*> routes[way_count][function_count];

namespace {

u64 number(Handle handle) { return reinterpret_cast<u64>(handle); }
u64 number(Address address) { return reinterpret_cast<u64>(address); }
Handle handle(const Created* created) { return static_cast<Handle>(created->value); }

}  // namespace

// --- devices ----------------------------------------------------------------------------------------------------

namespace {

void emit_device(Call& call, Handle device, Handle parent) {
    const auto properties_of = call.driver<Function::zeDeviceGetProperties>();
    if (device == nullptr || properties_of == nullptr || !is_new_device(device)) return;
    DeviceProperties found{};
    found.stype = stype_device_properties_1_2;
    bool in_cycles = true;
    if (properties_of(device, &found) != success) {
        // Drivers of API 1.0 and 1.1 know the other form only: whole nanoseconds a cycle.
        found = DeviceProperties{};
        found.stype = stype_device_properties;
        in_cycles = false;
        if (properties_of(device, &found) != success) return;
    }
    char uuid[33] = {};
    for (int i = 0; i < 16; ++i) {
        uuid[2 * i] = "0123456789abcdef"[found.uuid[i] >> 4];
        uuid[2 * i + 1] = "0123456789abcdef"[found.uuid[i] & 15];
    }
    found.name[sizeof found.name - 1] = 0;
    emit<Record::device>(call.now(), number(device), number(parent), uuid, found.name, found.subdevice,
                         in_cycles ? found.timer_resolution : 1'000'000'000, in_cycles ? 1 : found.timer_resolution,
                         found.timestamp_bits, found.kernel_timestamp_bits);
}

void emit_devices(Call& call, const u32* count, const Handle* devices, Handle parent) {
    if (count == nullptr || devices == nullptr) return;
    for (u32 i = 0; i < *count; ++i) emit_device(call, devices[i], parent);
}

}  // namespace

AFTER(zeDeviceGet, Handle driver, u32* count, Handle* devices) {
    u32 version = 0;
    const auto version_of = call.driver<Function::zeDriverGetApiVersion>();
    if (version_of != nullptr && version_of(driver, reinterpret_cast<Struct>(&version)) == success) tracer::on_driver(version);
    emit_devices(call, count, devices, nullptr);
    if (count != nullptr && devices != nullptr) telemetry::on_devices(driver, call.driver<Function::zeDeviceGet>());
}
AFTER(zeDeviceGetSubDevices, Handle device, u32* count, Handle* devices) { emit_devices(call, count, devices, device); }

// --- kernels and memory -------------------------------------------------------------------------------------------

AFTER(zeKernelCreate, Handle module, const KernelDesc* desc, Created* kernel) {
    u32 simd = 0;
    if (const auto properties_of = call.driver<Function::zeKernelGetProperties>()) {
        KernelProperties found{};
        found.stype = stype_kernel_properties;
        if (properties_of(handle(kernel), &found) == success) simd = found.max_sub_group_size;
    }
    const Text name = desc == nullptr ? nullptr : desc->name;  // a driver may know better, and succeed without
    emit<Record::kernel>(call.now(), number(handle(kernel)), number(module), name, simd);
}

AFTER(zeKernelSetGroupSize, Handle kernel, u32 x, u32 y, u32 z) {
    emit<Record::kernel_group>(call.now(), number(kernel), x, y, z);
}

INSTEAD(zeKernelDestroy, Handle kernel) {
    call.start();
    const Result result = next(kernel);
    if (result == success) emit<Record::kernel_end>(call.begin, number(kernel));
    return result;
}

AFTER(zeMemAllocShared, Handle, Struct, Struct, usize size, usize, Handle, Created* made) {
    emit<Record::memory>(call.now(), number(made->value), size, Memory::shared);
}
AFTER(zeMemAllocDevice, Handle, Struct, usize size, usize, Handle, Created* made) {
    emit<Record::memory>(call.now(), number(made->value), size, Memory::device);
}
AFTER(zeMemAllocHost, Handle, Struct, usize size, usize, Created* made) {
    emit<Record::memory>(call.now(), number(made->value), size, Memory::host);
}

INSTEAD(zeMemFree, Handle context, Address memory) {
    call.start();
    const Result result = next(context, memory);
    if (result == success) emit<Record::memory_end>(call.begin, number(memory));
    return result;
}
INSTEAD(zeMemFreeExt, Handle context, Struct desc, Address memory) {
    call.start();
    const Result result = next(context, desc, memory);
    if (result == success) emit<Record::memory_end>(call.begin, number(memory));
    return result;
}

AFTER(zeModuleGetGlobalPointer, Handle module, Text, usize* size, Created* made) {
    if (size == nullptr || made == nullptr || made->value == nullptr) return;
    add_global(module, made->value);
    emit<Record::memory>(call.now(), number(made->value), *size, Memory::shared);
}

INSTEAD(zeModuleDestroy, Handle module) {
    call.start();
    const Result result = next(module);
    Address base = nullptr;
    while (result == success && remove_global(module, base)) emit<Record::memory_end>(call.begin, number(base));
    return result;
}

// --- functions that are asked for by name ---------------------------------------------------------------------------

AFTER(zeDriverGetExtensionFunctionAddress, Handle, Text name, Created* address) {
    if (name != nullptr && address != nullptr) address->value = wrapped_extension(name, address->value);
}

// --- the entry points ---------------------------------------------------------------------------------------------

void* entry(InterceptPath way, Function function) {
    static void* const entries[way_count][function_count] = {
        {
#define CALL(table, function, minor, ...) reinterpret_cast<void*>(&Entry<Function::function, InterceptPath::layer>::call),
#include "api/functions.def"
        },
        {
#define CALL(table, function, minor, ...) reinterpret_cast<void*>(&Entry<Function::function, InterceptPath::extension>::call),
#include "api/functions.def"
        },
    };
    return entries[static_cast<size_t>(way)][index(function)];
}

// --- routes -------------------------------------------------------------------------------------------------------

namespace {

struct Route {
    void *tell, *pass;   // pass: null where nothing is to be done
    bool is_collecting, is_for_timing;

    bool has_work() const {
        if (pass == nullptr || (is_for_timing && !tracer::state().options.timing)) return false;
        return !is_collecting || tracer::live_lists.load(std::memory_order_relaxed) != 0;
    }
};

template <Function F, InterceptPath W>
Route route_of() {
    using Its = Entry<F, W>;
    void* pass = nullptr;
    if constexpr (Its::is_followed) pass = reinterpret_cast<void*>(&Its::pass);
    return {reinterpret_cast<void*>(&Its::tell), pass, is_collecting<F>, is_for_timing<F>};
}

// What a route depends on changes under different locks, or none: it is chosen, and stored, by one thread at a time.
std::atomic_flag is_choosing;

struct Choosing {
    Choosing() {
        while (is_choosing.test_and_set(std::memory_order_acquire)) sched_yield();
    }
    ~Choosing() { is_choosing.clear(std::memory_order_release); }
};

void choose(InterceptPath way, size_t function) {
    static const Route all[way_count][function_count] = {
        {
#define CALL(table, function, minor, ...) route_of<Function::function, InterceptPath::layer>(),
#include "api/functions.def"
        },
        {
#define CALL(table, function, minor, ...) route_of<Function::function, InterceptPath::extension>(),
#include "api/functions.def"
        },
    };
    const auto place = static_cast<size_t>(way);
    const Route& one = all[place][function];
    void* to = targets[place][function].load(std::memory_order_relaxed);
    if (told[function].load(std::memory_order_relaxed)) {
        to = one.tell;
    } else if (one.has_work()) {
        to = one.pass;
    }
    routes[place][function].store(to, std::memory_order_release);
}

}  // namespace

void choose_route(InterceptPath way, Function function) {
    const Choosing guard;
    choose(way, index(function));
}

void choose_routes() {
    const Choosing guard;
    for (size_t i = 0; i < function_count; ++i) {
        choose(InterceptPath::layer, i);
        choose(InterceptPath::extension, i);
    }
}

void choose_collecting_routes() {
    const Choosing guard;
    for (const Function each : {Function::zeEventHostSynchronize, Function::zeEventQueryStatus}) {
        choose(InterceptPath::layer, index(each));
        choose(InterceptPath::extension, index(each));
    }
}

void choose_routes_after_fork() {
    is_choosing.clear();  // of a thread that is not there
    choose_routes();
}

// A hook whose parameters do not fit would be none.
#define TIMED(function, signal, ...) static_assert(Entry<Function::function, InterceptPath::layer>::is_replaced);
#include "tracer/readback/timed.def"
#define HOOKED(function) static_assert(Entry<Function::function, InterceptPath::layer>::is_followed);
HOOKED(zeCommandListCreate)
HOOKED(zeCommandListCreateImmediate)
HOOKED(zeCommandListCreateCloneExp)
HOOKED(zeCommandListReset)
HOOKED(zeCommandListDestroy)
HOOKED(zeCommandListBeginGraphCaptureExt)
HOOKED(zeCommandListBeginCaptureIntoGraphExt)
HOOKED(zeCommandListEndGraphCaptureExt)
HOOKED(zeCommandListAppendSignalEvent)
HOOKED(zeCommandListAppendWaitOnEvents)
HOOKED(zeCommandQueueCreate)
HOOKED(zeCommandQueueDestroy)
HOOKED(zeCommandQueueExecuteCommandLists)
HOOKED(zeCommandListImmediateAppendCommandListsExp)
HOOKED(zeCommandListImmediateAppendCommandListsWithParameters)
HOOKED(zeEventHostSynchronize)
HOOKED(zeEventQueryStatus)
HOOKED(zeCommandQueueSynchronize)
HOOKED(zeCommandListHostSynchronize)
HOOKED(zeFenceHostSynchronize)
HOOKED(zeFenceQueryStatus)
HOOKED(zeFenceReset)
HOOKED(zeFenceDestroy)
HOOKED(zeDeviceSynchronize)
HOOKED(zeEventDestroy)
HOOKED(zeEventQueryKernelTimestamp)
HOOKED(zeEventQueryTimestampsExp)
HOOKED(zeEventQueryKernelTimestampsExt)
HOOKED(zeContextDestroy)
HOOKED(zeEventPoolCreate)
HOOKED(zeEventPoolDestroy)
HOOKED(zeEventPoolGetIpcHandle)
HOOKED(zeEventCreate)
HOOKED(zeEventHostSignal)
HOOKED(zeEventHostReset)
HOOKED(zeCommandListAppendEventReset)
#undef HOOKED

bool is_recorded(Function function) {
    static constexpr bool followed[] = {
#define CALL(table, function, minor, ...) Entry<Function::function, InterceptPath::layer>::is_followed,
#include "api/functions.def"
    };
    return followed[index(function)] || is_selected(function);
}

void* wrapped_extension(Text name, void* address) {
    for (size_t i = 0; i < function_count && address != nullptr; ++i) {
        if (std::string_view(function_names[i]) != name) continue;
        const auto function = static_cast<Function>(i);
        if (!is_recorded(function)) return address;
        // Of several drivers with functions of one name, those of the first are recorded.
        void* expected = nullptr;
        auto& known = targets[static_cast<size_t>(InterceptPath::extension)][i];
        if (!known.compare_exchange_strong(expected, address) && expected != address) return address;
        choose_route(InterceptPath::extension, function);
        return entry(InterceptPath::extension, function);
    }
    return address;
}

}  // namespace lanescope::levelzero
