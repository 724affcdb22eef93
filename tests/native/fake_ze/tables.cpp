// The tables of functions that loaders ask for, by the contract of Level Zero: the caller's table may be as old as API
// 1.0 and is then short, so a member is written only if the version asked for has it.
#include <cstdint>

#include "api.hpp"
#include "driver_quirks.hpp"

namespace fake_ze {
namespace {

enum class Table : uint8_t {
#define TABLE(table) table,
#include "functions.def"
};

struct Member {
    Table table;
    uint32_t minor;
    void* function;
};

ze_result_t unsupported() { return ZE_RESULT_ERROR_UNSUPPORTED_FEATURE; }

const Member members[] = {
#define ENTRY(table, function, minor) {Table::table, minor, reinterpret_cast<void*>(&unsupported)},
#define HERE(table, function, minor) \
    {Table::table, minor, reinterpret_cast<void*>(static_cast<decltype(&::function)>(&fake_ze::function))},
#define NEWER(table, function, minor) {Table::table, minor, reinterpret_cast<void*>(&fake_ze::function)},
#include "functions.def"
};

ze_result_t fill(Table table, ze_api_version_t version, void** members_out) {
    if (members_out == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    if (ZE_MAJOR_VERSION(version) != 1) return ZE_RESULT_ERROR_UNSUPPORTED_VERSION;
    const uint32_t asked = ZE_MINOR_VERSION(version);
    for (const Member& member : members) {
        if (member.table != table) continue;
        if (member.minor > asked) break;  // members were only ever added at the end
        *members_out++ = member.minor <= quirks().api_minor ? member.function : nullptr;
    }
    return ZE_RESULT_SUCCESS;
}

// The other tables of tools and sysman stay as they are: there is nothing behind them, but old loaders insist on asking.
ze_result_t leave_alone(ze_api_version_t version, const void* table) {
    if (table == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    return ZE_MAJOR_VERSION(version) == 1 ? ZE_RESULT_SUCCESS : ZE_RESULT_ERROR_UNSUPPORTED_VERSION;
}

}  // namespace
}  // namespace fake_ze

// The headers declare the getters with a type for each table; the label gives a function of ours their name.
#define EXPORTED(symbol, cname)                                                                       \
    extern "C" __attribute__((visibility("default"))) ze_result_t cname(ze_api_version_t, void**) __asm__(symbol); \
    extern "C" ze_result_t cname(ze_api_version_t version, void** table)

#define TABLE(name) \
    EXPORTED("zeGet" #name "ProcAddrTable", get_##name) { return fake_ze::fill(fake_ze::Table::name, version, table); }
#include "functions.def"

#define UNUSED_TABLE(name) \
    EXPORTED(#name "ProcAddrTable", get_##name) { return fake_ze::leave_alone(version, table); }
UNUSED_TABLE(zetGetDevice)
UNUSED_TABLE(zetGetContext)
UNUSED_TABLE(zetGetKernel)
UNUSED_TABLE(zetGetModule)
UNUSED_TABLE(zetGetDebug)
UNUSED_TABLE(zetGetMetric)
UNUSED_TABLE(zetGetMetricGroup)
UNUSED_TABLE(zetGetMetricGroupExp)
UNUSED_TABLE(zetGetMetricStreamer)
UNUSED_TABLE(zetGetTracerExp)
UNUSED_TABLE(zesGetDiagnostics)
UNUSED_TABLE(zesGetFabricPort)
UNUSED_TABLE(zesGetFan)
UNUSED_TABLE(zesGetFirmware)
UNUSED_TABLE(zesGetLed)
UNUSED_TABLE(zesGetPerformanceFactor)
UNUSED_TABLE(zesGetPsu)
UNUSED_TABLE(zesGetRas)
UNUSED_TABLE(zesGetScheduler)
UNUSED_TABLE(zesGetStandby)
