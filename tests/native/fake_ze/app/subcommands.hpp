// What the program can do; each ends the program if a result is wrong. `count` is its second argument.
#pragma once

#include <cstdint>

void saxpy(uint32_t count);     // launches on an in-order immediate list, with events and copies
void mixed(uint32_t count);     // rounds on both engines, immediate and regular lists, all kinds of commands
void threads(uint32_t count);   // threads with a list each, 100 launches a thread
void copies(uint32_t count);    // rounds of copies and fills on the copy engine, immediate and regular
void resubmit(uint32_t count);  // executions of closed lists, in order and not
void fence(uint32_t count);     // executions that a fence reports
void kernels(uint32_t count);   // launches of functions of its own, and what modules tell
void unordered(uint32_t count); // launches that nothing orders, held by an event until all are there
void clock(uint32_t count);     // prints, as JSON, what each device says of its clock, and that many readings of it
void quirks(uint32_t count);    // prints, as JSON, which quirks the driver shows
void idle(uint32_t count);      // launches, one a millisecond, for tests that kill the program
