#include "device.hpp"

#include <cstdio>
#include <cstdlib>

void check(ze_result_t result, const char* call) {
    if (result == ZE_RESULT_SUCCESS) return;
    std::fprintf(stderr, "fake_ze_app: %s returned 0x%x\n", call, static_cast<unsigned>(result));
    std::exit(1);
}

void require(bool truth, const char* what) {
    if (truth) return;
    std::fprintf(stderr, "fake_ze_app: wrong: %s\n", what);
    std::exit(1);
}

Device::Device() {
    CHECK(zeInit, 0);
    uint32_t one = 1;
    CHECK(zeDriverGet, &one, &driver_);
    one = 1;
    CHECK(zeDeviceGet, driver_, &one, &device_);
    const ze_context_desc_t context = {ZE_STRUCTURE_TYPE_CONTEXT_DESC, nullptr, 0};
    CHECK(zeContextCreate, driver_, &context, &context_);
    const std::string text = "saxpy add hold nothing busy_50 busy_300 busy_1000";
    ze_module_desc_t module = {};
    module.stype = ZE_STRUCTURE_TYPE_MODULE_DESC;
    module.format = ZE_MODULE_FORMAT_IL_SPIRV;
    module.inputSize = text.size();
    module.pInputModule = reinterpret_cast<const uint8_t*>(text.data());
    CHECK(zeModuleCreate, context_, device_, &module, &module_, nullptr);
    mark_ = reinterpret_cast<void (*)(const char*)>(extension("fake_ze_mark"));
}

Device::~Device() {
    for (void* pointer : memory_) CHECK(zeMemFree, context_, pointer);
    for (auto* kernel : kernels_) CHECK(zeKernelDestroy, kernel);
    for (auto* event : events_) CHECK(zeEventDestroy, event);
    for (auto* pool : pools_) CHECK(zeEventPoolDestroy, pool);
    CHECK(zeModuleDestroy, module_);
    CHECK(zeContextDestroy, context_);
}

ze_command_list_handle_t Device::immediate(uint32_t group, uint32_t flags, ze_command_queue_mode_t mode) const {
    ze_command_queue_desc_t desc = {};
    desc.stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC;
    desc.ordinal = group;
    desc.flags = flags;
    desc.mode = mode;
    ze_command_list_handle_t list;
    CHECK(zeCommandListCreateImmediate, context_, device_, &desc, &list);
    return list;
}

ze_command_list_handle_t Device::regular(uint32_t group, uint32_t flags) const {
    const ze_command_list_desc_t desc = {ZE_STRUCTURE_TYPE_COMMAND_LIST_DESC, nullptr, group, flags};
    ze_command_list_handle_t list;
    CHECK(zeCommandListCreate, context_, device_, &desc, &list);
    return list;
}

ze_command_queue_handle_t Device::queue(uint32_t group) const {
    ze_command_queue_desc_t desc = {};
    desc.stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC;
    desc.ordinal = group;
    desc.mode = ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS;
    ze_command_queue_handle_t queue;
    CHECK(zeCommandQueueCreate, context_, device_, &desc, &queue);
    return queue;
}

ze_event_handle_t Device::event(bool has_ticks) {
    ze_event_pool_desc_t pool_desc = {};
    pool_desc.stype = ZE_STRUCTURE_TYPE_EVENT_POOL_DESC;
    pool_desc.flags = ZE_EVENT_POOL_FLAG_HOST_VISIBLE;
    if (has_ticks) pool_desc.flags |= ZE_EVENT_POOL_FLAG_KERNEL_TIMESTAMP;
    pool_desc.count = 1;
    pools_.emplace_back();
    CHECK(zeEventPoolCreate, context_, &pool_desc, 1, &device_, &pools_.back());
    ze_event_desc_t desc = {};
    desc.stype = ZE_STRUCTURE_TYPE_EVENT_DESC;
    desc.signal = desc.wait = ZE_EVENT_SCOPE_FLAG_HOST;
    events_.emplace_back();
    CHECK(zeEventCreate, pools_.back(), &desc, &events_.back());
    return events_.back();
}

ze_kernel_handle_t Device::kernel(const char* name) {
    const ze_kernel_desc_t desc = {ZE_STRUCTURE_TYPE_KERNEL_DESC, nullptr, 0, name};
    kernels_.emplace_back();
    CHECK(zeKernelCreate, module_, &desc, &kernels_.back());
    CHECK(zeKernelSetGroupSize, kernels_.back(), 32, 1, 1);
    return kernels_.back();
}

void* Device::memory(size_t bytes, bool on_device) {
    void* pointer = nullptr;
    if (on_device) {
        const ze_device_mem_alloc_desc_t desc = {ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC, nullptr, 0, 0};
        CHECK(zeMemAllocDevice, context_, &desc, bytes, 64, device_, &pointer);
    } else {
        const ze_host_mem_alloc_desc_t desc = {ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC, nullptr, 0};
        CHECK(zeMemAllocHost, context_, &desc, bytes, 64, &pointer);
    }
    memory_.push_back(pointer);
    return pointer;
}

void* Device::extension(const char* name) const {
    void* address = nullptr;
    const ze_result_t code = ze.zeDriverGetExtensionFunctionAddress(driver_, name, &address);
    return code == ZE_RESULT_SUCCESS ? address : nullptr;
}

void Device::mark(const std::string& text) const {
    if (mark_ != nullptr) mark_(text.c_str());
}

void set_saxpy(ze_kernel_handle_t kernel, float a, float* x, float* y, uint32_t n) {
    set_argument(kernel, 0, a);
    set_argument(kernel, 1, x);
    set_argument(kernel, 2, y);
    set_argument(kernel, 3, n);
}
