#include "stream/environment.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string>
#include <string_view>

namespace lanescope::levelzero {

namespace {

// Texts that end with a zero each, as the kernel keeps them.
std::string first_environment() {
    std::string all;
    const int file = ::open("/proc/self/environ", O_RDONLY | O_CLOEXEC);
    if (file < 0) return all;
    char part[4096];
    for (ssize_t count; (count = ::read(file, part, sizeof part)) != 0;) {
        if (count > 0) all.append(part, static_cast<size_t>(count));
        else if (errno != EINTR) break;
    }
    ::close(file);
    return all;
}

}  // namespace

const char* given_variable(const char* name) {
    if (const char* now = std::getenv(name)) return now;
    // Who has the recorder's own folder still has all the rest, and lacks what was never given.
    if (std::getenv("LANESCOPE_ZE_OUTPUT") != nullptr) return nullptr;
    static const auto* const first = new std::string(first_environment());
    const std::string_view wanted = name;
    for (size_t at = 0; at < first->size();) {
        const char* entry = first->c_str() + at;
        const std::string_view text = entry;
        if (text.size() > wanted.size() && text.starts_with(wanted) && text[wanted.size()] == '=') {
            return entry + wanted.size() + 1;
        }
        at += text.size() + 1;
    }
    return nullptr;
}

}  // namespace lanescope::levelzero
