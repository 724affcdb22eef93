// Our functions in place of those of the API.
#pragma once

#include "intercept/hooks.hpp"

namespace lanescope::levelzero {

// Our function for a function of the API.
void* entry(InterceptPath way, Function function);
// Whether anything is to be done when it is called; else it is left as it is.
bool is_recorded(Function function);

// Returns our function for one that a driver gave out by name, or that one itself where we know none.
void* wrapped_extension(Text name, void* address);

}  // namespace lanescope::levelzero
