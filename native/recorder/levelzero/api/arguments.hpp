// Structures that functions are given, written as fields of their entries.
//
// A program's pointer may be anything, and the driver may refuse the call before it looks at it. So nothing is followed
// but what the contract of the API says is there, after the kernel was asked whether it is: a structure of a known function,
// the chain behind its pNext as far as type and next, one text.
#pragma once

#include <string>

#include "api/functions.hpp"

namespace lanescope::levelzero::arguments {

// Most bytes of the fields of one entry; most structures of a chain; longest text.
inline constexpr usize most_bytes = 1024, most_chain = 16, most_text = 255;
// What stands in a chain in place of what cannot be read, or of what is beyond `most_chain`.
inline constexpr u32 chain_cut = 0xffffffff;

// Whether a function is given such a structure.
constexpr bool has_any(Function function) {
    switch (function) {
        case Function::zeCommandListCreate:
        case Function::zeCommandListCreateImmediate:
        case Function::zeCommandQueueCreate:
        case Function::zeEventPoolCreate:
        case Function::zeEventCreate:
        case Function::zeEventCounterBasedCreate:
        case Function::zeMemAllocShared:
        case Function::zeMemAllocDevice:
        case Function::zeMemAllocHost:
        case Function::zeModuleCreate:
        case Function::zeKernelCreate: return true;
        default: return false;
    }
}
// Writes the fields of a call; `given` are its parameters, those that are no pointers as null. Returns their size.
usize put(Function function, const void* const* given, u8* at);
// The fields in the description of the trace.
std::string fields(Function function);
// The types of structures in the description of the trace, which those fields need.
std::string types();

}  // namespace lanescope::levelzero::arguments
