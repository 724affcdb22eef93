// A loader of Level Zero as new as API 1.17, for what Debian's does not know: it asks one driver for its tables, hands
// them through the tracing layer as real loaders do, and exports every function of functions.def.
//
//   ZE_ENABLE_ALT_DRIVERS=PATH    the driver (one)
//   ZE_ENABLE_TRACING_LAYER=1     libze_tracing_layer.so.1, found as dlopen finds it, gets all tables after the driver
//   FAKE_ZE_LOADER_API=N           the minor version that it asks for (default 17)
//
// What the real loaders do, and this one therefore too: getters that are missing are borne, except the layer's
// zelGetTracerApiProcAddrTable, without which zeInit fails with 0x78000001; the layer's getter of the global table is
// called a second time, with the table that it has already changed.
#include <dlfcn.h>
#include <level_zero/ze_api.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <mutex>
#include <string>

namespace {

ze_result_t unsupported() { return ZE_RESULT_ERROR_UNSUPPORTED_FEATURE; }
ze_result_t uninitialized() { return ZE_RESULT_ERROR_UNINITIALIZED; }

}  // namespace

// Where each exported function jumps to.
#define ENTRY(table, function, minor) \
    extern "C" __attribute__((visibility("hidden"))) void* to_##function;  \
    void* to_##function = reinterpret_cast<void*>(&uninitialized);
#include "../functions.def"

// The exports take any arguments, so they are jumps: nothing of the caller's is touched.
#if defined(__x86_64__)
#define JUMP(function) "jmp *to_" #function "(%rip)\n"
#elif defined(__aarch64__)
#define JUMP(function) "adrp x16, to_" #function "\nldr x16, [x16, :lo12:to_" #function "]\nbr x16\n"
#else
#error "no jump for this architecture"
#endif
#define ENTRY(table, function, minor)                                    \
    __asm__(".text\n.globl " #function "\n.type " #function ", %function\n" #function ":\n" JUMP(function) \
            ".size " #function ", .-" #function "\n");
#include "../functions.def"

// Those of the tools' tables, which layers do not see.
#define METRIC(table, place, function) \
    extern "C" __attribute__((visibility("hidden"))) void* to_##function;  \
    void* to_##function = reinterpret_cast<void*>(&uninitialized);
#include "../metrics.def"
#define METRIC(table, place, function)                                   \
    __asm__(".text\n.globl " #function "\n.type " #function ", %function\n" #function ":\n" JUMP(function) \
            ".size " #function ", .-" #function "\n");
#include "../metrics.def"

namespace {

struct Metric {
    const char* getter;
    size_t place;
    void** target;
};

const Metric metrics[] = {
#define METRIC(table, place, function) {"zetGet" #table "ProcAddrTable", place, &to_##function},
#include "../metrics.def"
};

struct Member {
    int table;
    uint32_t minor;
    void** target;
};

enum Table {
#define TABLE(name) name,
#include "../functions.def"
};

constexpr const char* table_names[] = {
#define TABLE(name) #name,
#include "../functions.def"
};

const Member members[] = {
#define ENTRY(table, function, minor) {table, minor, &to_##function},
#include "../functions.def"
};

using Getter = ze_result_t (*)(ze_api_version_t, void**);

uint32_t minor_version() {
    const char* text = std::getenv("FAKE_ZE_LOADER_API");
    return text == nullptr ? 17 : static_cast<uint32_t>(std::atoi(text));
}

ze_result_t call_getter(void* library, int table, void** entries, bool must_exist) {
    const std::string name = std::string("zeGet") + table_names[table] + "ProcAddrTable";
    const auto getter = reinterpret_cast<Getter>(dlsym(library, name.c_str()));
    if (getter == nullptr) return must_exist ? ZE_RESULT_ERROR_UNINITIALIZED : ZE_RESULT_SUCCESS;
    return getter(static_cast<ze_api_version_t>(ZE_MAKE_VERSION(1, minor_version())), entries);
}

void* open_layer(ze_result_t& result) {
    const char* enabled = std::getenv("ZE_ENABLE_TRACING_LAYER");
    if (enabled == nullptr || std::string(enabled) != "1") return nullptr;
    void* layer = dlopen("libze_tracing_layer.so.1", RTLD_LAZY | RTLD_LOCAL);
    if (layer == nullptr) {
        std::fprintf(stderr, "loader: %s\n", dlerror());
        return nullptr;
    }
    const auto getter = reinterpret_cast<Getter>(dlsym(layer, "zelGetTracerApiProcAddrTable"));
    void* tracer_table[8] = {};
    result = getter == nullptr ? ZE_RESULT_ERROR_UNINITIALIZED
                               : getter(static_cast<ze_api_version_t>(ZE_MAKE_VERSION(1, minor_version())), tracer_table);
    return layer;
}

ze_result_t load() {
    const char* path = std::getenv("ZE_ENABLE_ALT_DRIVERS");
    void* driver = path == nullptr ? nullptr : dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    if (driver == nullptr) return ZE_RESULT_ERROR_UNINITIALIZED;
    ze_result_t result = ZE_RESULT_SUCCESS;
    void* layer = open_layer(result);
    for (int table = 0; table < static_cast<int>(std::size(table_names)) && result == ZE_RESULT_SUCCESS; ++table) {
        static void* entries[64];  // not on the stack, where loaders only check drivers
        std::fill(std::begin(entries), std::end(entries), nullptr);
        result = call_getter(driver, table, entries, table == Global);
        for (int time = 0; layer != nullptr && result == ZE_RESULT_SUCCESS && time < (table == Global ? 2 : 1); ++time) {
            result = call_getter(layer, table, entries, false);
        }
        size_t at = 0;
        for (const Member& member : members) {
            if (member.table != table) continue;
            const bool is_there = member.minor <= minor_version() && entries[at] != nullptr;
            *member.target = is_there ? entries[at] : reinterpret_cast<void*>(&unsupported);
            if (member.minor <= minor_version()) ++at;
        }
    }
    for (const Metric& metric : metrics) {
        void* entries[8] = {};
        const auto getter = reinterpret_cast<Getter>(dlsym(driver, metric.getter));
        if (getter == nullptr) continue;
        getter(static_cast<ze_api_version_t>(ZE_MAKE_VERSION(1, minor_version())), entries);
        *metric.target = entries[metric.place] != nullptr ? entries[metric.place] : reinterpret_cast<void*>(&unsupported);
    }
    return result;
}

ze_result_t load_once() {
    static const ze_result_t result = load();
    return result;
}

ze_result_t init(ze_init_flags_t flags) {
    if (const ze_result_t result = load_once(); result != ZE_RESULT_SUCCESS) return result;
    return reinterpret_cast<ze_result_t (*)(ze_init_flags_t)>(to_zeInit)(flags);
}

ze_result_t init_drivers(uint32_t* count, ze_driver_handle_t* drivers, void* desc) {
    if (const ze_result_t result = load_once(); result != ZE_RESULT_SUCCESS) return result;
    return reinterpret_cast<ze_result_t (*)(uint32_t*, ze_driver_handle_t*, void*)>(to_zeInitDrivers)(count, drivers,
                                                                                                      desc);
}

// Until the tables are there, the two functions that a program may call first lead here.
__attribute__((constructor)) void prepare() {
    to_zeInit = reinterpret_cast<void*>(&init);
    to_zeInitDrivers = reinterpret_cast<void*>(&init_drivers);
}

}  // namespace
