// Structures that the recorder declares anew are those of the headers.
#include <level_zero/zes_api.h>

#include <cstddef>

#include "api/arguments.cpp"
#include "telemetry/sysman_api.hpp"

namespace ours = lanescope::levelzero::telemetry;

#define SAME(one, field, other, theirs) \
    static_assert(offsetof(ours::one, field) == offsetof(other, theirs), #one "." #field " is elsewhere")
#define FITS(one, other) static_assert(sizeof(ours::one) >= sizeof(other), #one " is too small")

FITS(SysmanDevice, zes_device_properties_t);
SAME(SysmanDevice, core, zes_device_properties_t, core);
SAME(SysmanDevice, subdevices, zes_device_properties_t, numSubdevices);
SAME(SysmanDevice, core.uuid, zes_device_properties_t, core.uuid);
SAME(SysmanDevice, core.name, zes_device_properties_t, core.name);
FITS(Typed, zes_freq_properties_t);
FITS(Typed, zes_engine_properties_t);
FITS(Typed, zes_mem_properties_t);
FITS(Typed, zes_temp_properties_t);
FITS(Untyped, zes_power_properties_t);
SAME(Typed, type, zes_freq_properties_t, type);
SAME(Typed, on_subdevice, zes_freq_properties_t, onSubdevice);
SAME(Typed, subdevice, zes_freq_properties_t, subdeviceId);
SAME(Typed, type, zes_engine_properties_t, type);
SAME(Typed, subdevice, zes_engine_properties_t, subdeviceId);
SAME(Typed, type, zes_mem_properties_t, type);
SAME(Typed, subdevice, zes_mem_properties_t, subdeviceId);
SAME(Typed, type, zes_temp_properties_t, type);
SAME(Typed, subdevice, zes_temp_properties_t, subdeviceId);
SAME(Untyped, on_subdevice, zes_power_properties_t, onSubdevice);
SAME(Untyped, subdevice, zes_power_properties_t, subdeviceId);
FITS(Counter, zes_power_energy_counter_t);
SAME(Counter, value, zes_power_energy_counter_t, energy);
SAME(Counter, at, zes_power_energy_counter_t, timestamp);
SAME(Counter, value, zes_engine_stats_t, activeTime);
SAME(Counter, at, zes_engine_stats_t, timestamp);
FITS(FrequencyState, zes_freq_state_t);
SAME(FrequencyState, actual, zes_freq_state_t, actual);
FITS(MemoryState, zes_mem_state_t);
SAME(MemoryState, free, zes_mem_state_t, free);
SAME(MemoryState, size, zes_mem_state_t, size);

// Members of descriptors are in a table of offsets.
namespace lanescope::levelzero::arguments {
#define AT(table, place, theirs, field)                                                \
    static_assert(table[place].offset == offsetof(theirs, field) &&                      \
                      (table[place].type == Type::u32_ ? 4 : 8) == sizeof(theirs::field), \
                  #table " " #field " is elsewhere")
AT(list, 0, ze_command_list_desc_t, commandQueueGroupOrdinal);
AT(list, 1, ze_command_list_desc_t, flags);
AT(queue, 0, ze_command_queue_desc_t, ordinal);
AT(queue, 1, ze_command_queue_desc_t, index);
AT(queue, 2, ze_command_queue_desc_t, flags);
AT(queue, 3, ze_command_queue_desc_t, mode);
AT(queue, 4, ze_command_queue_desc_t, priority);
AT(pool, 0, ze_event_pool_desc_t, flags);
AT(pool, 1, ze_event_pool_desc_t, count);
AT(event, 0, ze_event_desc_t, index);
AT(event, 1, ze_event_desc_t, signal);
AT(event, 2, ze_event_desc_t, wait);
AT(device_memory, 0, ze_device_mem_alloc_desc_t, flags);
AT(device_memory, 1, ze_device_mem_alloc_desc_t, ordinal);
AT(host_memory, 0, ze_host_mem_alloc_desc_t, flags);
AT(module_, 0, ze_module_desc_t, format);
AT(module_, 1, ze_module_desc_t, inputSize);
AT(module_, 2, ze_module_desc_t, pBuildFlags);
AT(kernel, 0, ze_kernel_desc_t, flags);
static_assert(offsetof(ze_base_desc_t, pNext) == 8);
}  // namespace lanescope::levelzero::arguments
