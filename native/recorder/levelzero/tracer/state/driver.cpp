#include "tracer/state/driver.hpp"

#include "intercept/hooks.hpp"

namespace lanescope::levelzero::tracer {

namespace {

// Tables are handed to us before the program can make a list, all of them.
Driver look_up() {
    Driver found{};
    const auto find = [](auto& to, Function function) {
        void* address = targets[static_cast<size_t>(InterceptPath::layer)][index(function)].load();
        to = reinterpret_cast<std::remove_reference_t<decltype(to)>>(address);
    };
#define FIND(function) find(found.function, Function::function)
    FIND(zeEventPoolCreate);
    FIND(zeEventPoolDestroy);
    FIND(zeEventCreate);
    FIND(zeEventDestroy);
    FIND(zeEventHostReset);
    FIND(zeEventQueryStatus);
    FIND(zeEventHostSynchronize);
    FIND(zeEventQueryKernelTimestamp);
    FIND(zeMemAllocHost);
    FIND(zeMemFree);
    FIND(zeCommandListCreateImmediate);
    FIND(zeCommandListDestroy);
    FIND(zeCommandListAppendBarrier);
    FIND(zeCommandListAppendMemoryCopy);
    FIND(zeCommandListAppendQueryKernelTimestamps);
    FIND(zeCommandListCreate);
    FIND(zeCommandListClose);
    FIND(zeCommandListAppendEventReset);
    FIND(zeCommandListAppendSignalEvent);
    FIND(zeCommandListAppendWaitOnEvents);
    FIND(zeFenceCreate);
    FIND(zeFenceDestroy);
    FIND(zeFenceReset);
    FIND(zeFenceQueryStatus);
    FIND(zeDeviceGetCommandQueueGroupProperties);
    FIND(zeDeviceGetProperties);
    FIND(zeDeviceGetGlobalTimestamps);
#undef FIND
    return found;
}

}  // namespace

bool Driver::is_whole() const {
    return zeEventPoolCreate != nullptr && zeEventPoolDestroy != nullptr && zeEventCreate != nullptr &&
           zeEventDestroy != nullptr && zeEventHostReset != nullptr && zeEventQueryStatus != nullptr &&
           zeEventHostSynchronize != nullptr && zeEventQueryKernelTimestamp != nullptr && zeMemAllocHost != nullptr &&
           zeMemFree != nullptr && zeCommandListCreateImmediate != nullptr && zeCommandListDestroy != nullptr &&
           zeCommandListAppendBarrier != nullptr && zeCommandListAppendMemoryCopy != nullptr &&
           zeCommandListAppendQueryKernelTimestamps != nullptr;
}

bool Driver::can_reset() const {
    return zeCommandListCreate != nullptr && zeCommandListClose != nullptr && zeCommandListAppendEventReset != nullptr &&
           zeCommandListAppendSignalEvent != nullptr && zeCommandListAppendWaitOnEvents != nullptr;
}

bool Driver::has_fences() const {
    return zeFenceCreate != nullptr && zeFenceDestroy != nullptr && zeFenceReset != nullptr && zeFenceQueryStatus != nullptr;
}

std::atomic<const Driver*> known_driver = nullptr;

const Driver& look_up_driver() {
    static const Driver found = look_up();
    known_driver.store(&found, std::memory_order_release);
    return found;
}

}  // namespace lanescope::levelzero::tracer
