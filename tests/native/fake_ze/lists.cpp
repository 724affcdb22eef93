// Command lists: their life, and how commands get into them.
#include "command_types.hpp"

#include <cstdio>
#include <cstdlib>

#include "api.hpp"
#include "driver_quirks.hpp"
#include "device_state.hpp"

namespace fake_ze {
namespace {

Level& queries_held() {
    static Level level("query_bytes");
    return level;
}

List* make_list(Context* context, Device* device, uint32_t ordinal, bool immediate, bool in_order) {
    auto* list = make<List>();
    list->context = Ref<Context>(context);
    list->ordinal = ordinal;
    list->lane = std::make_shared<Lane>();
    list->lane->serial = list->serial;
    list->lane->immediate = immediate;
    list->lane->in_order = in_order;
    list->lane->device = device;
    context->objects.fetch_add(1);
    return list;
}

void count_recorded(const Command& command, int64_t amount) {
    const auto add = [&](const Ref<Event>& event) {
        if (event.is_alive()) event.object->recorded.fetch_add(amount);
    };
    add(command.signal);
    for (const auto& event : command.waits) add(event);
    for (const auto& event : command.uses) add(event);
}

void clear(List& list) {
    for (const auto& command : list.body) count_recorded(*command, -1);
    list.body.clear();
    queries_held().add(-static_cast<int64_t>(list.query_storage.size() * quirks().query_bytes));
    list.query_storage.clear();
}

// Store what a query needs until the list is reset. Null, or why it cannot be appended.
ze_result_t hold_query(List& list) {
    if (list.ordinal == copy_ordinal && quirks().query_on_copy != QueryOnCopy::allow) {
        if (quirks().query_on_copy == QueryOnCopy::abort) {
            std::fprintf(stderr, "fake_ze: timestamp query on a copy-only engine\n");
            std::abort();
        }
        return ZE_RESULT_ERROR_UNSUPPORTED_FEATURE;
    }
    if (list.query_storage.size() >= quirks().query_limit) return ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY;
    if (quirks().query_bytes != 0) list.query_storage.emplace_back(new char[quirks().query_bytes]);
    queries_held().add(static_cast<int64_t>(quirks().query_bytes));
    return ZE_RESULT_SUCCESS;
}

}  // namespace

Exclusive::Exclusive(List& list, const char* function) : list_(list) {
    if (list.busy.exchange(true)) mistake(std::string(function) + " while another thread uses the list");
}

Exclusive::~Exclusive() { list_.busy.store(false); }

ze_result_t append(ze_command_list_handle_t handle, Command command, ze_event_handle_t signal, uint32_t count,
                   ze_event_handle_t* waits) {
    auto* list = find<List>(handle);
    if (list == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    if (!context_lives(*list, command.api)) return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    if (count != 0 && waits == nullptr) return ZE_RESULT_ERROR_INVALID_SIZE;
    const Exclusive exclusive(*list, command.api);
    if (!list->open) {
        mistake(std::string(command.api) + " on a closed list");
        return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    }
    if (list->lane->immediate && scheduler().is_lost()) return ZE_RESULT_ERROR_DEVICE_LOST;
    if (signal != nullptr) {
        command.signal = Ref<Event>(find<Event>(signal));
        if (command.signal.object == nullptr) return ZE_RESULT_ERROR_INVALID_ARGUMENT;
        if (command.signal.object->is_counter && !list->lane->in_order) {
            mistake(std::string(command.api) + " signals a counter-based event in an out-of-order list");
        }
    }
    for (uint32_t i = 0; i < count; ++i) {
        command.waits.emplace_back(find<Event>(waits[i]));
        if (command.waits.back().object == nullptr) return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    }
    if (command.is_query) {
        if (const ze_result_t code = hold_query(*list); code != ZE_RESULT_SUCCESS) return code;
    }
    command.mark = take_mark();
    if (list->lane->immediate) {
        bool is_captured = false;
        const ze_result_t code = capture(*list, command, is_captured);
        if (code != ZE_RESULT_SUCCESS || is_captured) return code;
    }
    command.life = list->life;
    command.index = list->appended++;
    auto shared = std::make_shared<const Command>(std::move(command));
    if (!list->lane->immediate) {
        count_recorded(*shared, 1);
        list->body.push_back(std::move(shared));
        return ZE_RESULT_SUCCESS;
    }
    scheduler().submit(list->stream, {{std::move(shared), list->lane, 1}}, nullptr);
    return list->synchronous ? scheduler().wait_for(*list->stream, UINT64_MAX) : ZE_RESULT_SUCCESS;
}

ze_result_t check_executable(const char* function, uint32_t number, ze_command_list_handle_t* lists,
                             uint32_t ordinal) {
    for (uint32_t i = 0; i < number; ++i) {
        const auto* list = find<List>(lists[i]);
        if (list == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
        if (!context_lives(*list, function)) return ZE_RESULT_ERROR_INVALID_ARGUMENT;
        if (list->open || list->lane->immediate) {
            mistake(std::string(function) + (list->open ? " of an open list" : " of an immediate list"));
            return ZE_RESULT_ERROR_INVALID_ARGUMENT;
        }
        if (list->ordinal != ordinal) {
            mistake(std::string(function) + " of a list for another queue group");
            return ZE_RESULT_ERROR_INVALID_COMMAND_LIST_TYPE;
        }
        if (!scheduler().is_lost() && scheduler().pending(*list->lane) != 0) oddity(std::string(function) + " of a list that still runs");
        for (const auto& command : list->body) {
            bool all_alive = command->signal.object == nullptr || command->signal.is_alive();
            for (const auto& event : command->waits) all_alive &= event.is_alive();
            for (const auto& event : command->uses) all_alive &= event.is_alive();
            if (all_alive) continue;
            mistake(std::string(function) + " of a list with a destroyed event");
            return ZE_RESULT_ERROR_INVALID_ARGUMENT;
        }
    }
    return scheduler().is_lost() ? ZE_RESULT_ERROR_DEVICE_LOST : ZE_RESULT_SUCCESS;
}

std::vector<Submission> submissions_of(uint32_t number, ze_command_list_handle_t* lists) {
    std::vector<Submission> submissions;
    for (uint32_t i = 0; i < number; ++i) {
        auto* list = find<List>(lists[i]);
        const uint64_t run = ++list->runs;
        for (const auto& command : list->body) submissions.push_back({command, list->lane, run});
    }
    return submissions;
}

ze_result_t zeCommandListCreate(ze_context_handle_t handle, ze_device_handle_t device_handle,
                                const ze_command_list_desc_t* desc, ze_command_list_handle_t* out) {
    FAKE_ZE_ENTER(zeCommandListCreate);
    auto* context = find<Context>(handle);
    auto* device = find<Device>(device_handle);
    if (context == nullptr || device == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    if (desc == nullptr || out == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    if (desc->commandQueueGroupOrdinal >= engines_per_device) return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    auto* list = make_list(context, device, desc->commandQueueGroupOrdinal, false,
                           (desc->flags & list_flag_in_order) != 0);
    list->flags = desc->flags;
    for (auto* next = static_cast<const ze_mutable_command_list_exp_desc_t*>(desc->pNext); next != nullptr;
         next = static_cast<const ze_mutable_command_list_exp_desc_t*>(next->pNext)) {
        list->is_mutable |= next->stype == stype_mutable_list;
    }
    *out = to_handle(list);
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeCommandListCreateImmediate(ze_context_handle_t handle, ze_device_handle_t device_handle,
                                         const ze_command_queue_desc_t* desc, ze_command_list_handle_t* out) {
    FAKE_ZE_ENTER(zeCommandListCreateImmediate);
    auto* context = find<Context>(handle);
    auto* device = find<Device>(device_handle);
    if (context == nullptr || device == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    if (desc == nullptr || out == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    if (desc->ordinal >= engines_per_device) return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    auto* list = make_list(context, device, desc->ordinal, true, (desc->flags & queue_flag_in_order) != 0);
    list->index = desc->index;
    list->synchronous = desc->mode == ZE_COMMAND_QUEUE_MODE_SYNCHRONOUS;
    list->stream = std::make_shared<Stream>();
    list->stream->engine = device->number * engines_per_device + desc->ordinal;
    *out = to_handle(list);
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeCommandListCreateCloneExp(ze_command_list_handle_t handle, ze_command_list_handle_t* out) {
    FAKE_ZE_ENTER(zeCommandListCreateCloneExp);
    auto* list = find<List>(handle);
    if (list == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    if ((list->flags & list_flag_cloneable) == 0 || list->open) return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    auto* clone = make_list(list->context.object, list->lane->device, list->ordinal, false, list->lane->in_order);
    clone->flags = list->flags;
    clone->open = false;
    clone->body = list->body;
    clone->appended = list->appended;
    for (const auto& command : clone->body) count_recorded(*command, 1);
    *out = to_handle(clone);
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeCommandListDestroy(ze_command_list_handle_t handle) {
    FAKE_ZE_ENTER(zeCommandListDestroy);
    auto* list = find<List>(handle);
    if (list == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    const bool is_lost = scheduler().is_lost();
    if (!is_lost && scheduler().pending(*list->lane) != 0) mistake("zeCommandListDestroy of a list that still runs");
    {
        const Exclusive exclusive(*list, "zeCommandListDestroy");
        clear(*list);
        if (list->context.is_alive()) list->context.object->objects.fetch_sub(1);
    }
    destroy(list);
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeCommandListClose(ze_command_list_handle_t handle) {
    FAKE_ZE_ENTER(zeCommandListClose);
    auto* list = find<List>(handle);
    if (list == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    if (!context_lives(*list, "zeCommandListClose")) return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    const Exclusive exclusive(*list, "zeCommandListClose");
    if (!list->lane->immediate) list->open = false;
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeCommandListReset(ze_command_list_handle_t handle) {
    FAKE_ZE_ENTER(zeCommandListReset);
    auto* list = find<List>(handle);
    if (list == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    if (!context_lives(*list, "zeCommandListReset")) return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    if (scheduler().is_lost()) return ZE_RESULT_ERROR_DEVICE_LOST;
    if (scheduler().pending(*list->lane) != 0) mistake("zeCommandListReset of a list that still runs");
    const Exclusive exclusive(*list, "zeCommandListReset");
    clear(*list);
    ++list->life;
    list->appended = 0;
    list->runs = 0;
    list->open = true;
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeCommandListHostSynchronize(ze_command_list_handle_t handle, uint64_t timeout) {
    FAKE_ZE_ENTER(zeCommandListHostSynchronize);
    const auto* list = find<List>(handle);
    if (list == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    if (!context_lives(*list, "zeCommandListHostSynchronize")) return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    if (!list->lane->immediate) return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    if (list->graph != nullptr) return ZE_RESULT_ERROR_GRAPH_CAPTURE_UNSUPPORTED;
    return scheduler().wait_for(*list->stream, timeout);
}

// --- commands that may be changed: their numbers are their places in the body

ze_result_t zeCommandListGetNextCommandIdExp(ze_command_list_handle_t handle, const ze_mutable_command_id_exp_desc_t*,
                                             uint64_t* command) {
    FAKE_ZE_ENTER(zeCommandListGetNextCommandIdExp);
    const auto* list = find<List>(handle);
    if (list == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    if (!list->is_mutable) return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    *command = list->body.size();
    return ZE_RESULT_SUCCESS;
}

// The arguments of kernels are none of the model's.
ze_result_t zeCommandListUpdateMutableCommandsExp(ze_command_list_handle_t handle, const void*) {
    FAKE_ZE_ENTER(zeCommandListUpdateMutableCommandsExp);
    const auto* list = find<List>(handle);
    if (list == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    return list->is_mutable ? ZE_RESULT_SUCCESS : ZE_RESULT_ERROR_INVALID_ARGUMENT;
}

namespace {

template <class Change>
ze_result_t change_command(const char* function, ze_command_list_handle_t handle, uint64_t number, Change change) {
    auto* list = find<List>(handle);
    if (list == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    if (!list->is_mutable || number >= list->body.size()) return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    if (scheduler().pending(*list->lane) != 0) mistake(std::string(function) + " of a list that still runs");
    const Exclusive exclusive(*list, function);
    Command changed = *list->body[number];
    if (!change(changed)) return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    count_recorded(*list->body[number], -1);
    count_recorded(changed, 1);
    list->body[number] = std::make_shared<const Command>(std::move(changed));
    list->open = true;  // to be closed again
    return ZE_RESULT_SUCCESS;
}

}  // namespace

ze_result_t zeCommandListUpdateMutableCommandSignalEventExp(ze_command_list_handle_t list, uint64_t number,
                                                            ze_event_handle_t signal) {
    FAKE_ZE_ENTER(zeCommandListUpdateMutableCommandSignalEventExp);
    return change_command("zeCommandListUpdateMutableCommandSignalEventExp", list, number, [&](Command& command) {
        command.signal = signal == nullptr ? Ref<Event>() : Ref<Event>(find<Event>(signal));
        return signal == nullptr || command.signal.object != nullptr;
    });
}

ze_result_t zeCommandListUpdateMutableCommandWaitEventsExp(ze_command_list_handle_t list, uint64_t number,
                                                           uint32_t count, ze_event_handle_t* waits) {
    FAKE_ZE_ENTER(zeCommandListUpdateMutableCommandWaitEventsExp);
    return change_command("zeCommandListUpdateMutableCommandWaitEventsExp", list, number, [&](Command& command) {
        // As many as there were.
        if (count != command.waits.size()) return false;
        for (uint32_t i = 0; i < count; ++i) {
            command.waits[i] = Ref<Event>(find<Event>(waits[i]));
            if (command.waits[i].object == nullptr) return false;
        }
        return true;
    });
}

ze_result_t zeCommandListGetDeviceHandle(ze_command_list_handle_t handle, ze_device_handle_t* device) {
    FAKE_ZE_ENTER(zeCommandListGetDeviceHandle);
    const auto* list = find<List>(handle);
    if (list == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    *device = to_handle(list->lane->device);
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeCommandListGetContextHandle(ze_command_list_handle_t handle, ze_context_handle_t* context) {
    FAKE_ZE_ENTER(zeCommandListGetContextHandle);
    const auto* list = find<List>(handle);
    if (list == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    *context = to_handle(list->context.object);
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeCommandListGetOrdinal(ze_command_list_handle_t handle, uint32_t* ordinal) {
    FAKE_ZE_ENTER(zeCommandListGetOrdinal);
    const auto* list = find<List>(handle);
    if (list == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    *ordinal = list->ordinal;
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeCommandListImmediateGetIndex(ze_command_list_handle_t handle, uint32_t* index) {
    FAKE_ZE_ENTER(zeCommandListImmediateGetIndex);
    const auto* list = find<List>(handle);
    if (list == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    *index = list->index;
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeCommandListIsImmediate(ze_command_list_handle_t handle, ze_bool_t* immediate) {
    FAKE_ZE_ENTER(zeCommandListIsImmediate);
    const auto* list = find<List>(handle);
    if (list == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    *immediate = list->lane->immediate ? 1 : 0;
    return ZE_RESULT_SUCCESS;
}

}  // namespace fake_ze
