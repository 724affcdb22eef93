// Calls in and out of regions: 10 + 1 before the first one begins, 20 in it, 30 after it, 40 in the second one.
// Prints what lanescope_start and lanescope_stop return.
#include <lanescope.h>
#include <level_zero/ze_api.h>

#include <cstdio>

namespace {

void call(ze_driver_handle_t driver, int times) {
    ze_api_version_t version;
    for (int i = 0; i < times; ++i) zeDriverGetApiVersion(driver, &version);
}

}  // namespace

int main() {
    if (zeInit(0) != ZE_RESULT_SUCCESS) return 1;
    uint32_t count = 1;
    ze_driver_handle_t driver;
    if (zeDriverGet(&count, &driver) != ZE_RESULT_SUCCESS) return 1;
    call(driver, 10);
    const int started = lanescope_start();
    call(driver, 20);
    const int stopped = lanescope_stop();
    call(driver, 30);
    lanescope_start();
    call(driver, 40);
    std::printf("%d %d\n", started, stopped);
    return 0;
}
