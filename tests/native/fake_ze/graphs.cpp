// Graphs of the extension for record and replay: what immediate lists capture, and its execution as one command.
// A list that waits for an event of captured commands is captured too, until the first list's capture ends.
#include <algorithm>

#include "api.hpp"
#include "command_types.hpp"
#include "device_state.hpp"

namespace fake_ze {
namespace {

ze_graph_handle_t to_handle(Graph* graph) { return reinterpret_cast<ze_graph_handle_t>(graph); }
ze_executable_graph_handle_t to_handle(Executable* graph) {
    return reinterpret_cast<ze_executable_graph_handle_t>(graph);
}

ze_result_t begin(ze_command_list_handle_t handle, Graph* graph) {
    auto* list = find<List>(handle);
    if (list == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    if (!list->lane->immediate || list->synchronous || list->graph != nullptr) return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    if (graph == nullptr) graph = make<Graph>();
    if (graph->primary != nullptr) return ZE_RESULT_ERROR_INVALID_GRAPH;
    const Exclusive exclusive(*list, "zeCommandListBeginGraphCaptureExt");
    graph->primary = list;
    graph->lists.push_back(list);
    list->graph = graph;
    return ZE_RESULT_SUCCESS;
}

void signal(Event& event, Device& device, uint64_t start, uint64_t end) {
    event.device.store(&device);
    event.start.store(start);
    event.end.store(end);
    event.start_ns.store(host_ns());
    event.end_ns.store(host_ns());
    event.signalled.store(1, std::memory_order_release);
}

}  // namespace

ze_result_t capture(List& list, Command& command, bool& is_captured) {
    is_captured = false;
    for (const auto& event : command.waits) {
        const uint64_t serial = event.object->graph.load();
        if (serial == 0) continue;
        if (list.graph != nullptr) {
            if (list.graph->serial != serial) return ZE_RESULT_ERROR_GRAPH_CAPTURE_MERGE_ATTEMPT;
            continue;
        }
        // Where the capture has ended the event is one as any other.
        Graph* graph = event.object->graph_address.load();
        if (life_at(graph).load() != serial || graph->lists.empty()) continue;
        list.graph = graph;
        const std::lock_guard lock(graph->mutex);
        graph->lists.push_back(&list);
    }
    if (list.graph == nullptr) return ZE_RESULT_SUCCESS;
    is_captured = true;
    if (command.signal.object != nullptr) {
        command.signal.object->graph_address.store(list.graph);
        command.signal.object->graph.store(list.graph->serial);
    }
    const std::lock_guard lock(list.graph->mutex);
    list.graph->body.push_back(std::make_shared<const Command>(std::move(command)));
    return ZE_RESULT_SUCCESS;
}

void capture_lists(List& list, uint32_t number, ze_command_list_handle_t* lists) {
    const std::lock_guard lock(list.graph->mutex);
    auto& body = list.graph->body;
    for (uint32_t i = 0; i < number; ++i) {
        const auto& held = find<List>(lists[i])->body;
        body.insert(body.end(), held.begin(), held.end());
    }
}

ze_result_t zeGraphCreateExt(ze_context_handle_t context, const void*, ze_graph_handle_t* graph) {
    FAKE_ZE_ENTER(zeGraphCreateExt);
    if (find<Context>(context) == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    *graph = to_handle(make<Graph>());
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeCommandListBeginGraphCaptureExt(ze_command_list_handle_t list, const void*) {
    FAKE_ZE_ENTER(zeCommandListBeginGraphCaptureExt);
    return begin(list, nullptr);
}

ze_result_t zeCommandListBeginCaptureIntoGraphExt(ze_command_list_handle_t list, ze_graph_handle_t handle, const void*) {
    FAKE_ZE_ENTER(zeCommandListBeginCaptureIntoGraphExt);
    auto* graph = find<Graph>(handle);
    return graph == nullptr ? ZE_RESULT_ERROR_INVALID_NULL_HANDLE : begin(list, graph);
}

ze_result_t zeCommandListIsGraphCaptureEnabledExt(ze_command_list_handle_t handle) {
    FAKE_ZE_ENTER(zeCommandListIsGraphCaptureEnabledExt);
    const auto* list = find<List>(handle);
    if (list == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    return list->graph != nullptr ? ZE_RESULT_QUERY_TRUE : ZE_RESULT_QUERY_FALSE;
}

ze_result_t zeCommandListEndGraphCaptureExt(ze_command_list_handle_t handle, const void*, ze_graph_handle_t* out) {
    FAKE_ZE_ENTER(zeCommandListEndGraphCaptureExt);
    auto* list = find<List>(handle);
    if (list == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    Graph* graph = list->graph;
    if (graph == nullptr || graph->primary != list) return ZE_RESULT_ERROR_COMMAND_LIST_NOT_CAPTURING;
    const Exclusive exclusive(*list, "zeCommandListEndGraphCaptureExt");
    const std::lock_guard lock(graph->mutex);
    for (List* each : graph->lists) each->graph = nullptr;
    graph->lists.clear();
    *out = to_handle(graph);
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeCommandListGetGraphExt(ze_command_list_handle_t handle, ze_graph_handle_t* out) {
    FAKE_ZE_ENTER(zeCommandListGetGraphExt);
    const auto* list = find<List>(handle);
    if (list == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    *out = to_handle(list->graph);
    return list->graph == nullptr ? ZE_RESULT_ERROR_COMMAND_LIST_NOT_CAPTURING : ZE_RESULT_SUCCESS;
}

ze_result_t zeGraphGetPrimaryCommandListExt(ze_graph_handle_t handle, ze_command_list_handle_t* out) {
    FAKE_ZE_ENTER(zeGraphGetPrimaryCommandListExt);
    const auto* graph = find<Graph>(handle);
    if (graph == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    *out = to_handle(graph->primary);
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeGraphIsEmptyExt(ze_graph_handle_t handle) {
    FAKE_ZE_ENTER(zeGraphIsEmptyExt);
    const auto* graph = find<Graph>(handle);
    if (graph == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    return graph->body.empty() ? ZE_RESULT_QUERY_TRUE : ZE_RESULT_QUERY_FALSE;
}

ze_result_t zeGraphInstantiateExt(ze_graph_handle_t handle, const void*, ze_executable_graph_handle_t* out) {
    FAKE_ZE_ENTER(zeGraphInstantiateExt);
    auto* graph = find<Graph>(handle);
    if (graph == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    if (!graph->lists.empty()) return ZE_RESULT_ERROR_INVALID_GRAPH;
    auto* made = make<Executable>();
    made->source = graph;
    made->body = graph->body;
    *out = to_handle(made);
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeGraphDestroyExt(ze_graph_handle_t handle) {
    FAKE_ZE_ENTER(zeGraphDestroyExt);
    auto* graph = find<Graph>(handle);
    if (graph == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    if (!graph->lists.empty()) return ZE_RESULT_ERROR_INVALID_GRAPH;
    destroy(graph);
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeExecutableGraphGetSourceGraphExt(ze_executable_graph_handle_t handle, ze_graph_handle_t* out) {
    FAKE_ZE_ENTER(zeExecutableGraphGetSourceGraphExt);
    const auto* graph = find<Executable>(handle);
    if (graph == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    *out = to_handle(graph->source);
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeExecutableGraphDestroyExt(ze_executable_graph_handle_t handle) {
    FAKE_ZE_ENTER(zeExecutableGraphDestroyExt);
    auto* graph = find<Executable>(handle);
    if (graph == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    destroy(graph);
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeCommandListAppendGraphExt(ze_command_list_handle_t handle, ze_executable_graph_handle_t graph_handle,
                                        const void*, ze_event_handle_t signal_event, uint32_t count,
                                        ze_event_handle_t* waits) {
    FAKE_ZE_ENTER(zeCommandListAppendGraphExt);
    const auto* list = find<List>(handle);
    const auto* graph = find<Executable>(graph_handle);
    if (list == nullptr || graph == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    if (!list->lane->immediate) return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    if (list->graph != nullptr) return ZE_RESULT_ERROR_GRAPH_CAPTURE_UNSUPPORTED;
    Command command;
    command.api = "zeCommandListAppendGraphExt";
    // Events that nothing in the graph signals before are waited for before it begins.
    std::vector<Event*> signalled;
    std::vector<Ref<Event>> queried;
    for (const auto& each : graph->body) {
        for (const auto& event : each->waits) {
            if (!event.is_alive()) {
                mistake("zeCommandListAppendGraphExt of a graph with a destroyed event");
                return ZE_RESULT_ERROR_INVALID_GRAPH;
            }
            const bool is_inner = std::find(signalled.begin(), signalled.end(), event.object) != signalled.end();
            if (is_inner) continue;
            command.waits.push_back(event);
        }
        if (each->signal.object != nullptr) {
            if (!each->signal.is_alive()) {
                mistake("zeCommandListAppendGraphExt of a graph with a destroyed event");
                return ZE_RESULT_ERROR_INVALID_GRAPH;
            }
            signalled.push_back(each->signal.object);
            command.uses.push_back(each->signal);
        }
        // A query says itself when it is done with the events that it reads.
        if (each->is_query) queried.insert(queried.end(), each->uses.begin(), each->uses.end());
        command.cost += each->cost;
    }
    for (const auto& event : queried) {
        event.object->queued.fetch_add(1);
        event.object->queried.fetch_add(1);
    }
    command.effect = [body = graph->body, running = graph->running](Device& device) {
        const std::lock_guard lock(*running);
        for (const auto& each : body) {
            const uint64_t start = device.clock->begin();
            if (each->effect) each->effect(device);
            if (each->signal.is_alive()) signal(*each->signal.object, device, start, device.clock->end(start, 1));
        }
    };
    return append(handle, std::move(command), signal_event, count, waits);
}

}  // namespace fake_ze
