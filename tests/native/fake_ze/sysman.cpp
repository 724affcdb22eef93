// Sensors of the devices: values that tests can compute. A device takes 75 W and is busy two fifths of the time.
//
// Handles are the devices themselves. As in the real driver there are two worlds: with ZES_ENABLE_SYSMAN=1 the devices of
// the core are those of sysman, and zesInit is refused; without, everything is refused before zesInit.
#include <level_zero/zes_api.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "api.hpp"
#include "clock.hpp"
#include "device_state.hpp"
#include "driver_quirks.hpp"

namespace fake_ze {
namespace {

std::atomic<bool> is_initialized{false};
std::atomic<uint64_t> energy_readings{0};

bool is_legacy() {
    const char* value = std::getenv("ZES_ENABLE_SYSMAN");
    return value != nullptr && std::string(value) == "1";
}
bool is_ready() { return is_legacy() || is_initialized.load(); }

uint64_t elapsed_us() {
    static const uint64_t begin = host_ns();
    return (host_ns() - begin) / 1000;
}

ze_result_t init(uint32_t) {
    if (is_legacy()) return ZE_RESULT_ERROR_UNINITIALIZED;
    is_initialized.store(true);
    return ZE_RESULT_SUCCESS;
}

ze_result_t drivers(uint32_t* count, void** out) {
    if (!is_ready()) return ZE_RESULT_ERROR_UNINITIALIZED;
    if (out != nullptr && *count > 0) out[0] = device_state().driver;
    *count = 1;
    return ZE_RESULT_SUCCESS;
}

ze_result_t devices(void*, uint32_t* count, void** out) {
    if (!is_ready()) return ZE_RESULT_ERROR_UNINITIALIZED;
    const auto& all = device_state().devices;
    if (out != nullptr) {
        for (uint32_t i = 0; i < *count && i < all.size(); ++i) out[i] = all[i];
    }
    *count = static_cast<uint32_t>(all.size());
    return ZE_RESULT_SUCCESS;
}

ze_result_t device_properties(void* device, zes_device_properties_t* out) {
    if (!is_ready()) return ZE_RESULT_ERROR_UNINITIALIZED;
    ze_device_properties_t core = {};
    core.stype = ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES;
    const ze_result_t result = fake_ze::zeDeviceGetProperties(static_cast<ze_device_handle_t>(device), &core);
    out->core = core;
    return result;
}

// Each device has `number` sensors of a kind, unless FAKE_ZE_ABSENT names it.
template <int kind, uint32_t number>
ze_result_t enumerate(void* device, uint32_t* count, void** out) {
    static constexpr const char* names[] = {"power", "frequency", "engine", "memory", "temperature"};
    if (!is_ready()) return ZE_RESULT_ERROR_UNINITIALIZED;
    const char* absent = std::getenv("FAKE_ZE_ABSENT");
    if (absent != nullptr && std::strstr(absent, names[kind]) != nullptr) return ZE_RESULT_ERROR_UNSUPPORTED_FEATURE;
    if (out != nullptr) {
        // An odd address is the second sensor.
        for (uint32_t i = 0; i < *count && i < number; ++i) out[i] = static_cast<char*>(device) + i;
    }
    *count = number;
    return ZE_RESULT_SUCCESS;
}

ze_result_t power_properties(void*, zes_power_properties_t* out) {
    out->onSubdevice = 0;
    return ZE_RESULT_SUCCESS;
}
ze_result_t energy(void*, zes_power_energy_counter_t* out) {
    const char* start = std::getenv("FAKE_ZE_ENERGY_START");
    const uint64_t first = start == nullptr ? 1'000'000 : static_cast<uint64_t>(std::atoll(start));
    ++energy_readings;
    out->timestamp = elapsed_us();
    out->energy = first + 75 * out->timestamp;
    return ZE_RESULT_SUCCESS;
}
ze_result_t frequency_properties(void* sensor, zes_freq_properties_t* out) {
    const bool is_second = (reinterpret_cast<uintptr_t>(sensor) & 1) != 0;
    out->type = is_second ? ZES_FREQ_DOMAIN_MEMORY : ZES_FREQ_DOMAIN_GPU;
    out->onSubdevice = is_second;
    out->subdeviceId = 1;
    return ZE_RESULT_SUCCESS;
}
ze_result_t frequency(void* sensor, zes_freq_state_t* out) {
    // The memory's is not known.
    out->actual = (reinterpret_cast<uintptr_t>(sensor) & 1) != 0 ? -1 : 1550.25;
    return ZE_RESULT_SUCCESS;
}
ze_result_t engine_properties(void*, zes_engine_properties_t* out) {
    out->type = ZES_ENGINE_GROUP_COMPUTE_ALL;
    out->onSubdevice = 0;
    return ZE_RESULT_SUCCESS;
}
ze_result_t activity(void*, zes_engine_stats_t* out) {
    out->timestamp = elapsed_us();
    out->activeTime = 2 * out->timestamp / 5;
    return ZE_RESULT_SUCCESS;
}
ze_result_t memory_properties(void*, zes_mem_properties_t* out) {
    out->type = ZES_MEM_TYPE_HBM;
    out->onSubdevice = 0;
    return ZE_RESULT_SUCCESS;
}
ze_result_t memory(void*, zes_mem_state_t* out) {
    out->size = uint64_t{16} << 30;
    out->free = uint64_t{12} << 30;
    return ZE_RESULT_SUCCESS;
}
ze_result_t temperature_properties(void*, zes_temp_properties_t* out) {
    out->type = ZES_TEMP_SENSORS_GPU;
    out->onSubdevice = 0;
    return ZE_RESULT_SUCCESS;
}
ze_result_t temperature(void*, double* out) {
    *out = -12.5;
    return ZE_RESULT_SUCCESS;
}

ze_result_t unsupported() { return ZE_RESULT_ERROR_UNSUPPORTED_FEATURE; }

struct SysmanMember {
    uint32_t place;
    void* function;
};

// `sizes`: how many members a table has in API 1.0 and 1.5.
template <size_t N>
ze_result_t fill(ze_api_version_t version, void** table, uint32_t old_size, uint32_t new_size, const SysmanMember (&entries)[N]) {
    if (table == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    if (ZE_MAJOR_VERSION(version) != 1) return ZE_RESULT_ERROR_UNSUPPORTED_VERSION;
    const uint32_t size = ZE_MINOR_VERSION(version) >= 5 ? new_size : old_size;
    for (uint32_t i = 0; i < size; ++i) table[i] = reinterpret_cast<void*>(&unsupported);
    for (const SysmanMember& entry : entries) {
        if (entry.place < size) table[entry.place] = entry.function;
    }
    return ZE_RESULT_SUCCESS;
}

}  // namespace

void await_samples() {
    const char* wanted = std::getenv("FAKE_ZE_SAMPLES");
    if (wanted == nullptr) return;
    const uint64_t least = static_cast<uint64_t>(std::atoll(wanted)) * device_state().devices.size();
    while (energy_readings.load() < least) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

}  // namespace fake_ze

#define AS(function) reinterpret_cast<void*>(&fake_ze::function)
#define SYSMAN_TABLE(name, old_size, new_size, ...)                                                                     \
    extern "C" __attribute__((visibility("default"))) ze_result_t get_zes_##name(ze_api_version_t, void**) __asm__(     \
        "zesGet" #name "ProcAddrTable");                                                                                \
    extern "C" ze_result_t get_zes_##name(ze_api_version_t version, void** table) {                                     \
        const fake_ze::SysmanMember entries[] = {__VA_ARGS__};                                                                 \
        return fake_ze::fill(version, table, old_size, new_size, entries);                                              \
    }
SYSMAN_TABLE(Global, 0, 1, {0, AS(init)})
SYSMAN_TABLE(Driver, 1, 3, {2, AS(drivers)})
SYSMAN_TABLE(Device, 25, 30, {0, AS(device_properties)}, {9, (reinterpret_cast<void*>(&fake_ze::enumerate<2, 1>))},
             {14, (reinterpret_cast<void*>(&fake_ze::enumerate<1, 2>))},
             {16, (reinterpret_cast<void*>(&fake_ze::enumerate<3, 1>))},
             {18, (reinterpret_cast<void*>(&fake_ze::enumerate<0, 1>))},
             {24, (reinterpret_cast<void*>(&fake_ze::enumerate<4, 1>))}, {29, AS(devices)})
SYSMAN_TABLE(Power, 6, 6, {0, AS(power_properties)}, {1, AS(energy)})
SYSMAN_TABLE(Frequency, 5, 5, {0, AS(frequency_properties)}, {4, AS(frequency)})
SYSMAN_TABLE(Engine, 2, 2, {0, AS(engine_properties)}, {1, AS(activity)})
SYSMAN_TABLE(Memory, 2, 2, {0, AS(memory_properties)}, {1, AS(memory)})
SYSMAN_TABLE(Temperature, 4, 4, {0, AS(temperature_properties)}, {3, AS(temperature)})
