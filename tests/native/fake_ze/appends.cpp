// The commands that lists take, and what they do when they run.
#include <algorithm>
#include <cstring>

#include "api.hpp"
#include "command_types.hpp"
#include "driver_quirks.hpp"
#include "kernels.hpp"
#include "timestamps.hpp"
#include "device_state.hpp"

namespace fake_ze {
namespace {

// Costs in ticks; on the real clock they are the least that a command takes.
constexpr uint64_t copy_cost = 5;
uint64_t cost_of_bytes(size_t size) { return copy_cost + size / 4096; }

Command named(const char* api) {
    Command command;
    command.api = api;
    command.cost = 1;
    return command;
}

void copy_bytes(void* to, const void* from, size_t size) {
    // A host may poll small buffers while they are written, so those are written word by word.
    if (size <= 64) {
        store_words(to, from, size, 0);
    } else {
        std::memmove(to, from, size);
    }
}

Command copy_command(const char* api, void* to, const void* from, size_t size) {
    Command command = named(api);
    command.to = to;
    command.from = from;
    command.bytes = size;
    command.cost = cost_of_bytes(size);
    command.effect = [to, from, size](Device&) { copy_bytes(to, from, size); };
    return command;
}

Command fill_command(const char* api, void* to, const void* pattern, size_t pattern_size, size_t size) {
    Command command = named(api);
    command.to = to;
    command.bytes = size;
    command.cost = cost_of_bytes(size);
    const auto* bytes = static_cast<const char*>(pattern);
    command.effect = [to, size, copy = std::vector<char>(bytes, bytes + pattern_size)](Device&) {
        for (size_t at = 0; at < size; at += copy.size()) {
            std::memcpy(static_cast<char*>(to) + at, copy.data(), std::min(copy.size(), size - at));
        }
    };
    return command;
}

// Append to an immediate list what regular lists hold.
ze_result_t append_lists(const char* api, ze_command_list_handle_t handle, uint32_t number,
                         ze_command_list_handle_t* lists, ze_event_handle_t signal, uint32_t count,
                         ze_event_handle_t* waits) {
    auto* list = find<List>(handle);
    if (list == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    if (!list->lane->immediate) return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    if (const ze_result_t code = check_executable(api, number, lists, list->ordinal); code != ZE_RESULT_SUCCESS) {
        return code;
    }
    if (count != 0) {
        Command wait = named(api);
        wait.role = Role::wait;
        if (const ze_result_t code = append(handle, wait, nullptr, count, waits); code != ZE_RESULT_SUCCESS) return code;
    }
    if (list->graph != nullptr) {
        capture_lists(*list, number, lists);
    } else {
        const Exclusive exclusive(*list, api);
        std::vector<Submission> submissions = submissions_of(number, lists);
        if (list->lane->in_order) {
            // Those commands are of lists of their own: barriers put them into this list's order.
            Command order;
            order.role = Role::barrier;
            const Submission barrier = {std::make_shared<const Command>(order), list->lane, 1};
            submissions.insert(submissions.begin(), barrier);
            submissions.push_back(barrier);
        }
        scheduler().submit(list->stream, submissions, nullptr);
    }
    if (signal != nullptr) {
        Command done = named(api);
        done.role = Role::barrier;
        return append(handle, done, signal, 0, nullptr);
    }
    return list->synchronous ? scheduler().wait_for(*list->stream, UINT64_MAX) : ZE_RESULT_SUCCESS;
}

}  // namespace

ze_result_t zeCommandListAppendBarrier(ze_command_list_handle_t list, ze_event_handle_t signal, uint32_t count,
                                       ze_event_handle_t* waits) {
    FAKE_ZE_ENTER(zeCommandListAppendBarrier);
    Command command = named("zeCommandListAppendBarrier");
    command.role = Role::barrier;
    return append(list, std::move(command), signal, count, waits);
}

ze_result_t zeCommandListAppendMemoryRangesBarrier(ze_command_list_handle_t list, uint32_t, const size_t*,
                                                   const void**, ze_event_handle_t signal, uint32_t count,
                                                   ze_event_handle_t* waits) {
    FAKE_ZE_ENTER(zeCommandListAppendMemoryRangesBarrier);
    Command command = named("zeCommandListAppendMemoryRangesBarrier");
    command.role = Role::barrier;
    return append(list, std::move(command), signal, count, waits);
}

ze_result_t zeCommandListAppendMemoryCopy(ze_command_list_handle_t list, void* to, const void* from, size_t size,
                                          ze_event_handle_t signal, uint32_t count, ze_event_handle_t* waits) {
    FAKE_ZE_ENTER(zeCommandListAppendMemoryCopy);
    return append(list, copy_command("zeCommandListAppendMemoryCopy", to, from, size), signal, count, waits);
}

ze_result_t zeCommandListAppendMemoryCopyWithParameters(ze_command_list_handle_t list, void* to, const void* from,
                                                        size_t size, const void*, ze_event_handle_t signal,
                                                        uint32_t count, ze_event_handle_t* waits) {
    FAKE_ZE_ENTER(zeCommandListAppendMemoryCopyWithParameters);
    return append(list, copy_command("zeCommandListAppendMemoryCopyWithParameters", to, from, size), signal, count,
                  waits);
}

ze_result_t zeCommandListAppendMemoryCopyFromContext(ze_command_list_handle_t list, void* to, ze_context_handle_t,
                                                     const void* from, size_t size, ze_event_handle_t signal,
                                                     uint32_t count, ze_event_handle_t* waits) {
    FAKE_ZE_ENTER(zeCommandListAppendMemoryCopyFromContext);
    return append(list, copy_command("zeCommandListAppendMemoryCopyFromContext", to, from, size), signal, count,
                  waits);
}

ze_result_t zeCommandListAppendMemoryFill(ze_command_list_handle_t list, void* to, const void* pattern,
                                          size_t pattern_size, size_t size, ze_event_handle_t signal, uint32_t count,
                                          ze_event_handle_t* waits) {
    FAKE_ZE_ENTER(zeCommandListAppendMemoryFill);
    if (pattern == nullptr || pattern_size == 0) return ZE_RESULT_ERROR_INVALID_SIZE;
    return append(list, fill_command("zeCommandListAppendMemoryFill", to, pattern, pattern_size, size), signal, count,
                  waits);
}

ze_result_t zeCommandListAppendMemoryFillWithParameters(ze_command_list_handle_t list, void* to, const void* pattern,
                                                        size_t pattern_size, size_t size, const void*,
                                                        ze_event_handle_t signal, uint32_t count,
                                                        ze_event_handle_t* waits) {
    FAKE_ZE_ENTER(zeCommandListAppendMemoryFillWithParameters);
    if (pattern == nullptr || pattern_size == 0) return ZE_RESULT_ERROR_INVALID_SIZE;
    return append(list, fill_command("zeCommandListAppendMemoryFillWithParameters", to, pattern, pattern_size, size),
                  signal, count, waits);
}

ze_result_t zeCommandListAppendMemoryCopyRegion(ze_command_list_handle_t list, void* to, const ze_copy_region_t* there,
                                                uint32_t to_pitch, uint32_t to_slice, const void* from,
                                                const ze_copy_region_t* here, uint32_t from_pitch, uint32_t from_slice,
                                                ze_event_handle_t signal, uint32_t count, ze_event_handle_t* waits) {
    FAKE_ZE_ENTER(zeCommandListAppendMemoryCopyRegion);
    if (there == nullptr || here == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    const uint32_t depth = std::max(here->depth, 1u);
    Command command = named("zeCommandListAppendMemoryCopyRegion");
    command.to = to;
    command.from = from;
    command.bytes = uint64_t{here->width} * here->height * depth;
    command.cost = cost_of_bytes(command.bytes);
    command.effect = [=, target = *there, source = *here](Device&) {
        const auto at = [](const ze_copy_region_t& region, size_t pitch, size_t slice, size_t row, size_t plane) {
            return region.originX + (region.originY + row) * pitch + (region.originZ + plane) * slice;
        };
        for (size_t plane = 0; plane < depth; ++plane) {
            for (size_t row = 0; row < source.height; ++row) {
                std::memcpy(static_cast<char*>(to) + at(target, to_pitch, to_slice, row, plane),
                            static_cast<const char*>(from) + at(source, from_pitch, from_slice, row, plane),
                            source.width);
            }
        }
    };
    return append(list, std::move(command), signal, count, waits);
}

ze_result_t zeCommandListAppendWriteGlobalTimestamp(ze_command_list_handle_t list, uint64_t* to,
                                                    ze_event_handle_t signal, uint32_t count,
                                                    ze_event_handle_t* waits) {
    FAKE_ZE_ENTER(zeCommandListAppendWriteGlobalTimestamp);
    Command command = named("zeCommandListAppendWriteGlobalTimestamp");
    command.to = to;
    command.bytes = sizeof *to;
    command.effect = [to](Device& device) {
        const uint64_t ticks = low_bits(device.clock->now(), quirks().global_bits);
        store_words(to, &ticks, sizeof ticks, 0);
    };
    return append(list, std::move(command), signal, count, waits);
}

ze_result_t zeCommandListAppendMemoryPrefetch(ze_command_list_handle_t list, const void*, size_t) {
    FAKE_ZE_ENTER(zeCommandListAppendMemoryPrefetch);
    return find<List>(list) == nullptr ? ZE_RESULT_ERROR_INVALID_NULL_HANDLE : ZE_RESULT_SUCCESS;
}

ze_result_t zeCommandListAppendMemAdvise(ze_command_list_handle_t list, ze_device_handle_t, const void*, size_t,
                                         ze_memory_advice_t) {
    FAKE_ZE_ENTER(zeCommandListAppendMemAdvise);
    return find<List>(list) == nullptr ? ZE_RESULT_ERROR_INVALID_NULL_HANDLE : ZE_RESULT_SUCCESS;
}

ze_result_t zeCommandListAppendSignalEvent(ze_command_list_handle_t list, ze_event_handle_t event) {
    FAKE_ZE_ENTER(zeCommandListAppendSignalEvent);
    if (event == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    return append(list, named("zeCommandListAppendSignalEvent"), event, 0, nullptr);
}

ze_result_t zeCommandListAppendWaitOnEvents(ze_command_list_handle_t list, uint32_t count, ze_event_handle_t* events) {
    FAKE_ZE_ENTER(zeCommandListAppendWaitOnEvents);
    Command command = named("zeCommandListAppendWaitOnEvents");
    command.role = Role::wait;
    return append(list, std::move(command), nullptr, count, events);
}

ze_result_t zeCommandListAppendEventReset(ze_command_list_handle_t list, ze_event_handle_t handle) {
    FAKE_ZE_ENTER(zeCommandListAppendEventReset);
    auto* event = find<Event>(handle);
    if (event == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    if (event->is_counter) oddity("counter-based event reset");
    Command command = named("zeCommandListAppendEventReset");
    command.uses.emplace_back(event);
    command.effect = [event](Device&) {
        event->stuck.store(0, std::memory_order_release);
        event->signalled.store(0, std::memory_order_release);
        reset_ticks(*event);
    };
    return append(list, std::move(command), nullptr, 0, nullptr);
}

ze_result_t zeCommandListAppendQueryKernelTimestamps(ze_command_list_handle_t list, uint32_t number,
                                                     ze_event_handle_t* events, void* to, const size_t* offsets,
                                                     ze_event_handle_t signal, uint32_t count,
                                                     ze_event_handle_t* waits) {
    FAKE_ZE_ENTER(zeCommandListAppendQueryKernelTimestamps);
    if (events == nullptr || to == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    Command command = named("zeCommandListAppendQueryKernelTimestamps");
    command.is_query = true;
    command.to = to;
    command.bytes = number * sizeof(ze_kernel_timestamp_result_t);
    std::vector<size_t> places;
    for (uint32_t i = 0; i < number; ++i) {
        auto* event = find<Event>(events[i]);
        if (event == nullptr || !event->has_ticks) return ZE_RESULT_ERROR_INVALID_ARGUMENT;
        command.uses.emplace_back(event);
        places.push_back(offsets == nullptr ? i * sizeof(ze_kernel_timestamp_result_t) : offsets[i]);
    }
    command.effect = [to, places, asked = command.uses](Device&) {
        std::vector<ze_kernel_timestamp_result_t> results;
        for (const auto& event : asked) {
            results.push_back(read_ticks(*event.object));
            event.object->queried.fetch_sub(1);  // it is not needed any more
            event.object->queued.fetch_sub(1);
        }
        for (size_t i = 0; i < results.size(); ++i) {
            store_words(static_cast<char*>(to) + places[i], &results[i], sizeof results[i], quirks().late_us / 4);
        }
    };
    return append(list, std::move(command), signal, count, waits);
}

ze_result_t zeCommandListAppendLaunchKernel(ze_command_list_handle_t list, ze_kernel_handle_t kernel,
                                            const ze_group_count_t* groups, ze_event_handle_t signal, uint32_t count,
                                            ze_event_handle_t* waits) {
    FAKE_ZE_ENTER(zeCommandListAppendLaunchKernel);
    return append_launch("zeCommandListAppendLaunchKernel", list, kernel, groups, signal, count, waits);
}

ze_result_t zeCommandListAppendLaunchCooperativeKernel(ze_command_list_handle_t list, ze_kernel_handle_t kernel,
                                                       const ze_group_count_t* groups, ze_event_handle_t signal,
                                                       uint32_t count, ze_event_handle_t* waits) {
    FAKE_ZE_ENTER(zeCommandListAppendLaunchCooperativeKernel);
    return append_launch("zeCommandListAppendLaunchCooperativeKernel", list, kernel, groups, signal, count, waits);
}

ze_result_t zeCommandListAppendLaunchKernelWithParameters(ze_command_list_handle_t list, ze_kernel_handle_t kernel,
                                                          const ze_group_count_t* groups, const void*,
                                                          ze_event_handle_t signal, uint32_t count,
                                                          ze_event_handle_t* waits) {
    FAKE_ZE_ENTER(zeCommandListAppendLaunchKernelWithParameters);
    return append_launch("zeCommandListAppendLaunchKernelWithParameters", list, kernel, groups, signal, count, waits);
}

ze_result_t zeCommandListAppendLaunchKernelWithArguments(ze_command_list_handle_t list, ze_kernel_handle_t kernel,
                                                         const ze_group_count_t groups, const ze_group_size_t size,
                                                         void** arguments, const void*, ze_event_handle_t signal,
                                                         uint32_t count, ze_event_handle_t* waits) {
    FAKE_ZE_ENTER(zeCommandListAppendLaunchKernelWithArguments);
    if (const ze_result_t code = set_launch(kernel, size, arguments); code != ZE_RESULT_SUCCESS) return code;
    return append_launch("zeCommandListAppendLaunchKernelWithArguments", list, kernel, &groups, signal, count, waits);
}

ze_result_t zeCommandListAppendLaunchKernelIndirect(ze_command_list_handle_t list, ze_kernel_handle_t kernel,
                                                    const ze_group_count_t* groups, ze_event_handle_t signal,
                                                    uint32_t count, ze_event_handle_t* waits) {
    FAKE_ZE_ENTER(zeCommandListAppendLaunchKernelIndirect);
    return append_indirect("zeCommandListAppendLaunchKernelIndirect", list, 1, &kernel, nullptr, groups, signal, count,
                           waits);
}

ze_result_t zeCommandListAppendLaunchMultipleKernelsIndirect(ze_command_list_handle_t list, uint32_t number,
                                                             ze_kernel_handle_t* kernels, const uint32_t* how_many,
                                                             const ze_group_count_t* groups, ze_event_handle_t signal,
                                                             uint32_t count, ze_event_handle_t* waits) {
    FAKE_ZE_ENTER(zeCommandListAppendLaunchMultipleKernelsIndirect);
    return append_indirect("zeCommandListAppendLaunchMultipleKernelsIndirect", list, number, kernels, how_many, groups,
                           signal, count, waits);
}

ze_result_t zeCommandListAppendHostFunction(ze_command_list_handle_t list, ze_host_function_callback_t function,
                                            void* data, const void*, ze_event_handle_t signal, uint32_t count,
                                            ze_event_handle_t* waits) {
    FAKE_ZE_ENTER(zeCommandListAppendHostFunction);
    if (function == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    Command command = named("zeCommandListAppendHostFunction");
    command.effect = [function, data](Device&) { function(data); };
    return append(list, std::move(command), signal, count, waits);
}

ze_result_t zeCommandListImmediateAppendCommandListsExp(ze_command_list_handle_t list, uint32_t number,
                                                        ze_command_list_handle_t* lists, ze_event_handle_t signal,
                                                        uint32_t count, ze_event_handle_t* waits) {
    FAKE_ZE_ENTER(zeCommandListImmediateAppendCommandListsExp);
    return append_lists("zeCommandListImmediateAppendCommandListsExp", list, number, lists, signal, count, waits);
}

ze_result_t zeCommandListImmediateAppendCommandListsWithParameters(ze_command_list_handle_t list, uint32_t number,
                                                                   ze_command_list_handle_t* lists, const void*,
                                                                   ze_event_handle_t signal, uint32_t count,
                                                                   ze_event_handle_t* waits) {
    FAKE_ZE_ENTER(zeCommandListImmediateAppendCommandListsWithParameters);
    return append_lists("zeCommandListImmediateAppendCommandListsWithParameters", list, number, lists, signal, count,
                        waits);
}

}  // namespace fake_ze
