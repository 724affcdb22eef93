// The thread that reads the sensors of devices while the program runs.
#pragma once

#include "api/api.hpp"

namespace lanescope::levelzero::telemetry {

// How often sensors are read, ns; 0: not at all.
void configure(u64 interval_ns);

// The program has got devices of a driver: from here on there is something to read. Once. It may have asked for some of
// them only, so the driver's function is asked for all.
using DeviceGet = Result (*)(Handle driver, u32* count, Handle* devices);
void on_devices(Handle driver, DeviceGet devices_of);

// A child process has no sampler yet; it starts when the child asks for its devices.
void after_fork_in_child();

}  // namespace lanescope::levelzero::telemetry
