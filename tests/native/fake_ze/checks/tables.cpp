// Ask the driver for every table in every version: it must write the members that the version has, and no more.
// Usage: fake_ze_tables DRIVER
#include <dlfcn.h>
#include <level_zero/ze_api.h>

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace {

struct Member {
    const char* table;
    const char* function;
    uint32_t minor;
};

constexpr const char* tables[] = {
#define TABLE(name) #name,
#include "../functions.def"
};

constexpr Member members[] = {
#define ENTRY(table, function, minor) {#table, #function, minor},
#include "../functions.def"
};

}  // namespace

int main(int, char** arguments) {
    void* driver = dlopen(arguments[1], RTLD_NOW);
    if (driver == nullptr) {
        std::printf("%s\n", dlerror());
        return 1;
    }
    int wrong = 0, asked = 0;
    static char untouched;
    for (const char* table : tables) {
        const std::string name = std::string("zeGet") + table + "ProcAddrTable";
        const auto getter = reinterpret_cast<ze_result_t (*)(uint32_t, void**)>(dlsym(driver, name.c_str()));
        for (uint32_t minor = 0; getter != nullptr && minor <= 17; ++minor) {
            std::vector<void*> entries(64, &untouched);
            wrong += getter(ZE_MAKE_VERSION(1, minor), entries.data()) != ZE_RESULT_SUCCESS;
            size_t has = 0;
            for (const Member& member : members) has += member.table == std::string(table) && member.minor <= minor;
            for (size_t i = 0; i < entries.size(); ++i) {
                const bool is_written = entries[i] != &untouched;
                if (is_written == (i < has) && entries[i] != nullptr) continue;
                std::printf("%s, version 1.%u, member %zu\n", table, minor, i);
                ++wrong;
            }
            ++asked;
        }
        if (getter == nullptr || getter(ZE_MAKE_VERSION(2, 0), nullptr) == ZE_RESULT_SUCCESS) {
            std::printf("%s: no getter, or one that takes anything\n", table);
            ++wrong;
        }
    }
    std::printf("%d tables asked for, %d wrong\n", asked, wrong);
    return wrong == 0 ? 0 : 1;
}
