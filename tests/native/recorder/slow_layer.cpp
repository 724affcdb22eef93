// In the place of a loader's validation layer: it changes nothing, but takes its time where the table of event functions is
// filled anew by another thread than the program's first. Loaders ask it between the driver and the tracing layer, so the
// table leads past the tracing layer for that long.
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <string_view>

namespace {

int fill(std::string_view getter) {
    if (getter == "zeGetEvent" && syscall(SYS_gettid) != getpid()) usleep(300'000);
    return 0;
}

}  // namespace

#define GETTER(name) \
    extern "C" __attribute__((visibility("default"))) int name##ProcAddrTable(uint32_t, void**) { return fill(#name); }
#define TABLE(name) GETTER(zeGet##name)
#include "../fake_ze/functions.def"
GETTER(zerGetGlobal) GETTER(zesGetDeviceExp) GETTER(zesGetDevice) GETTER(zesGetDiagnostics) GETTER(zesGetDriverExp)
GETTER(zesGetDriver) GETTER(zesGetEngine) GETTER(zesGetFabricPort) GETTER(zesGetFan) GETTER(zesGetFirmwareExp)
GETTER(zesGetFirmware) GETTER(zesGetFrequency) GETTER(zesGetGlobal) GETTER(zesGetLed) GETTER(zesGetMemory)
GETTER(zesGetOverclock) GETTER(zesGetPerformanceFactor) GETTER(zesGetPower) GETTER(zesGetPsu) GETTER(zesGetRasExp)
GETTER(zesGetRas) GETTER(zesGetScheduler) GETTER(zesGetStandby) GETTER(zesGetTemperature) GETTER(zesGetVFManagementExp)
GETTER(zetGetCommandListExp) GETTER(zetGetCommandList) GETTER(zetGetContext) GETTER(zetGetDebug) GETTER(zetGetDeviceExp)
GETTER(zetGetDevice) GETTER(zetGetKernel) GETTER(zetGetMetricDecoderExp) GETTER(zetGetMetricExp)
GETTER(zetGetMetricGroupExp) GETTER(zetGetMetricGroup) GETTER(zetGetMetric) GETTER(zetGetMetricProgrammableExp)
GETTER(zetGetMetricQueryPool) GETTER(zetGetMetricQuery) GETTER(zetGetMetricStreamer) GETTER(zetGetMetricTracerExp)
GETTER(zetGetModule) GETTER(zetGetTracerExp)
