// The environment that the process was started with: a program may have emptied its own before it opens the loader.
#pragma once

namespace lanescope::levelzero {

// A variable as it is now, else as it was at the start of the process; null if it was never there.
const char* given_variable(const char* name);

}  // namespace lanescope::levelzero
