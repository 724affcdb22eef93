// The sensors of devices: what Level Zero's sysman has of them, asked through the loader that the program uses.
//
// Structures are declared anew, as in api.hpp. Source: the Level Zero specification 1.17, sysman.
#pragma once

#include <vector>

#include "api/api.hpp"

namespace lanescope::levelzero::telemetry {

enum class Kind : u8 { power, frequency, engine, memory, temperature };
inline constexpr usize kind_count = 5;
// Names and what a reading is: energy in uJ and us; kHz; active time and time in us; bytes used and size; millikelvin.
inline constexpr Text kind_names[kind_count] = {"power", "frequency", "engine", "memory", "temperature"};

struct Sensor {
    Kind kind;
    Handle handle;
    u64 device;         // number of the device in the trace
    Text part;          // what of the device, "gpu" or "compute"
    u32 subdevice;      // none: no_subdevice
};
inline constexpr u32 no_subdevice = ~u32{0};

struct Reading {
    u64 value, at;
};

// What a device has of one kind.
struct Found {
    u64 device;
    char uuid[33], name[256];
    Kind kind;
    u32 count;
    Result code;
};

// Makes the loader ready to be asked for sensors; says why there can be none, or null. Loaders replace the functions that
// the program's calls go through meanwhile, so no other thread of the program may be using devices.
Text initialize();

// Finds sensors after that; says why there are none, or null.
Text find(const std::vector<Handle>& program_devices, std::vector<Found>& found, std::vector<Sensor>& sensors);

// Reads a sensor.
Result read(const Sensor& sensor, Reading& reading);

}  // namespace lanescope::levelzero::telemetry
