// What really ran, for tests to compare with: JSON lines in FAKE_ZE_TRUTH.
//
// A command:  {"kind": "op", "pid", "api", "mark", "list", "life", "index", "run", "immediate", "in_order", "device",
//              "subdevice", "engine", "queue", "kernel", "groups", "bytes", "dst", "src", "signal", "waits", "reads",
//              "start", "end", "context_start", "context_end", "host_start_ns", "host_end_ns"}
//   subdevice: 0 on a root device, else the number of its part, from 1.
//   list, queue, signal, waits, reads: serial numbers, never reused; 0 is none. `queue` is 0 on immediate lists.
//   life: how often the list was reset before; index: place of the command in that life; run: 1 on immediate lists, else
//   the number of the list's execution. Ticks are masked as a kernel timestamp is. `mark` is what fake_ze_mark() said.
// A mistake:  {"kind": "mistake", "pid", "what"}
#pragma once

#include <cstdint>
#include <string>

namespace fake_ze {

bool truth_wanted();

// Append one line, without its newline. Thread safe; a line is in the file once this returns, kill or no kill.
void write_truth(const std::string& line);

// `text` as a JSON string.
std::string quoted(const std::string& text);

// The caller did what the API forbids: say so, and abort unless FAKE_ZE_MISTAKES=report.
void mistake(const std::string& what);

// The same, where real programs do it too and real drivers bear it: say so and go on.
void oddity(const std::string& what);

// Name this thread's next append in the truth. Commands that a tracer adds have no mark.
void set_mark(const char* text);
std::string take_mark();

}  // namespace fake_ze
