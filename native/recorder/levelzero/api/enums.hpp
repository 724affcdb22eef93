// Values with names in the trace.
#pragma once

#include <type_traits>

#include "api/functions.hpp"

namespace lanescope::levelzero {

// Which function appended an operation.
enum class Api : std::conditional_t<function_count <= 256, u8, u16> {};

// How the timestamps of an operation come.
enum class TimestampSource : u8 { untimed, inline_query, chained, bare, watched };
inline constexpr const char* how_names[] = {"UNTIMED", "INLINE", "CHAINED", "BARE", "WATCH"};

// Why something is not timed, or was given up.
enum class Reason : u8 {
    none,
    not_timed,                // nothing runs on the device, or timing is switched off
    no_memory,                // the driver had no event or no memory for it
    unknown_list,             // the making of its list was not seen
    region_off,
    too_many_waits,
    out_of_order_no_reset,    // unordered list that may run again, under a driver whose resets do not un-signal
    cloneable,                // clones would share our event and cell
    is_mutable,               // commands that may be changed would bypass our event
    capturing,                // the list records a graph
    device_error,
    chain_failed,             // the program's signal could not be handed on
    not_drained,              // its context, or the process, ended before its result was there
    duplicate_in_execute,     // a list stands twice in one execution: there is one cell for both
    user_query_untranslated,  // the program's query reads an event of which the operation is not known any more
    query_refused,            // no query in the list: the host reads the ticks
    copy_refused,             // no copy that hands the signal on: a barrier does
    shared_event,             // several commands may have signalled the program's event that was watched
    event_destroyed,          // ... and it was destroyed before its ticks could be read
    prologue,                 // runs with commands of the recorder in front, which reset our events
    prologue_barrier,         // ... that are ordered by a barrier: the driver may know no in-order lists
    prologue_refused,         // ... which the driver refused: a list of the recorder did it before, and was waited for
    overlapping,              // its list was submitted again while it ran: what the host reads may be of either run
    captured,                 // closed lists that are part of a graph: which runs they have is not seen
    tables_refilled,          // the loader filled its tables anew while the program had several threads: see layer.cpp
    read_by_device,           // a query of the program, older than the operation, reads its event itself
    count
};
inline constexpr const char* reason_names[] = {
    "",           "not_timed",        "no_memory",    "unknown_list", "region_off",   "too_many_waits",
    "out_of_order_no_reset", "cloneable", "mutable",  "capturing",    "device_error", "chain_failed",
    "not_drained", "duplicate_in_execute", "user_query_untranslated", "query_refused", "copy_refused",
    "shared_event", "event_destroyed", "prologue",  "prologue_barrier", "prologue_refused", "overlapping",
    "captured",   "tables_refilled",  "read_by_device",
};
static_assert(sizeof reason_names / sizeof *reason_names == static_cast<size_t>(Reason::count));

enum class Scope : u8 { process, context, list, op, event };
inline constexpr const char* scope_names[] = {"process", "context", "list", "op", "event"};

enum class Memory : u8 { host, device, shared };
inline constexpr const char* memory_names[] = {"host", "device", "shared"};

struct ResultName {
    Result value;
    const char* name;
};
// Source: the Level Zero specification 1.17, ze_result_t.
inline constexpr ResultName result_names[] = {
    {0, "ZE_RESULT_SUCCESS"},
    {1, "ZE_RESULT_NOT_READY"},
    {0x70000001, "ZE_RESULT_ERROR_DEVICE_LOST"},
    {0x70000002, "ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY"},
    {0x70000003, "ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY"},
    {0x70000004, "ZE_RESULT_ERROR_MODULE_BUILD_FAILURE"},
    {0x70000005, "ZE_RESULT_ERROR_MODULE_LINK_FAILURE"},
    {0x70000006, "ZE_RESULT_ERROR_DEVICE_REQUIRES_RESET"},
    {0x70000007, "ZE_RESULT_ERROR_DEVICE_IN_LOW_POWER_STATE"},
    {0x70010000, "ZE_RESULT_ERROR_INSUFFICIENT_PERMISSIONS"},
    {0x70010001, "ZE_RESULT_ERROR_NOT_AVAILABLE"},
    {0x70020000, "ZE_RESULT_ERROR_DEPENDENCY_UNAVAILABLE"},
    {0x70020001, "ZE_RESULT_WARNING_DROPPED_DATA"},
    {0x78000001, "ZE_RESULT_ERROR_UNINITIALIZED"},
    {0x78000002, "ZE_RESULT_ERROR_UNSUPPORTED_VERSION"},
    {0x78000003, "ZE_RESULT_ERROR_UNSUPPORTED_FEATURE"},
    {0x78000004, "ZE_RESULT_ERROR_INVALID_ARGUMENT"},
    {0x78000005, "ZE_RESULT_ERROR_INVALID_NULL_HANDLE"},
    {0x78000006, "ZE_RESULT_ERROR_HANDLE_OBJECT_IN_USE"},
    {0x78000007, "ZE_RESULT_ERROR_INVALID_NULL_POINTER"},
    {0x78000008, "ZE_RESULT_ERROR_INVALID_SIZE"},
    {0x78000009, "ZE_RESULT_ERROR_UNSUPPORTED_SIZE"},
    {0x7800000a, "ZE_RESULT_ERROR_UNSUPPORTED_ALIGNMENT"},
    {0x7800000b, "ZE_RESULT_ERROR_INVALID_SYNCHRONIZATION_OBJECT"},
    {0x7800000c, "ZE_RESULT_ERROR_INVALID_ENUMERATION"},
    {0x7800000d, "ZE_RESULT_ERROR_UNSUPPORTED_ENUMERATION"},
    {0x7800000e, "ZE_RESULT_ERROR_UNSUPPORTED_IMAGE_FORMAT"},
    {0x7800000f, "ZE_RESULT_ERROR_INVALID_NATIVE_BINARY"},
    {0x78000010, "ZE_RESULT_ERROR_INVALID_GLOBAL_NAME"},
    {0x78000011, "ZE_RESULT_ERROR_INVALID_KERNEL_NAME"},
    {0x78000012, "ZE_RESULT_ERROR_INVALID_FUNCTION_NAME"},
    {0x78000013, "ZE_RESULT_ERROR_INVALID_GROUP_SIZE_DIMENSION"},
    {0x78000014, "ZE_RESULT_ERROR_INVALID_GLOBAL_WIDTH_DIMENSION"},
    {0x78000015, "ZE_RESULT_ERROR_INVALID_KERNEL_ARGUMENT_INDEX"},
    {0x78000016, "ZE_RESULT_ERROR_INVALID_KERNEL_ARGUMENT_SIZE"},
    {0x78000017, "ZE_RESULT_ERROR_INVALID_KERNEL_ATTRIBUTE_VALUE"},
    {0x78000018, "ZE_RESULT_ERROR_INVALID_MODULE_UNLINKED"},
    {0x78000019, "ZE_RESULT_ERROR_INVALID_COMMAND_LIST_TYPE"},
    {0x7800001a, "ZE_RESULT_ERROR_OVERLAPPING_REGIONS"},
    {0x7800001b, "ZE_RESULT_WARNING_ACTION_REQUIRED"},
    {0x7800001c, "ZE_RESULT_ERROR_INVALID_KERNEL_HANDLE"},
    {0x7800001d, "ZE_RESULT_EXT_RTAS_BUILD_RETRY"},
    {0x7800001e, "ZE_RESULT_EXT_RTAS_BUILD_DEFERRED"},
    {0x7800001f, "ZE_RESULT_EXT_ERROR_OPERANDS_INCOMPATIBLE"},
    {0x78000020, "ZE_RESULT_ERROR_SURVIVABILITY_MODE_DETECTED"},
    {0x78000021, "ZE_RESULT_ERROR_ADDRESS_NOT_FOUND"},
    {0x78000022, "ZE_RESULT_QUERY_TRUE"},
    {0x78000023, "ZE_RESULT_QUERY_FALSE"},
    {0x78000024, "ZE_RESULT_ERROR_INVALID_GRAPH"},
    {0x78000025, "ZE_RESULT_ERROR_GRAPH_CAPTURE_UNSUPPORTED"},
    {0x78000026, "ZE_RESULT_ERROR_GRAPH_CAPTURE_INVALIDATED"},
    {0x78000027, "ZE_RESULT_ERROR_GRAPH_CAPTURE_MERGE_ATTEMPT"},
    {0x78000028, "ZE_RESULT_ERROR_COMMAND_LIST_NOT_CAPTURING"},
    {0x78000029, "ZE_RESULT_ERROR_GRAPH_UNJOINED_FORKS"},
    {0x7800002a, "ZE_RESULT_ERROR_GRAPH_INTERNAL_EVENT"},
    {0x7ff00001, "ZE_RESULT_EXP_ERROR_DEVICE_IS_NOT_VERTEX"},
    {0x7ff00002, "ZE_RESULT_EXP_ERROR_VERTEX_IS_NOT_DEVICE"},
    {0x7ff00003, "ZE_RESULT_EXP_ERROR_REMOTE_DEVICE"},
    {0x7ff00004, "ZE_RESULT_EXP_ERROR_OPERANDS_INCOMPATIBLE"},
    {0x7ff00005, "ZE_RESULT_EXP_RTAS_BUILD_RETRY"},
    {0x7ff00006, "ZE_RESULT_EXP_RTAS_BUILD_DEFERRED"},
    {0x7ffffffe, "ZE_RESULT_ERROR_UNKNOWN"},
};

// Events that an operation waits for.
struct Waits {
    const Handle* events;
    u16 count;
};

// The recorder's own records, in the order of records.def.
enum class Record : u16 {
#define RECORD(name, ...) name,
#include "api/records.def"
    count
};
inline constexpr size_t record_count = static_cast<size_t>(Record::count);
inline constexpr const char* record_names[] = {
#define RECORD(name, ...) #name,
#include "api/records.def"
};

template <Record R>
struct Fields;
#define RECORD(name, ...)                             \
    template <>                                       \
    struct Fields<Record::name> {                     \
        using Type = void(__VA_ARGS__);               \
        static constexpr const char* names = #__VA_ARGS__; \
    };
#include "api/records.def"

// Numbers of events in the trace.
constexpr u16 entry_id(Function function) { return static_cast<u16>(2 * index(function)); }
constexpr u16 exit_id(Function function) { return static_cast<u16>(2 * index(function) + 1); }
constexpr u16 record_id(Record record) {
    // Sensors have numbers of their own, so that other records keep theirs.
    constexpr size_t apart = 16;
    const auto place = static_cast<size_t>(record);
    return static_cast<u16>(2 * function_count + place + (record < Record::sampling ? 0 : apart));
}

}  // namespace lanescope::levelzero
