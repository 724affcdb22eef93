// Metric queries: what lies between the begin and the end of one in a list is counted. The report of a query is the
// device's ticks at its begin and at its end, all 64 bits, and how often it has ended.
#include <level_zero/zet_api.h>

#include <algorithm>

#include "api.hpp"
#include "command_types.hpp"
#include "device_state.hpp"

namespace fake_ze {
namespace {

struct MetricPool : Object {
    static constexpr Kind own_kind = Kind::metric_pool;
};

struct MetricQuery : Object {
    static constexpr Kind own_kind = Kind::metric_query;
    std::atomic<uint64_t> begin{0}, end{0}, ends{0};
};

Command plain_command(const char* api) {
    Command command;
    command.api = api;
    command.cost = 1;
    return command;
}

ze_result_t zetMetricQueryPoolCreate(zet_context_handle_t context, zet_device_handle_t, zet_metric_group_handle_t,
                                     const zet_metric_query_pool_desc_t*, zet_metric_query_pool_handle_t* out) {
    if (find<Context>(context) == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    *out = reinterpret_cast<zet_metric_query_pool_handle_t>(make<MetricPool>());
    return ZE_RESULT_SUCCESS;
}

ze_result_t zetMetricQueryPoolDestroy(zet_metric_query_pool_handle_t handle) {
    auto* pool = find<MetricPool>(handle);
    if (pool == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    destroy(pool);
    return ZE_RESULT_SUCCESS;
}

ze_result_t zetMetricQueryCreate(zet_metric_query_pool_handle_t handle, uint32_t, zet_metric_query_handle_t* out) {
    if (find<MetricPool>(handle) == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    *out = reinterpret_cast<zet_metric_query_handle_t>(make<MetricQuery>());
    return ZE_RESULT_SUCCESS;
}

ze_result_t zetMetricQueryDestroy(zet_metric_query_handle_t handle) {
    auto* query = find<MetricQuery>(handle);
    if (query == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    destroy(query);
    return ZE_RESULT_SUCCESS;
}

ze_result_t zetMetricQueryReset(zet_metric_query_handle_t handle) {
    auto* query = find<MetricQuery>(handle);
    if (query == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    query->begin = query->end = query->ends = 0;
    return ZE_RESULT_SUCCESS;
}

ze_result_t zetMetricQueryGetData(zet_metric_query_handle_t handle, size_t* size, uint8_t* out) {
    const auto* query = find<MetricQuery>(handle);
    if (query == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    const uint64_t report[] = {query->begin.load(), query->end.load(), query->ends.load()};
    if (report[2] == 0) return ZE_RESULT_NOT_READY;
    if (*size == 0 || out == nullptr) {
        *size = sizeof report;
        return ZE_RESULT_SUCCESS;
    }
    if (*size < sizeof report) return ZE_RESULT_ERROR_INVALID_SIZE;
    std::copy_n(reinterpret_cast<const uint8_t*>(report), sizeof report, out);
    return ZE_RESULT_SUCCESS;
}

ze_result_t zetCommandListAppendMetricStreamerMarker(zet_command_list_handle_t list, zet_metric_streamer_handle_t,
                                                     uint32_t) {
    return append(list, plain_command("zetCommandListAppendMetricStreamerMarker"), nullptr, 0, nullptr);
}

ze_result_t zetCommandListAppendMetricQueryBegin(zet_command_list_handle_t list, zet_metric_query_handle_t handle) {
    auto* query = find<MetricQuery>(handle);
    if (query == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    Command command = plain_command("zetCommandListAppendMetricQueryBegin");
    command.effect = [query](Device& device) { query->begin = device.clock->now(); };
    return append(list, std::move(command), nullptr, 0, nullptr);
}

ze_result_t zetCommandListAppendMetricQueryEnd(zet_command_list_handle_t list, zet_metric_query_handle_t handle,
                                               ze_event_handle_t signal, uint32_t count, ze_event_handle_t* waits) {
    auto* query = find<MetricQuery>(handle);
    if (query == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    if (count != 0 || waits != nullptr) return ZE_RESULT_ERROR_INVALID_SIZE;
    Command command = plain_command("zetCommandListAppendMetricQueryEnd");
    command.effect = [query](Device& device) {
        query->end = device.clock->now();
        ++query->ends;
    };
    return append(list, std::move(command), signal, 0, nullptr);
}

ze_result_t zetCommandListAppendMetricMemoryBarrier(zet_command_list_handle_t list) {
    Command command = plain_command("zetCommandListAppendMetricMemoryBarrier");
    command.role = Role::barrier;
    return append(list, std::move(command), nullptr, 0, nullptr);
}

struct MetricMember {
    const char* table;
    size_t place;
    void* function;
};

const MetricMember metric_members[] = {
#define METRIC(table, place, function) \
    {#table, place, reinterpret_cast<void*>(static_cast<decltype(&::function)>(&fake_ze::function))},
#include "metrics.def"
};

ze_result_t fill_metrics(const std::string& wanted, ze_api_version_t version, void** table) {
    if (table == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    if (ZE_MAJOR_VERSION(version) != 1) return ZE_RESULT_ERROR_UNSUPPORTED_VERSION;
    for (const MetricMember& member : metric_members) {
        if (wanted == member.table) table[member.place] = member.function;
    }
    return ZE_RESULT_SUCCESS;
}

}  // namespace
}  // namespace fake_ze

#define METRIC_TABLE(name, size)                                                                                \
    extern "C" __attribute__((visibility("default"))) ze_result_t get_zet_##name(ze_api_version_t, void**) __asm__( \
        "zetGet" #name "ProcAddrTable");                                                                        \
    extern "C" ze_result_t get_zet_##name(ze_api_version_t version, void** table) {                             \
        return fake_ze::fill_metrics(#name, version, table);                                                    \
    }
#include "metrics.def"
