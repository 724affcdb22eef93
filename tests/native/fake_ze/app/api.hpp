// The functions that the program calls: bound at link time, or looked up in a loader that is opened by name.
#pragma once

#include <level_zero/ze_api.h>

#define APP_FUNCTIONS(X)                                                                                          \
    X(zeInit) X(zeDriverGet) X(zeDriverGetExtensionFunctionAddress) X(zeDeviceGet) X(zeDeviceGetProperties)       \
    X(zeDeviceGetCommandQueueGroupProperties) X(zeDeviceGetGlobalTimestamps) X(zeContextCreate)                   \
    X(zeContextDestroy) X(zeMemAllocHost) X(zeMemAllocDevice) X(zeMemAllocShared) X(zeMemFree) X(zeModuleCreate)  \
    X(zeModuleDestroy) X(zeModuleGetKernelNames) X(zeModuleGetGlobalPointer) X(zeModuleBuildLogGetString)         \
    X(zeModuleBuildLogDestroy) X(zeKernelCreate) X(zeKernelGetName) X(zeKernelDestroy) X(zeKernelSetGroupSize) X(zeKernelSetArgumentValue)   \
    X(zeEventPoolCreate) X(zeEventPoolDestroy) X(zeEventCreate) X(zeEventDestroy) X(zeEventHostSignal)            \
    X(zeEventHostReset) X(zeEventHostSynchronize) X(zeEventQueryStatus) X(zeEventQueryKernelTimestamp)            \
    X(zeCommandListCreate) X(zeCommandListCreateImmediate) X(zeCommandListDestroy) X(zeCommandListClose)          \
    X(zeCommandListReset) X(zeCommandListAppendBarrier) X(zeCommandListAppendMemoryCopy)                          \
    X(zeCommandListAppendMemoryFill) X(zeCommandListAppendMemoryCopyRegion) X(zeCommandListAppendSignalEvent)     \
    X(zeCommandListAppendWaitOnEvents) X(zeCommandListAppendEventReset)                                           \
    X(zeCommandListAppendWriteGlobalTimestamp) X(zeCommandListAppendQueryKernelTimestamps)                        \
    X(zeCommandListAppendLaunchKernel) X(zeCommandListAppendLaunchKernelIndirect)                                  \
    X(zeCommandListAppendLaunchMultipleKernelsIndirect) X(zeDeviceGetSubDevices) X(zeCommandQueueCreate)         \
    X(zeCommandQueueDestroy) X(zeCommandQueueExecuteCommandLists) X(zeCommandQueueSynchronize) X(zeFenceCreate)   \
    X(zeFenceDestroy) X(zeFenceHostSynchronize) X(zeFenceQueryStatus) X(zeFenceReset)

struct Api {
#define APP_MEMBER(function) decltype(&::function) function;
    APP_FUNCTIONS(APP_MEMBER)
#undef APP_MEMBER
};

extern Api ze;

// Bind the functions; `library` names the loader to open where the program is not linked with one.
void bind(const char* library);
