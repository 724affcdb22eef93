#include "api/program_memory.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace lanescope::levelzero {

namespace {

constexpr usize page = 4096, word = 8;

// Asks for a change of the signal mask that does not exist: the kernel reads the mask first, and changes nothing. Unlike
// calls that copy memory, this one is allowed in every container.
bool is_word_readable(usize at) {
    constexpr int no_change = ~0;
    const int before = errno;
    const bool is_there = syscall(SYS_rt_sigprocmask, no_change, at, nullptr, word) == 0 || errno != EFAULT;
    errno = before;
    return is_there;
}

}  // namespace

bool is_readable(const void* address, usize size) {
    const auto begin = reinterpret_cast<usize>(address);
    if (size == 0) return true;
    // The kernel would take the address 0 for no mask at all.
    if (begin < word || begin > ~usize{0} - size) return false;
    for (usize at = begin / word * word; at < begin + size; at = (at / page + 1) * page) {
        if (!is_word_readable(at)) return false;
    }
    return true;
}

usize copy_text_of_program(char* to, const char* from, usize most) {
    usize length = 0;
    while (from != nullptr && length < most) {
        const usize left = page - reinterpret_cast<usize>(from + length) % page;
        const usize part = std::min(left, most - length);
        if (!is_readable(from + length, 1)) break;
        const usize found = strnlen(from + length, part);
        std::memcpy(to + length, from + length, found);
        length += found;
        if (found < part) break;
    }
    to[length] = 0;
    return length;
}

}  // namespace lanescope::levelzero
