// A program that watches its own calls by the loader's tracing layer: `tracers STYLE`. STYLE is `old` (tables of callbacks)
// or `new` (one callback a function). Prints how many barriers its callbacks have seen before and behind their calls, how
// many of them named the program's event, and how many calls it had not made itself.
#include <level_zero/layers/zel_tracing_api.h>
#include <level_zero/layers/zel_tracing_register_cb.h>
#include <level_zero/ze_api.h>

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

ze_event_handle_t own;
int before, behind, named, others;

void on_barrier(ze_command_list_append_barrier_params_t* call, ze_result_t, void*, void**) {
    ++before;
    named += *call->phSignalEvent == own;
}
void after_barrier(ze_command_list_append_barrier_params_t*, ze_result_t, void*, void**) { ++behind; }
void on_query(ze_event_query_status_params_t*, ze_result_t, void*, void**) { ++others; }

void need(ze_result_t result, const char* what) {
    if (result == ZE_RESULT_SUCCESS) return;
    std::printf("%s: 0x%x\n", what, static_cast<unsigned>(result));
    std::exit(1);
}

}  // namespace

int main(int, char** arguments) {
    need(zeInit(0), "zeInit");
    const auto enable = reinterpret_cast<ze_result_t (*)()>(dlsym(RTLD_DEFAULT, "zelEnableTracingLayer"));
    if (enable != nullptr) need(enable(), "zelEnableTracingLayer");
    const zel_tracer_desc_t desc = {ZEL_STRUCTURE_TYPE_TRACER_DESC, nullptr, nullptr};
    zel_tracer_handle_t tracer;
    need(zelTracerCreate(&desc, &tracer), "zelTracerCreate");
    if (std::strcmp(arguments[1], "old") == 0) {
        zel_core_callbacks_t prologues = {}, epilogues = {};
        prologues.CommandList.pfnAppendBarrierCb = on_barrier;
        prologues.Event.pfnQueryStatusCb = on_query;
        epilogues.CommandList.pfnAppendBarrierCb = after_barrier;
        need(zelTracerSetPrologues(tracer, &prologues), "zelTracerSetPrologues");
        need(zelTracerSetEpilogues(tracer, &epilogues), "zelTracerSetEpilogues");
    } else {
        need(zelTracerCommandListAppendBarrierRegisterCallback(tracer, ZEL_REGISTER_PROLOGUE, on_barrier), "prologue");
        need(zelTracerCommandListAppendBarrierRegisterCallback(tracer, ZEL_REGISTER_EPILOGUE, after_barrier), "epilogue");
        need(zelTracerEventQueryStatusRegisterCallback(tracer, ZEL_REGISTER_PROLOGUE, on_query), "query");
    }
    need(zelTracerSetEnabled(tracer, 1), "zelTracerSetEnabled");

    uint32_t one = 1;
    ze_driver_handle_t driver;
    ze_device_handle_t device;
    ze_context_handle_t context;
    ze_command_list_handle_t list;
    ze_event_pool_handle_t pool;
    need(zeDriverGet(&one, &driver), "zeDriverGet");
    one = 1;
    need(zeDeviceGet(driver, &one, &device), "zeDeviceGet");
    const ze_context_desc_t context_desc = {ZE_STRUCTURE_TYPE_CONTEXT_DESC, nullptr, 0};
    need(zeContextCreate(driver, &context_desc, &context), "zeContextCreate");
    const ze_command_queue_desc_t queue = {ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC, nullptr, 0, 0, 0,
                                           ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS, ZE_COMMAND_QUEUE_PRIORITY_NORMAL};
    need(zeCommandListCreateImmediate(context, device, &queue, &list), "zeCommandListCreateImmediate");
    const ze_event_pool_desc_t pool_desc = {ZE_STRUCTURE_TYPE_EVENT_POOL_DESC, nullptr, ZE_EVENT_POOL_FLAG_HOST_VISIBLE, 1};
    need(zeEventPoolCreate(context, &pool_desc, 1, &device, &pool), "zeEventPoolCreate");
    const ze_event_desc_t event = {ZE_STRUCTURE_TYPE_EVENT_DESC, nullptr, 0, ZE_EVENT_SCOPE_FLAG_HOST, ZE_EVENT_SCOPE_FLAG_HOST};
    need(zeEventCreate(pool, &event, &own), "zeEventCreate");
    for (int i = 0; i < 5; ++i) {
        need(zeCommandListAppendBarrier(list, own, 0, nullptr), "zeCommandListAppendBarrier");
        need(zeEventHostSynchronize(own, UINT64_MAX), "zeEventHostSynchronize");
        need(zeEventHostReset(own), "zeEventHostReset");
    }
    need(zelTracerSetEnabled(tracer, 0), "zelTracerSetEnabled");
    need(zelTracerDestroy(tracer), "zelTracerDestroy");
    need(zeCommandListDestroy(list), "zeCommandListDestroy");
    need(zeEventDestroy(own), "zeEventDestroy");
    need(zeEventPoolDestroy(pool), "zeEventPoolDestroy");
    need(zeContextDestroy(context), "zeContextDestroy");
    std::printf("%d %d %d %d\n", before, behind, named, others);
    return 0;
}
