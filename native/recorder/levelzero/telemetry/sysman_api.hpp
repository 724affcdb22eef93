// Structures of sysman, declared anew. Source: the Level Zero specification 1.17. tests/native/recorder/layouts.cpp compares
// them with the real headers.
#pragma once

#include "api/api.hpp"

namespace lanescope::levelzero::telemetry {

struct SysmanDevice {
    u32 stype;
    void* next;
    DeviceProperties core;
    u32 subdevices;
    char texts[6][64];
};

// The begin of the properties of all kinds but power, which has no type.
struct Typed {
    u32 stype;
    void* next;
    u32 type, on_subdevice, subdevice;
    u64 rest[8];
};
struct Untyped {
    u32 stype;
    void* next;
    u32 on_subdevice, subdevice;
    u64 rest[8];
};

struct Counter {
    u64 value, at;
};
struct FrequencyState {
    u32 stype;
    const void* next;
    double voltage, request, tdp, efficient, actual;
    u32 reasons;
};
struct MemoryState {
    u32 stype;
    const void* next;
    u32 health;
    u64 free, size;
};

}  // namespace lanescope::levelzero::telemetry
