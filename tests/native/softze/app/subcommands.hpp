// What the program can do; each ends the program if a result is wrong.
#pragma once

#include <cstdint>

void saxpy(uint32_t count);
