// Programs that take fields out of CTF, as Python has them.
#pragma once
#include "bind/arrays.hpp"
#include "core/wire/ctf/program.hpp"

namespace lanescope::bind {

// Raises `ValueError` where a program leads astray.
ctf::Extraction extraction_of(const Rows<const int64_t>& steps, const Rows<const uint64_t>& choices, size_t slots,
                              uint64_t packet, uint64_t event);

}  // namespace lanescope::bind
