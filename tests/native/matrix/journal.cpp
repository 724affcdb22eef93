#include "journal.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <deque>
#include <mutex>

namespace {

struct Pages {
    std::mutex mutex;
    std::deque<std::string> all;  // one a thread
};

Pages& pages() {
    static Pages& once = *new Pages;
    return once;
}

std::string& page() {
    thread_local std::string* const mine = [] {
        const std::lock_guard lock(pages().mutex);
        return &pages().all.emplace_back();
    }();
    return *mine;
}

}  // namespace

void note(const std::string& line) {
    page() += line;
    page() += '\n';
}

void tell_written(const std::string& mark, const ze_kernel_timestamp_result_t& found, const std::string& run) {
    std::string line = "written " + mark + " " + run;
    for (const uint64_t value : {found.global.kernelStart, found.global.kernelEnd, found.context.kernelStart,
                                 found.context.kernelEnd}) {
        line += " " + std::to_string(value);
    }
    note(line);
}

size_t noted() { return page().capacity(); }

std::string thread_number() {
    thread_local const std::string number = std::to_string(syscall(SYS_gettid));
    return number;
}

void write_journal() {
    const char* path = std::getenv("MATRIX_JOURNAL");
    if (path == nullptr) return;
    std::FILE* file = std::fopen(path, "w");
    if (file == nullptr) return;
    for (const std::string& lines : pages().all) std::fputs(lines.c_str(), file);
    std::fclose(file);
}
