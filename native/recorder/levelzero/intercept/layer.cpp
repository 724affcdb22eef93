// The library in the place of the loader's tracing layer: tables of function pointers are handed to us, and we put our
// functions into them.
#include <dlfcn.h>
#include <pthread.h>

#include <algorithm>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "api/entry_points.hpp"

namespace lanescope::levelzero {

namespace {

// A table on the stack of the thread is a loader's check of a driver: no call of the program goes through it.
bool is_on_stack(const void* address) {
    pthread_attr_t attributes;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0) return false;
    void* base = nullptr;
    size_t size = 0;
    const bool is_known = pthread_attr_getstack(&attributes, &base, &size) == 0;
    pthread_attr_destroy(&attributes);
    const auto* begin = static_cast<const char*>(base);
    const auto* at = static_cast<const char*>(address);
    return is_known && !std::less<>()(at, begin) && std::less<>()(at, begin + size);
}

// The functions that another layer has left in the places of the recorder: it calls the recorder in turn.
void* left[function_count];
std::mutex table_mutex;

// Loaders fill the table that calls go through where it stands: for zesInit, and for each of zeInit and zeInitDrivers. The
// driver's functions are in it until we come, so calls that other threads make in between go past the recorder, and what they
// would have been told of their events is the driver's answer. That cannot be prevented from here, nor seen: it is told.
// Tables are told apart by where they stand: a process may have several loaders.
void note_fill(void** members) {
    static auto& filled = *new std::vector<void**>;
    if (std::find(filled.begin(), filled.end(), members) == filled.end()) return filled.push_back(members);
    if (has_other_threads()) emit<Record::degraded>(host_ns(), Scope::process, u64{0}, Reason::tables_refilled, u32{0}, u32{1});
}

// Replaces what a table holds. It has the members of the requested version and no more. False: it is one that came
// before, and another layer stands in it already.
bool patch_table(Table table, u32 version, void** members) {
    const u32 minor = version & 0xffff;
    size_t member = 0;
    bool is_filled = false;
    for (const FunctionSlot& slot : function_slots) {
        if (slot.table != table) continue;
        if (slot.minor > minor) break;
        void*& found = members[member++];
        if (slot.function == Function::count || found == nullptr) continue;
        if (found == left[index(slot.function)]) return false;
        void* ours = entry(InterceptPath::layer, slot.function);
        if (found == ours) continue;
        is_filled = true;
        targets[static_cast<size_t>(InterceptPath::layer)][index(slot.function)].store(found, std::memory_order_release);
        choose_route(InterceptPath::layer, slot.function);
        if (is_recorded(slot.function)) found = ours;
    }
    // Of each time that all tables are filled, once.
    if (is_filled && table == Table::CommandList) note_fill(members);
    return true;
}

void note_left(Table table, u32 version, void** members) {
    size_t member = 0;
    for (const FunctionSlot& slot : function_slots) {
        if (slot.table != table) continue;
        if (slot.minor > (version & 0xffff)) break;
        void* found = members[member++];
        if (slot.function == Function::count || found == nullptr) continue;
        const bool is_theirs = found != entry(InterceptPath::layer, slot.function) &&
                               found != targets[static_cast<size_t>(InterceptPath::layer)][index(slot.function)].load();
        if (is_theirs) left[index(slot.function)] = found;
    }
}

// The tracing layer whose place we took, where the program may use it: it comes between the program and us, so that its
// callbacks see the program's calls and not ours.
void* chained(const char* name) {
    static void* library = [] {
        const std::string& path = settings().chain;
        return path.empty() ? nullptr : dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    }();
    return library == nullptr ? nullptr : dlsym(library, name);
}

Result claim_table(Table table, const char* getter, u32 version, void** members) {
    if (members == nullptr) return success;
    const auto other = reinterpret_cast<Result (*)(u32, void**)>(chained(getter));
    // Of another major version nothing is known: the program runs as if we were not there.
    // Only the table with zeInit is used so.
    const bool is_check = table == Table::Global && is_on_stack(members);
    const bool is_known = is_active() && version >> 16 == 1 && !is_check;
    const std::lock_guard guard(table_mutex);
    if (is_known && !patch_table(table, version, members)) return success;
    if (other != nullptr && other(version, members) == success && is_known) note_left(table, version, members);
    return success;
}

// Asks the other layer to call a function of the program's around calls.
using RegisterCallback = Result (*)(Handle tracer, u32 when, void* callback);
Result register_callback(const char* name, Handle tracer, u32 when, void* callback) {
    const auto other = reinterpret_cast<RegisterCallback>(chained(name));
    return other != nullptr ? other(tracer, when, callback) : unsupported_feature;
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

// A loader looks these up in the layer that it has opened, which is ours: one for each function, named after it.
#define FORWARD(function)                                                                                              \
    extern "C" __attribute__((visibility("default"))) lanescope::levelzero::Result tracer_##function(                   \
        lanescope::levelzero::Handle tracer, uint32_t when, void* callback) __asm__("zelTracer" #function);             \
    extern "C" lanescope::levelzero::Result tracer_##function(lanescope::levelzero::Handle tracer, uint32_t when,       \
                                                              void* callback) {                                        \
        return lanescope::levelzero::register_callback("zelTracer" #function, tracer, when, callback);                 \
    }
#include "tracer_functions.inc"
// Those that are named otherwise.
FORWARD(GetDefaultContextRegisterCallback)
FORWARD(GetLastErrorDescriptionRegisterCallback)
FORWARD(TranslateDeviceHandleToIdentifierRegisterCallback)
FORWARD(TranslateIdentifierToDeviceHandleRegisterCallback)
