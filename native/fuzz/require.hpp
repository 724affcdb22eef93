// What must hold for every input.
#pragma once
#include <cstdio>
#include <cstdlib>
#include <source_location>

namespace lanescope::fuzz {

inline void require(bool holds, std::source_location where = std::source_location::current()) {
    if (holds) return;
    std::fprintf(stderr, "does not hold: %s:%u\n", where.file_name(), where.line());
    std::abort();
}

}  // namespace lanescope::fuzz
