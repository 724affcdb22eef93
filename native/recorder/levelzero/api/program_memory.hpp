// Reading what a program's pointer points to, before the driver has accepted the call: it may lead nowhere, and a call
// that the driver refuses must return the driver's code.
#pragma once

#include <cstring>

#include "api/api.hpp"

namespace lanescope::levelzero {

// Whether all of a piece of memory can be read. Asks the kernel, once for each page.
bool is_readable(const void* at, usize size);

// Copies memory of the program; false, and zeros, where not all of it is there.
inline bool copy_of_program(void* to, const void* from, usize size) {
    if (from != nullptr && is_readable(from, size)) {
        std::memcpy(to, from, size);
        return true;
    }
    std::memset(to, 0, size);
    return false;
}

// A structure of the program's; all zeros where it cannot be read.
template <class T>
T copy_of_program(const T* from) {
    T copied;
    copy_of_program(&copied, from, sizeof copied);
    return copied;
}

// Copies a text up to its zero, or as far as it can be read, at most `most` characters, and a zero. Returns its length.
usize copy_text_of_program(char* to, const char* from, usize most);

}  // namespace lanescope::levelzero
