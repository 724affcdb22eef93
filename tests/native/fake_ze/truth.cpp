#include "truth.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "driver_quirks.hpp"
#include "stats.hpp"

namespace fake_ze {
namespace {

thread_local std::string mark;

int truth_file() {
    static const int file = open(quirks().truth.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    return file;
}

void tell(const std::string& what) {
    std::fprintf(stderr, "fake_ze: %s\n", what.c_str());
    if (truth_wanted()) {
        write_truth("{\"kind\": \"mistake\", \"pid\": " + std::to_string(getpid()) + ", \"what\": " + quoted(what) +
                    "}");
    }
}

}  // namespace

bool truth_wanted() { return !quirks().truth.empty(); }

void write_truth(const std::string& line) {
    const std::string whole = line + "\n";
    // One write to an O_APPEND file is one line, whoever else writes.
    if (write(truth_file(), whole.data(), whole.size()) != static_cast<ssize_t>(whole.size())) {
        std::perror("fake_ze: FAKE_ZE_TRUTH");
        std::abort();
    }
}

std::string quoted(const std::string& text) {
    std::string json = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') {
            json += '\\';
            json += c;
        } else if (static_cast<unsigned char>(c) < 0x20) {
            char escape[8];
            std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(c));
            json += escape;
        } else {
            json += c;
        }
    }
    return json + "\"";
}

void mistake(const std::string& what) {
    static Level count("mistakes");
    count.add(1);
    tell(what);
    if (quirks().abort_on_mistake) std::abort();
}

void oddity(const std::string& what) {
    static Level count("oddities");
    count.add(1);
    tell(what);
}

void set_mark(const char* text) { mark = text == nullptr ? "" : text; }

std::string take_mark() { return std::exchange(mark, {}); }

}  // namespace fake_ze
