#include <cstdio>

#include "device.hpp"
#include "subcommands.hpp"

void clock(uint32_t count) {
    CHECK(zeInit, 0);
    uint32_t one = 1;
    ze_driver_handle_t driver;
    CHECK(zeDriverGet, &one, &driver);
    uint32_t number = 0;
    CHECK(zeDeviceGet, driver, &number, nullptr);
    std::vector<ze_device_handle_t> devices(number);
    CHECK(zeDeviceGet, driver, &number, devices.data());
    std::printf("[");
    for (auto* device : devices) {
        ze_device_properties_t old = {}, newer = {};
        old.stype = ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES;
        newer.stype = ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES_1_2;
        CHECK(zeDeviceGetProperties, device, &old);
        CHECK(zeDeviceGetProperties, device, &newer);
        uint32_t subdevices = 0;
        CHECK(zeDeviceGetSubDevices, device, &subdevices, nullptr);
        std::printf("%s{\"subdevices\": %u, \"ns\": %llu, \"hz\": %llu, \"bits\": %u, \"global_bits\": %u, \"readings\": [",
                    device == devices.front() ? "" : ", ", subdevices, static_cast<unsigned long long>(old.timerResolution),
                    static_cast<unsigned long long>(newer.timerResolution), newer.kernelTimestampValidBits,
                    newer.timestampValidBits);
        for (uint32_t i = 0; i < count; ++i) {
            uint64_t host, ticks;
            CHECK(zeDeviceGetGlobalTimestamps, device, &host, &ticks);
            std::printf("%s[%llu, %llu]", i == 0 ? "" : ", ", static_cast<unsigned long long>(host),
                        static_cast<unsigned long long>(ticks));
        }
        std::printf("]}");
    }
    std::printf("]\n");
}
