// Contexts.
#include "api.hpp"
#include "device_state.hpp"
#include "driver_quirks.hpp"

namespace fake_ze {

ze_result_t zeContextCreateEx(ze_driver_handle_t driver, const ze_context_desc_t* desc, uint32_t, ze_device_handle_t*,
                              ze_context_handle_t* context) {
    FAKE_ZE_ENTER(zeContextCreateEx);
    if (find<Driver>(driver) == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    if (desc == nullptr || context == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    *context = to_handle(make<Context>());
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeContextCreate(ze_driver_handle_t driver, const ze_context_desc_t* desc, ze_context_handle_t* context) {
    FAKE_ZE_ENTER(zeContextCreate);
    return fake_ze::zeContextCreateEx(driver, desc, 0, nullptr, context);
}

ze_result_t zeContextDestroy(ze_context_handle_t handle) {
    FAKE_ZE_ENTER(zeContextDestroy);
    await_samples();
    auto* context = find<Context>(handle);
    if (context == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    if (const int64_t left = context->objects.load(); left != 0) {
        oddity("context destroyed with " + std::to_string(left) + " lists, queues and pools in it");
    }
    destroy(context);
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeContextGetStatus(ze_context_handle_t context) {
    FAKE_ZE_ENTER(zeContextGetStatus);
    return find<Context>(context) == nullptr ? ZE_RESULT_ERROR_INVALID_NULL_HANDLE : ZE_RESULT_SUCCESS;
}

ze_result_t zeContextSystemBarrier(ze_context_handle_t, ze_device_handle_t) {
    FAKE_ZE_ENTER(zeContextSystemBarrier);
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeContextMakeMemoryResident(ze_context_handle_t, ze_device_handle_t, void*, size_t) {
    FAKE_ZE_ENTER(zeContextMakeMemoryResident);
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeContextEvictMemory(ze_context_handle_t, ze_device_handle_t, void*, size_t) {
    FAKE_ZE_ENTER(zeContextEvictMemory);
    return ZE_RESULT_SUCCESS;
}

ze_context_handle_t zeDriverGetDefaultContext(ze_driver_handle_t) {
    static Context* const context = make<Context>();
    return to_handle(context);
}

}  // namespace fake_ze
