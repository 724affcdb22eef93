// Command queues and fences.
#include "api.hpp"
#include "command_types.hpp"
#include "device_state.hpp"

namespace fake_ze {

ze_result_t zeCommandQueueCreate(ze_context_handle_t handle, ze_device_handle_t device_handle,
                                 const ze_command_queue_desc_t* desc, ze_command_queue_handle_t* out) {
    FAKE_ZE_ENTER(zeCommandQueueCreate);
    auto* context = find<Context>(handle);
    auto* device = find<Device>(device_handle);
    if (context == nullptr || device == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    if (desc == nullptr || out == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    if (desc->ordinal >= engines_per_device) return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    auto* queue = make<Queue>();
    queue->context = Ref<Context>(context);
    queue->device = device;
    queue->ordinal = desc->ordinal;
    queue->index = desc->index;
    queue->synchronous = desc->mode == ZE_COMMAND_QUEUE_MODE_SYNCHRONOUS;
    queue->stream = std::make_shared<Stream>();
    queue->stream->engine = device->number * engines_per_device + desc->ordinal;
    queue->stream->queue = queue->serial;
    context->objects.fetch_add(1);
    *out = to_handle(queue);
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeCommandQueueDestroy(ze_command_queue_handle_t handle) {
    FAKE_ZE_ENTER(zeCommandQueueDestroy);
    auto* queue = find<Queue>(handle);
    if (queue == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    if (scheduler().wait_for(*queue->stream, 0) == ZE_RESULT_NOT_READY) {
        mistake("zeCommandQueueDestroy of a queue that still runs");
    }
    if (queue->context.is_alive()) queue->context.object->objects.fetch_sub(1);
    destroy(queue);
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeCommandQueueExecuteCommandLists(ze_command_queue_handle_t handle, uint32_t number,
                                              ze_command_list_handle_t* lists, ze_fence_handle_t fence_handle) {
    FAKE_ZE_ENTER(zeCommandQueueExecuteCommandLists);
    const auto* queue = find<Queue>(handle);
    if (queue == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    if (!context_lives(*queue, "zeCommandQueueExecuteCommandLists")) return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    if (number == 0) return ZE_RESULT_ERROR_INVALID_SIZE;
    if (lists == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    Fence* fence = nullptr;
    if (fence_handle != nullptr) {
        fence = find<Fence>(fence_handle);
        if (fence == nullptr) return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    }
    const ze_result_t code = check_executable("zeCommandQueueExecuteCommandLists", number, lists, queue->ordinal);
    if (code != ZE_RESULT_SUCCESS) return code;
    std::vector<Submission> submissions = submissions_of(number, lists);
    if (submissions.empty() && fence != nullptr) {
        // Something must end to signal the fence, behind all that the queue holds.
        Command barrier;
        barrier.role = Role::barrier;
        auto lane = std::make_shared<Lane>();
        lane->device = queue->device;
        submissions.push_back({std::make_shared<const Command>(std::move(barrier)), lane, 1});
    }
    scheduler().submit(queue->stream, submissions, fence);
    return queue->synchronous ? scheduler().wait_for(*queue->stream, UINT64_MAX) : ZE_RESULT_SUCCESS;
}

ze_result_t zeCommandQueueSynchronize(ze_command_queue_handle_t handle, uint64_t timeout) {
    FAKE_ZE_ENTER(zeCommandQueueSynchronize);
    const auto* queue = find<Queue>(handle);
    if (queue == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    if (!context_lives(*queue, "zeCommandQueueSynchronize")) return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    return scheduler().wait_for(*queue->stream, timeout);
}

ze_result_t zeCommandQueueGetOrdinal(ze_command_queue_handle_t handle, uint32_t* ordinal) {
    FAKE_ZE_ENTER(zeCommandQueueGetOrdinal);
    const auto* queue = find<Queue>(handle);
    if (queue == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    *ordinal = queue->ordinal;
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeCommandQueueGetIndex(ze_command_queue_handle_t handle, uint32_t* index) {
    FAKE_ZE_ENTER(zeCommandQueueGetIndex);
    const auto* queue = find<Queue>(handle);
    if (queue == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    *index = queue->index;
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeFenceCreate(ze_command_queue_handle_t handle, const ze_fence_desc_t* desc, ze_fence_handle_t* out) {
    FAKE_ZE_ENTER(zeFenceCreate);
    auto* queue = find<Queue>(handle);
    if (queue == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    if (desc == nullptr || out == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    auto* fence = make<Fence>();
    fence->queue = Ref<Queue>(queue);
    fence->signalled = (desc->flags & ZE_FENCE_FLAG_SIGNALED) != 0 ? 1 : 0;
    *out = to_handle(fence);
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeFenceDestroy(ze_fence_handle_t handle) {
    FAKE_ZE_ENTER(zeFenceDestroy);
    auto* fence = find<Fence>(handle);
    if (fence == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    if (fence->queued.load() != 0 && !scheduler().is_lost()) mistake("fence destroyed while the device uses it");
    destroy(fence);
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeFenceHostSynchronize(ze_fence_handle_t handle, uint64_t timeout) {
    FAKE_ZE_ENTER(zeFenceHostSynchronize);
    const auto* fence = find<Fence>(handle);
    if (fence == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    return scheduler().wait(timeout, [fence] { return fence->signalled.load(std::memory_order_acquire) != 0; });
}

ze_result_t zeFenceQueryStatus(ze_fence_handle_t handle) {
    FAKE_ZE_ENTER(zeFenceQueryStatus);
    const auto* fence = find<Fence>(handle);
    if (fence == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    if (scheduler().status_is_lost()) return ZE_RESULT_ERROR_DEVICE_LOST;
    scheduler().poll();
    return fence->signalled.load(std::memory_order_acquire) != 0 ? ZE_RESULT_SUCCESS : ZE_RESULT_NOT_READY;
}

ze_result_t zeFenceReset(ze_fence_handle_t handle) {
    FAKE_ZE_ENTER(zeFenceReset);
    auto* fence = find<Fence>(handle);
    if (fence == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    fence->signalled.store(0, std::memory_order_release);
    return ZE_RESULT_SUCCESS;
}

}  // namespace fake_ze
