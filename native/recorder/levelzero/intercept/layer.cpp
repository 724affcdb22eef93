// The library in the place of the loader's tracing layer: tables of function pointers are handed to us, and we put our
// functions into them.
#include <dlfcn.h>

#include <mutex>

#include "api/entry_points.hpp"

namespace lanescope::levelzero {

namespace {

// Replaces what a table holds. It has the members of the requested version and no more; the same table may come again.
void patch_table(Table table, u32 version, void** members) {
    static std::mutex mutex;
    const std::lock_guard guard(mutex);
    const u32 minor = version & 0xffff;
    size_t member = 0;
    for (const FunctionSlot& slot : function_slots) {
        if (slot.table != table) continue;
        if (slot.minor > minor) break;
        void*& found = members[member++];
        if (slot.function == Function::count || found == nullptr) continue;
        void* ours = entry(InterceptPath::layer, slot.function);
        if (found == ours) continue;
        targets[static_cast<size_t>(InterceptPath::layer)][index(slot.function)].store(found, std::memory_order_release);
        if (is_recorded(slot.function)) found = ours;
    }
}

// The tracing layer whose place we took, where the program wants it too: it comes between the driver and us.
void* chained(const char* name) {
    static void* library = [] {
        const std::string& path = settings().chain;
        return path.empty() ? nullptr : dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    }();
    return library == nullptr ? nullptr : dlsym(library, name);
}

Result claim_table(Table table, const char* getter, u32 version, void** members) {
    if (members == nullptr) return success;
    if (const auto other = reinterpret_cast<Result (*)(u32, void**)>(chained(getter))) other(version, members);
    // Of another major version nothing is known: the program runs as if we were not there.
    if (is_active() && version >> 16 == 1) patch_table(table, version, members);
    return success;
}

}  // namespace

}  // namespace lanescope::levelzero

// What a loader asks a tracing layer for. It must accept every version of API 1: a newer loader loads whatever layer
// it finds, and fails where that one refuses.
#define TABLE(table)                                                                                         \
    extern "C" __attribute__((visibility("default"))) lanescope::levelzero::Result                           \
        zeGet##table##ProcAddrTable(uint32_t version, void** members) {                                      \
        return lanescope::levelzero::claim_table(lanescope::levelzero::Table::table, "zeGet" #table "ProcAddrTable", \
                                          version, members);                                                 \
    }
#include "api/functions.def"

// Tables without intercepted functions. The loader requires the first; without it no program starts.
#define PASSED(getter)                                                                                                 \
    extern "C" __attribute__((visibility("default"))) lanescope::levelzero::Result getter(uint32_t version, void** members) { \
        const auto other = reinterpret_cast<lanescope::levelzero::Result (*)(uint32_t, void**)>(                        \
            lanescope::levelzero::chained(#getter));                                                                   \
        return other != nullptr ? other(version, members) : lanescope::levelzero::success;                             \
    }
PASSED(zelGetTracerApiProcAddrTable)
PASSED(zerGetGlobalProcAddrTable)
