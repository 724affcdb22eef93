/* What fake_ze offers its tests beyond Level Zero. zeDriverGetExtensionFunctionAddress() finds these functions by name;
 * the driver's library exports them too. */
#ifndef FAKE_ZE_H
#define FAKE_ZE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a kernel gets: the values set by zeKernelSetArgumentValue, the launch's sizes, and the pointer that
 * fake_ze_register_kernel() was given. */
typedef struct fake_ze_launch {
    const void* const* arguments;
    const size_t* sizes;
    uint32_t count;
    uint32_t groups[3];
    uint32_t group_size[3];
    void* data;
} fake_ze_launch;

typedef void (*fake_ze_kernel)(const fake_ze_launch* launch);

/* Make a C function known as a kernel, for all modules. It runs once a launch and takes at least `ticks`. A function
 * registered again replaces the first. The kernels that come with the driver: see kernels.cpp. */
void fake_ze_register_kernel(const char* name, fake_ze_kernel function, void* data, uint64_t ticks);
typedef void (*fake_ze_register_kernel_t)(const char* name, fake_ze_kernel function, void* data, uint64_t ticks);

/* Name the command that this thread appends next in the truth. */
void fake_ze_mark(const char* text);
typedef void (*fake_ze_mark_t)(const char* text);

/* A count of FAKE_ZE_STATS by its name, for example "live.event", "live.pool.most", "query_bytes", "memory.host",
 * "mistakes", "calls.zeEventCreate"; 0 for a name that nothing counted yet. */
uint64_t fake_ze_stat(const char* name);
typedef uint64_t (*fake_ze_stat_t)(const char* name);

/* Lose the device with all that it has not ended: whoever waits is told ZE_RESULT_ERROR_DEVICE_LOST, and so is whoever
 * asks for the status of an event or a fence, unless the loss is silent: those are NOT_READY for ever. */
void fake_ze_lose(int is_silent);
typedef void (*fake_ze_lose_t)(int is_silent);

/* Call a function at the begin of every call of the API, in the thread that calls; null: no longer. */
void fake_ze_on_call(void (*function)(const char* call));
typedef void (*fake_ze_on_call_t)(void (*function)(const char* call));

#ifdef __cplusplus
}
#endif
#endif
