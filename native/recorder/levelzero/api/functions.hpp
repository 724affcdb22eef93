// The functions of functions.def as an enumeration and as constants.
#pragma once

#include <string_view>

#include "api/api.hpp"
#include "api/parameters.hpp"

namespace lanescope::levelzero {

// Every function that is recorded, in the order of functions.def.
enum class Function : u16 {
#define CALL(table, function, minor, ...) function,
#include "api/functions.def"
    count
};
inline constexpr size_t function_count = static_cast<size_t>(Function::count);

enum class Table : u16 {
#define TABLE(table) table,
#include "api/functions.def"
    count
};
inline constexpr size_t table_count = static_cast<size_t>(Table::count);

constexpr size_t index(Function function) { return static_cast<size_t>(function); }

// Names as the API has them.
inline constexpr const char* function_names[] = {
#define CALL(table, function, minor, ...) #function,
#include "api/functions.def"
};

// Where each function stands, and since which version of API 1.x: a member of a table is known by its place, so tables
// grow at their ends only.
struct FunctionSlot {
    Table table;
    Function function;  // count: not a recorded function
    u16 minor;
};
inline constexpr FunctionSlot function_slots[] = {
#define CALL(table, function, minor, ...) {Table::table, Function::function, minor},
#define PLACE(table, function, minor) {Table::table, Function::count, minor},
#include "api/functions.def"
};

constexpr bool is_sorted_by_version() {
    for (size_t i = 1; i < sizeof function_slots / sizeof *function_slots; ++i) {
        const FunctionSlot &slot = function_slots[i], &before = function_slots[i - 1];
        if (slot.table == before.table && slot.minor < before.minor) return false;
        if (slot.table < before.table) return false;
    }
    return true;
}
static_assert(is_sorted_by_version(), "functions.def: a member stands before an older one of its table");

// Type and parameters ("Handle hQueue, u32 count") of a function.
template <Function F>
struct Signature;
#define CALL(table, function, minor, ...)                                          \
    template <>                                                                    \
    struct Signature<Function::function> {                                         \
        using Type = Result(LANESCOPE_PARAMETERS(__VA_ARGS__));                     \
        static constexpr const char* parameters = LANESCOPE_TEXT(LANESCOPE_PARAMETERS(__VA_ARGS__)); \
    };
#include "api/functions.def"

// Whether a function appends an operation; a record of its own tells the parameters then.
constexpr bool is_append(Function function) {
    const std::string_view name = function_names[index(function)];
    if (name == "zeRTASBuilderCommandListAppendCopyExt") return true;
    return name.starts_with("zeCommandListAppend") && !name.ends_with("MemoryPrefetch") && !name.ends_with("MemAdvise") &&
           !name.ends_with("WaitOnEvents") && !name.ends_with("EventReset");
}

}  // namespace lanescope::levelzero
