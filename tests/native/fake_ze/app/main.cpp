// A program for Level Zero that checks its own results.
//
//   fake_ze_app [--dlopen[=LOADER]] SUBCOMMAND [COUNT]
//
// It exits 0 if all was right, 1 if a call failed or a result was wrong, 2 for bad arguments, 3 without a loader.
// Subcommands and what COUNT means: subcommands.hpp. --dlopen runs the same program under its other build, which opens the loader by name (default libze_loader.so.1).
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "api.hpp"
#include "subcommands.hpp"

namespace {

struct Subcommand {
    const char* name;
    void (*run)(uint32_t count);
    uint32_t count;
};

constexpr Subcommand subcommands[] = {
    {"saxpy", saxpy, 4},       {"mixed", mixed, 10},   {"threads", threads, 4},     {"copies", copies, 10},
    {"resubmit", resubmit, 5}, {"fence", fence, 5},    {"unordered", unordered, 8}, {"clock", clock, 3},
    {"kernels", kernels, 3},   {"quirks", quirks, 1},  {"idle", idle, 1000},
};

[[noreturn]] void usage() {
    std::fprintf(stderr, "usage: fake_ze_app [--dlopen[=LOADER]] SUBCOMMAND [COUNT]\n");
    for (const auto& subcommand : subcommands) {
        std::fprintf(stderr, "  %-9s [%u]\n", subcommand.name, subcommand.count);
    }
    std::exit(2);
}

// Become the other build of this program, which lies beside it.
[[noreturn, maybe_unused]] void become_dlopen(char** arguments) {
    char self[4096];
    const ssize_t length = readlink("/proc/self/exe", self, sizeof self);
    std::string path(self, length < 0 ? 0 : static_cast<size_t>(length));
    path += "_dlopen";
    execv(path.c_str(), arguments);
    std::perror(path.c_str());
    std::exit(3);
}

}  // namespace

int main(int count, char** arguments) {
    const char* library = "libze_loader.so.1";
    int at = 1;
    if (at < count && std::strncmp(arguments[at], "--dlopen", 8) == 0) {
#ifdef FAKE_ZE_APP_LINKED
        become_dlopen(arguments);
#endif
        if (arguments[at][8] == '=') library = arguments[at] + 9;
        ++at;
    }
    if (at >= count) usage();
    for (const auto& subcommand : subcommands) {
        if (std::strcmp(subcommand.name, arguments[at]) != 0) continue;
        const uint32_t number = at + 1 < count ? static_cast<uint32_t>(std::atoi(arguments[at + 1])) : subcommand.count;
        bind(library);
        subcommand.run(number);
        if (subcommand.run != quirks && subcommand.run != clock) std::printf("%s: right\n", subcommand.name);
        return 0;
    }
    usage();
}
