// What the recorder remembers of the program's objects.
#pragma once

#include "stream/process.hpp"

namespace lanescope::levelzero {

// Whether this is the first query for a device.
bool is_new_device(Handle device);

// Remembers that memory belongs to a module, and finds what belonged to it.
void add_global(Handle module, Address base);
bool remove_global(Handle module, Address& base);

}  // namespace lanescope::levelzero
