// Leaves without having waited: five barriers each on a compute and a copy list, and one that waits for what never comes.
// `leave [MILLISECONDS]` stays so long before.
#include <level_zero/ze_api.h>

#include <cstdio>
#include <cstdlib>
#include <unistd.h>

namespace {

void require(ze_result_t result) {
    if (result != ZE_RESULT_SUCCESS) std::exit(1);
}

}  // namespace

int main(int count_of_words, char** words) {
    uint32_t count = 1;
    ze_driver_handle_t driver;
    ze_device_handle_t device;
    ze_context_handle_t context;
    require(zeInit(0));
    require(zeDriverGet(&count, &driver));
    count = 1;
    require(zeDeviceGet(driver, &count, &device));
    const ze_context_desc_t desc = {ZE_STRUCTURE_TYPE_CONTEXT_DESC, nullptr, 0};
    require(zeContextCreate(driver, &desc, &context));
    ze_command_queue_desc_t queue = {ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC, nullptr, 0, 0, 0, ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS, ZE_COMMAND_QUEUE_PRIORITY_NORMAL};
    ze_command_list_handle_t compute, copy;
    require(zeCommandListCreateImmediate(context, device, &queue, &compute));
    queue.ordinal = 1;
    require(zeCommandListCreateImmediate(context, device, &queue, &copy));
    const ze_event_pool_desc_t pool_desc = {ZE_STRUCTURE_TYPE_EVENT_POOL_DESC, nullptr, ZE_EVENT_POOL_FLAG_HOST_VISIBLE, 1};
    const ze_event_desc_t event_desc = {ZE_STRUCTURE_TYPE_EVENT_DESC, nullptr, 0, 0, 0};
    ze_event_pool_handle_t pool;
    ze_event_handle_t never;
    require(zeEventPoolCreate(context, &pool_desc, 1, &device, &pool));
    require(zeEventCreate(pool, &event_desc, &never));
    for (int i = 0; i < 5; ++i) {
        require(zeCommandListAppendBarrier(compute, nullptr, 0, nullptr));
        require(zeCommandListAppendBarrier(copy, nullptr, 0, nullptr));
    }
    require(zeCommandListAppendBarrier(compute, nullptr, 1, &never));
    usleep(count_of_words > 1 ? 1000 * static_cast<useconds_t>(std::atoi(words[1])) : 200'000);
    std::puts("left");
    return 0;
}
