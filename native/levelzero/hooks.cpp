// Which functions tell more than that they were called.
#include "hooks.hpp"

#include <string_view>

#include "entries.hpp"
#include "objects.hpp"

namespace lanescope::levelzero {

std::atomic<void*> targets[way_count][function_count];

namespace {

u64 number(Handle handle) { return reinterpret_cast<u64>(handle); }
u64 number(Address address) { return reinterpret_cast<u64>(address); }
Handle handle(const Created* created) { return static_cast<Handle>(created->value); }

}  // namespace

// AFTER(function, parameters) { ... }: what is done once the driver has succeeded.
#define AFTER(F, ...)                           \
    template <>                                 \
    struct Hook<Function::F> {                  \
        static void after(Call& call, __VA_ARGS__); \
    };                                          \
    inline void Hook<Function::F>::after([[maybe_unused]] Call& call, __VA_ARGS__)
// INSTEAD(function, parameters) { ... }: what is done in place of the driver's function, which is `next`.
#define INSTEAD(F, ...)                                                         \
    template <>                                                                 \
    struct Hook<Function::F> {                                                  \
        static Result call(Call& call, Pointer<Function::F> next, __VA_ARGS__); \
    };                                                                          \
    inline Result Hook<Function::F>::call([[maybe_unused]] Call& call, Pointer<Function::F> next, __VA_ARGS__)

// --- devices ----------------------------------------------------------------------------------------------------

namespace {

void tell_device(Call& call, Handle device, Handle parent) {
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

void tell_devices(Call& call, const u32* count, const Handle* devices, Handle parent) {
    if (count == nullptr || devices == nullptr) return;
    for (u32 i = 0; i < *count; ++i) tell_device(call, devices[i], parent);
}

}  // namespace

AFTER(zeDeviceGet, Handle, u32* count, Handle* devices) { tell_devices(call, count, devices, nullptr); }
AFTER(zeDeviceGetSubDevices, Handle device, u32* count, Handle* devices) { tell_devices(call, count, devices, device); }

// --- queues and lists ---------------------------------------------------------------------------------------------

AFTER(zeCommandQueueCreate, Handle, Handle device, const QueueDesc* desc, Created* queue) {
    emit<Record::queue>(call.now(), number(handle(queue)), number(device), desc->ordinal, desc->index);
}

namespace {

void tell_list(u64 now, Handle list, const List& known) {
    if (known.id == 0) return;
    emit<Record::list>(now, known.id, number(list), number(known.context), number(known.device), known.ordinal,
                       known.index, static_cast<u8>(known.immediate), static_cast<u8>(known.in_order));
}

}  // namespace

AFTER(zeCommandListCreate, Handle context, Handle device, const ListDesc* desc, Created* list) {
    const bool in_order = (desc->flags & list_in_order) != 0;
    const List made{0, 0, context, device, desc->ordinal, 0, false, in_order};
    tell_list(call.now(), handle(list), add_list(handle(list), made));
}

AFTER(zeCommandListCreateImmediate, Handle context, Handle device, const QueueDesc* desc, Created* list) {
    const bool in_order = (desc->flags & queue_in_order) != 0;
    const List made{0, 0, context, device, desc->ordinal, desc->index, true, in_order};
    tell_list(call.now(), handle(list), add_list(handle(list), made));
}

AFTER(zeCommandListCreateCloneExp, Handle list, Created* clone) {
    List made = find_list(list);
    if (made.id == 0) return;
    made.runs = 0;
    tell_list(call.now(), handle(clone), add_list(handle(clone), made));
}

AFTER(zeCommandListReset, Handle list) { tell_list(call.now(), list, renew_list(list)); }

INSTEAD(zeCommandListDestroy, Handle list) {
    call.start();
    // Another thread may be given the same handle as soon as the driver is done with it.
    const List known = take_list(list);
    const Result result = next(list);
    if (known.id == 0) return result;
    if (result != success) {
        put_list_back(list, known);
    } else {
        emit<Record::list_end>(call.begin, known.id);
    }
    return result;
}

namespace {

void tell_runs(Call& call, Handle queue, u32 count, const Handle* lists) {
    for (u32 i = 0; i < count && lists != nullptr; ++i) {
        const List list = count_run(lists[i]);
        if (list.id != 0) emit<Record::list_run>(call.now(), list.id, list.runs, number(queue), call.begin);
    }
}

}  // namespace

INSTEAD(zeCommandQueueExecuteCommandLists, Handle queue, u32 count, Handle* lists, Handle fence) {
    call.start();
    const Result result = next(queue, count, lists, fence);
    if (result == success) tell_runs(call, queue, count, lists);
    return result;
}

INSTEAD(zeCommandListImmediateAppendCommandListsExp, Handle list, u32 count, Handle* lists, Handle signal, u32 wait_count,
        Handle* waits) {
    call.start();
    const Result result = next(list, count, lists, signal, wait_count, waits);
    if (result == success) tell_runs(call, list, count, lists);
    return result;
}

INSTEAD(zeCommandListImmediateAppendCommandListsWithParameters, Handle list, u32 count, Handle* lists, Struct more,
        Handle signal, u32 wait_count, Handle* waits) {
    call.start();
    const Result result = next(list, count, lists, more, signal, wait_count, waits);
    if (result == success) tell_runs(call, list, count, lists);
    return result;
}

// --- kernels and memory -------------------------------------------------------------------------------------------

AFTER(zeKernelCreate, Handle module, const KernelDesc* desc, Created* kernel) {
    u32 simd = 0;
    if (const auto properties_of = call.driver<Function::zeKernelGetProperties>()) {
        KernelProperties found{};
        found.stype = stype_kernel_properties;
        if (properties_of(handle(kernel), &found) == success) simd = found.max_sub_group_size;
    }
    emit<Record::kernel>(call.now(), number(handle(kernel)), number(module), desc->name, simd);
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

// --- operations ---------------------------------------------------------------------------------------------------

namespace {

struct Append {
    u64 op_id;
    Used list;
    Reason reason;
    Waits waits;
    bool is_told;
};

// Whether an operation is left out: outside of regions those of immediate lists are, as they run at once.
bool is_left_out(Handle list) { return !recording.load(std::memory_order_relaxed) && use_list(list).immediate; }

// What all operations have; `is_told` is false where there is no room for records.
Append appended(Call& call, Handle list, u32 wait_count, const Handle* waits) {
    Append made{};
    made.list = use_list(list);
    Stream* stream = this_stream();
    if (stream == nullptr) return made;
    made.is_told = true;
    made.op_id = stream->next_operation();
    made.reason = made.list.id == 0 ? Reason::unknown_list : Reason::not_timed;
    if (waits == nullptr) wait_count = 0;
    if (wait_count > most_waits) {
        emit<Record::degraded>(call.now(), Scope::op, made.op_id, Reason::too_many_waits, u32{0}, wait_count);
        wait_count = most_waits;
    }
    made.waits = {waits, static_cast<u16>(wait_count)};
    return made;
}

template <Function F>
[[gnu::noinline]] void tell_operation(Call& call, Handle list, Handle signal, u32 wait_count, const Handle* waits) {
    const Append op = appended(call, list, wait_count, waits);
    if (!op.is_told) return;
    emit<Record::op>(call.now(), op.op_id, op.list.id, static_cast<Api>(F), How::untimed, op.reason, number(signal), op.waits);
}

template <Function F>
[[gnu::noinline]] void tell_kernel(Call& call, Handle list, Handle kernel, Groups groups, Handle signal, u32 wait_count,
                 const Handle* waits) {
    const Append op = appended(call, list, wait_count, waits);
    if (!op.is_told) return;
    emit<Record::op_kernel>(call.now(), op.op_id, op.list.id, static_cast<Api>(F), How::untimed, op.reason, number(signal),
                            number(kernel), groups.x, groups.y, groups.z, op.waits);
}

template <Function F>
[[gnu::noinline]] void tell_memory(Call& call, Handle list, usize size, Address dst, Address src, Handle signal, u32 wait_count,
                 const Handle* waits) {
    const Append op = appended(call, list, wait_count, waits);
    if (!op.is_told) return;
    emit<Record::op_memory>(call.now(), op.op_id, op.list.id, static_cast<Api>(F), How::untimed, op.reason, number(signal),
                            size, number(dst), number(src), op.waits);
}

}  // namespace

#define WAITS Handle signal, u32 wait_count, Handle *waits
// OPERATION(function, parameters between the list and the signal)
#define OPERATION(F, ...)                                                     \
    AFTER(F, Handle list __VA_OPT__(,) __VA_ARGS__, WAITS) {                  \
        if (is_left_out(list)) return;                                        \
        tell_operation<Function::F>(call, list, signal, wait_count, waits);   \
    }

OPERATION(zeCommandListAppendWriteGlobalTimestamp, u64*)
OPERATION(zeCommandListAppendBarrier)
OPERATION(zeCommandListAppendMemoryRangesBarrier, u32, Struct, Struct)
OPERATION(zeCommandListAppendMemoryCopyRegion, Address, Struct, u32, u32, Address, Struct, u32, u32)
OPERATION(zeCommandListAppendImageCopy, Handle, Handle)
OPERATION(zeCommandListAppendImageCopyRegion, Handle, Handle, Struct, Struct)
OPERATION(zeCommandListAppendImageCopyToMemory, Address, Handle, Struct)
OPERATION(zeCommandListAppendImageCopyFromMemory, Handle, Address, Struct)
OPERATION(zeCommandListAppendImageCopyToMemoryExt, Address, Handle, Struct, u32, u32)
OPERATION(zeCommandListAppendImageCopyFromMemoryExt, Handle, Address, Struct, u32, u32)
OPERATION(zeCommandListAppendQueryKernelTimestamps, u32, Handle*, Address, Struct)
OPERATION(zeCommandListAppendSignalExternalSemaphoreExt, u32, Handle*, Struct)
OPERATION(zeCommandListAppendWaitExternalSemaphoreExt, u32, Handle*, Struct)
OPERATION(zeCommandListAppendHostFunction, Struct, Struct, Struct)
OPERATION(zeCommandListAppendGraphExt, Handle, Struct)
AFTER(zeCommandListAppendSignalEvent, Handle list, Handle event) {
    if (is_left_out(list)) return;
    tell_operation<Function::zeCommandListAppendSignalEvent>(call, list, event, 0, nullptr);
}

#define KERNEL(F, groups, ...)                                                                    \
    AFTER(F, Handle list, Handle kernel, __VA_ARGS__, WAITS) {                                    \
        if (is_left_out(list)) return;                                                            \
        tell_kernel<Function::F>(call, list, kernel, groups, signal, wait_count, waits);          \
    }

// Counts that lie in memory of the device are not known here.
KERNEL(zeCommandListAppendLaunchKernel, *counts, const Groups* counts)
KERNEL(zeCommandListAppendLaunchCooperativeKernel, *counts, const Groups* counts)
KERNEL(zeCommandListAppendLaunchKernelWithParameters, *counts, const Groups* counts, Struct)
KERNEL(zeCommandListAppendLaunchKernelWithArguments, counts, Groups counts, Groups, Struct, Struct)
KERNEL(zeCommandListAppendLaunchKernelIndirect, Groups{}, const Groups*)
AFTER(zeCommandListAppendLaunchMultipleKernelsIndirect, Handle list, u32 count, Handle* kernels, Struct, const Groups*,
      WAITS) {
    const Handle kernel = count != 0 && kernels != nullptr ? kernels[0] : nullptr;
    if (is_left_out(list)) return;
    tell_kernel<Function::zeCommandListAppendLaunchMultipleKernelsIndirect>(call, list, kernel, {}, signal, wait_count,
                                                                            waits);
}

#define MEMORY(F, size, dst, src, ...)                                                        \
    AFTER(F, Handle list, __VA_ARGS__, WAITS) {                                               \
        if (is_left_out(list)) return;                                                        \
        tell_memory<Function::F>(call, list, size, dst, src, signal, wait_count, waits);      \
    }

MEMORY(zeCommandListAppendMemoryCopy, size, dst, src, Address dst, Address src, usize size)
MEMORY(zeCommandListAppendMemoryCopyWithParameters, size, dst, src, Address dst, Address src, usize size, Struct)
MEMORY(zeCommandListAppendMemoryCopyFromContext, size, dst, src, Address dst, Handle, Address src, usize size)
MEMORY(zeRTASBuilderCommandListAppendCopyExt, size, dst, src, Address dst, Address src, usize size)
MEMORY(zeCommandListAppendMemoryFill, size, dst, nullptr, Address dst, Address, usize, usize size)
MEMORY(zeCommandListAppendMemoryFillWithParameters, size, dst, nullptr, Address dst, Address, usize, usize size, Struct)

// --- functions that are asked for by name ---------------------------------------------------------------------------

AFTER(zeDriverGetExtensionFunctionAddress, Handle, Text name, Created* address) {
    if (name != nullptr && address != nullptr) address->value = wrapped_extension(name, address->value);
}

// --- the entry points ---------------------------------------------------------------------------------------------

void* entry(Way way, Function function) {
    static void* const entries[way_count][function_count] = {
        {
#define CALL(table, function, minor, ...) reinterpret_cast<void*>(&Entry<Function::function, Way::layer>::call),
#include "functions.def"
        },
        {
#define CALL(table, function, minor, ...) reinterpret_cast<void*>(&Entry<Function::function, Way::extension>::call),
#include "functions.def"
        },
    };
    return entries[static_cast<size_t>(way)][index(function)];
}

bool is_wanted(Function function) {
    static constexpr bool followed[] = {
#define CALL(table, function, minor, ...) Entry<Function::function, Way::layer>::is_followed,
#include "functions.def"
    };
    return followed[index(function)] || is_selected(function);
}

void* wrapped_extension(Text name, void* address) {
    for (size_t i = 0; i < function_count && address != nullptr; ++i) {
        if (std::string_view(function_names[i]) != name) continue;
        const auto function = static_cast<Function>(i);
        if (!is_wanted(function)) return address;
        // Of several drivers with functions of one name, those of the first are recorded.
        void* expected = nullptr;
        auto& known = targets[static_cast<size_t>(Way::extension)][i];
        if (!known.compare_exchange_strong(expected, address) && expected != address) return address;
        return entry(Way::extension, function);
    }
    return address;
}

}  // namespace lanescope::levelzero
