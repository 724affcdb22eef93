#include "telemetry/sysman.hpp"

#include "telemetry/sysman_api.hpp"

#include <dlfcn.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace lanescope::levelzero::telemetry {

namespace {

constexpr u32 stypes[kind_count] = {0xd, 0x9, 0x5, 0xb, 0x14};
constexpr u32 stype_sysman_device = 0x1, stype_frequency_state = 0x1b, stype_memory_state = 0x1e;
constexpr Text engines[] = {"all", "compute", "media", "copy", "compute single", "render single", "media decode",
                            "media encode", "copy single", "media enhancement", "3d single", "3d render compute",
                            "render", "3d", "media codec"};
constexpr Text frequencies[] = {"gpu", "memory", "media"};
constexpr Text temperatures[] = {"global", "gpu", "memory", "global min", "gpu min", "memory min", "gpu board",
                                 "gpu board min", "voltage regulator"};

using Enumerate = Result (*)(Handle, u32*, Handle*);
using Query = Result (*)(Handle, void*);
using Count = Result (*)(u32*, Handle*);

struct Functions {
    Result (*init)(u32);
    Count drivers;
    Enumerate devices;
    Query device_properties;
    Enumerate enumerate[kind_count];
    Query properties[kind_count];
    Query read[kind_count];
};
Functions api;

// The loader that the program has opened: no other one is loaded.
bool bind() {
    void* loader = dlopen("libze_loader.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (loader == nullptr) return false;
    const auto get = [loader](auto& into, const char* name) {
        into = reinterpret_cast<std::remove_reference_t<decltype(into)>>(dlsym(loader, name));
    };
    get(api.init, "zesInit");
    get(api.drivers, "zesDriverGet");
    get(api.devices, "zesDeviceGet");
    get(api.device_properties, "zesDeviceGetProperties");
    constexpr const char* names[kind_count][3] = {
        {"zesDeviceEnumPowerDomains", "zesPowerGetProperties", "zesPowerGetEnergyCounter"},
        {"zesDeviceEnumFrequencyDomains", "zesFrequencyGetProperties", "zesFrequencyGetState"},
        {"zesDeviceEnumEngineGroups", "zesEngineGetProperties", "zesEngineGetActivity"},
        {"zesDeviceEnumMemoryModules", "zesMemoryGetProperties", "zesMemoryGetState"},
        {"zesDeviceEnumTemperatureSensors", "zesTemperatureGetProperties", "zesTemperatureGetState"},
    };
    for (usize i = 0; i < kind_count; ++i) {
        get(api.enumerate[i], names[i][0]);
        get(api.properties[i], names[i][1]);
        get(api.read[i], names[i][2]);
    }
    return true;
}

// With this variable the program's devices are those of sysman, and drivers refuse zesInit.
bool is_legacy() {
    const char* value = std::getenv("ZES_ENABLE_SYSMAN");
    return value != nullptr && std::string_view(value) == "1";
}

template <class F, class... A>
std::vector<Handle> all(F function, Result& code, A... a) {
    u32 count = 0;
    std::vector<Handle> found;
    code = function == nullptr ? unsupported_feature : function(a..., &count, nullptr);
    if (code != success || count == 0) return found;
    // No driver has so many: it is not a count then.
    if (count > 4096) return found;
    found.resize(count);
    code = function(a..., &count, found.data());
    found.resize(code == success ? std::min<usize>(count, found.size()) : 0);
    return found;
}

template <usize N>
Text named(const Text (&names)[N], u32 type) {
    return type < N ? names[type] : "other";
}

Sensor described(Kind kind, Handle handle, u64 device) {
    const auto i = static_cast<usize>(kind);
    Sensor made{kind, handle, device, "", no_subdevice};
    if (kind == Kind::power) {
        Untyped found{};
        found.stype = stypes[i];
        if (api.properties[i](handle, &found) != success) return made;
        if (found.on_subdevice != 0) made.subdevice = found.subdevice;
        return made;
    }
    Typed found{};
    found.stype = stypes[i];
    if (api.properties[i](handle, &found) != success) return made;
    if (found.on_subdevice != 0) made.subdevice = found.subdevice;
    if (kind == Kind::engine) made.part = named(engines, found.type);
    if (kind == Kind::frequency) made.part = named(frequencies, found.type);
    if (kind == Kind::temperature) made.part = named(temperatures, found.type);
    return made;
}

}  // namespace

Text initialize() {
    if (!bind()) return "loader not found";
    if (is_legacy()) return nullptr;
    if (api.init == nullptr || api.drivers == nullptr || api.devices == nullptr) {
        return "the loader has no zesInit: set ZES_ENABLE_SYSMAN=1";
    }
    return api.init(0) == success ? nullptr : "zesInit failed";
}

Text find(const std::vector<Handle>& program_devices, std::vector<Found>& found, std::vector<Sensor>& sensors) {
    std::vector<Handle> devices;
    if (is_legacy()) {
        devices = program_devices;
    } else {
        Result code = success;
        for (const Handle driver : all(api.drivers, code)) {
            for (const Handle device : all(api.devices, code, driver)) devices.push_back(device);
        }
    }
    if (devices.empty()) return "sysman has no device";
    for (const Handle device : devices) {
        SysmanDevice properties{};
        properties.stype = stype_sysman_device;
        properties.core.stype = stype_device_properties;
        Found one{};
        one.device = reinterpret_cast<u64>(device);
        if (api.device_properties != nullptr && api.device_properties(device, &properties) == success) {
            for (int i = 0; i < 16; ++i) {
                one.uuid[2 * i] = "0123456789abcdef"[properties.core.uuid[i] >> 4];
                one.uuid[2 * i + 1] = "0123456789abcdef"[properties.core.uuid[i] & 15];
            }
            std::memcpy(one.name, properties.core.name, sizeof one.name - 1);
        }
        for (usize i = 0; i < kind_count; ++i) {
            one.kind = static_cast<Kind>(i);
            std::vector<Handle> handles;
            if (api.properties[i] == nullptr || api.read[i] == nullptr) {
                one.code = unsupported_feature;
            } else {
                handles = all(api.enumerate[i], one.code, device);
            }
            one.count = static_cast<u32>(handles.size());
            found.push_back(one);
            for (const Handle handle : handles) sensors.push_back(described(one.kind, handle, one.device));
        }
    }
    return nullptr;
}

Result read(const Sensor& sensor, Reading& reading) {
    const Query query = api.read[static_cast<usize>(sensor.kind)];
    Result result = success;
    switch (sensor.kind) {
        case Kind::power:
        case Kind::engine: {
            Counter found{};
            result = query(sensor.handle, &found);
            reading = {found.value, found.at};
            break;
        }
        case Kind::frequency: {
            FrequencyState found{};
            found.stype = stype_frequency_state;
            result = query(sensor.handle, &found);
            // Drivers give a negative number for what they do not know.
            if (result == success && !(found.actual >= 0 && found.actual < 1e9)) return unsupported_feature;
            reading = {static_cast<u64>(std::lround(found.actual * 1000)), 0};
            break;
        }
        case Kind::memory: {
            MemoryState found{};
            found.stype = stype_memory_state;
            result = query(sensor.handle, &found);
            if (result == success && found.free > found.size) return unsupported_feature;
            reading = {found.size - found.free, found.size};
            break;
        }
        case Kind::temperature: {
            double found = 0;
            result = query(sensor.handle, &found);
            if (result == success && !(found > -273.15 && found < 1e6)) return unsupported_feature;
            reading = {static_cast<u64>(std::llround((found + 273.15) * 1000)), 0};
            break;
        }
    }
    return result;
}

}  // namespace lanescope::levelzero::telemetry
