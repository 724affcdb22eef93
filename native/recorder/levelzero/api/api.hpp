// What the recorder needs of Level Zero's binary interface, declared anew so that it is built without headers.
// Source: the Level Zero specification 1.17. tests/native/levelzero compares the layouts with the real headers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lanescope::levelzero {

using u8 = uint8_t;
using u16 = uint16_t;
using u32 = uint32_t;
using u64 = uint64_t;
using i64 = int64_t;
using usize = size_t;

using Result = u32;
inline constexpr Result success = 0, out_of_host_memory = 0x70000002, unsupported_feature = 0x78000003,
                        device_lost = 0x70000001;

// Parameters by what they mean to the trace. Handles, numbers and addresses are written as they are given, texts as
// texts, what a function creates when it has succeeded; structures are not written.
using Handle = struct HandleTag*;
using Address = void*;
using Text = const char*;
using Struct = struct StructTag*;
struct Created {
    void* value;
};
struct Ipc {
    char data[64];
};

struct Groups {
    u32 x, y, z;
};

struct ListDesc {
    u32 stype;
    const void* next;
    u32 ordinal, flags;
};
inline constexpr u32 list_in_order = 1 << 3, list_cloneable = 1 << 4;

struct QueueDesc {
    u32 stype;
    const void* next;
    u32 ordinal, index, flags, mode, priority;
};
inline constexpr u32 queue_in_order = 1 << 1, queue_mode_synchronous = 1;

struct KernelDesc {
    u32 stype;
    const void* next;
    u32 flags;
    const char* name;
};

struct KernelProperties {
    u32 stype;
    void* next;
    u32 arguments, required_group[3], required_sub_groups, required_sub_group_size, max_sub_group_size, max_sub_groups;
    u32 local_memory, private_memory, spill_memory;
    u8 uuid[32];
};
inline constexpr u32 stype_kernel_properties = 0x1e;

struct DeviceProperties {
    u32 stype;
    void* next;
    u32 type, vendor, device, flags, subdevice, core_clock_rate;
    u64 max_allocation;
    u32 contexts, priorities, threads, simd_width, units, subslices, slices;
    u64 timer_resolution;
    u32 timestamp_bits, kernel_timestamp_bits;
    u8 uuid[16];
    char name[256];
};
inline constexpr u32 stype_device_properties = 0x3, stype_device_properties_1_2 = 0x20006;
inline constexpr u32 device_is_subdevice = 1 << 1;

}  // namespace lanescope::levelzero
