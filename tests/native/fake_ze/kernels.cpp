// The kernels that come with the driver, those that programs register, and their launch.
//
//   saxpy(float a, float* x, float* y, uint32_t n)   y = a * x + y
//   add(uint32_t* p, uint32_t value, uint32_t n)     p[i] += value
//   hold(uint32_t* flag)                             runs until the host (or a copy) makes *flag other than 0
//   busy_N..., as busy_300 or busy_300_left          takes N ticks
//   nothing()
#include "kernels.hpp"

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <shared_mutex>
#include <thread>

#include "command_types.hpp"

namespace fake_ze {
namespace {

template <class T>
T argument(const fake_ze_launch& launch, uint32_t index) {
    T value{};
    if (index < launch.count && launch.sizes[index] == sizeof value) {
        std::memcpy(&value, launch.arguments[index], sizeof value);
    } else {
        mistake("a kernel was launched without argument " + std::to_string(index));
    }
    return value;
}

void saxpy(const fake_ze_launch* launch) {
    const auto a = argument<float>(*launch, 0);
    const auto* x = argument<const float*>(*launch, 1);
    auto* y = argument<float*>(*launch, 2);
    const auto n = argument<uint32_t>(*launch, 3);
    for (uint32_t i = 0; i < n; ++i) y[i] += a * x[i];
}

void add(const fake_ze_launch* launch) {
    auto* p = argument<uint32_t*>(*launch, 0);
    const auto value = argument<uint32_t>(*launch, 1);
    const auto n = argument<uint32_t>(*launch, 2);
    for (uint32_t i = 0; i < n; ++i) p[i] += value;
}

void hold(const fake_ze_launch* launch) {
    auto* flag = argument<uint32_t*>(*launch, 0);
    while (std::atomic_ref(*flag).load(std::memory_order_acquire) == 0 && !leaving) {
        std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
}

void nothing(const fake_ze_launch*) {}

struct Registry {
    std::shared_mutex mutex;
    std::map<std::string, Code> code = {
        {"saxpy", {saxpy, nullptr, 100}}, {"add", {add, nullptr, 50}}, {"hold", {hold, nullptr, 1}},
        {"nothing", {nothing, nullptr, 1}},
    };
};

Registry& registry() {
    static Registry& once = *new Registry;
    return once;
}

}  // namespace

bool find_code(const std::string& name, Code& code) {
    {
        const std::shared_lock lock(registry().mutex);
        if (const auto at = registry().code.find(name); at != registry().code.end()) {
            code = at->second;
            return true;
        }
    }
    char* end = nullptr;
    if (name.rfind("busy_", 0) != 0) return false;
    code = {nothing, nullptr, std::strtoull(name.c_str() + 5, &end, 10)};
    return end != name.c_str() + 5;
}

Launch::Launch(const Kernel& kernel) : name(kernel.name), code(kernel.code), arguments(kernel.arguments) {
    std::memcpy(group_size, kernel.group_size, sizeof group_size);
}

void Launch::run(const ze_group_count_t& groups) const {
    std::vector<const void*> pointers;
    std::vector<size_t> sizes;
    for (const auto& value : arguments) {
        pointers.push_back(value.data());
        sizes.push_back(value.size());
    }
    const fake_ze_launch launch = {pointers.data(),
                                  sizes.data(),
                                  static_cast<uint32_t>(arguments.size()),
                                  {groups.groupCountX, groups.groupCountY, groups.groupCountZ},
                                  {group_size[0], group_size[1], group_size[2]},
                                  code.data};
    code.function(&launch);
}

ze_result_t append_launch(const char* api, ze_command_list_handle_t list_handle, ze_kernel_handle_t kernel_handle,
                          const ze_group_count_t* groups, ze_event_handle_t signal, uint32_t count,
                          ze_event_handle_t* waits) {
    const auto* kernel = find<Kernel>(kernel_handle);
    const auto* list = find<List>(list_handle);
    if (kernel == nullptr || list == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    if (groups == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    if (list->ordinal == copy_ordinal) return ZE_RESULT_ERROR_INVALID_COMMAND_LIST_TYPE;
    Command command;
    command.api = api;
    command.kernel = kernel->name;
    command.groups = *groups;
    command.cost = kernel->code.ticks;
    command.effect = [launch = Launch(*kernel), sizes = *groups](Device&) { launch.run(sizes); };
    return append(list_handle, std::move(command), signal, count, waits);
}

ze_result_t append_indirect(const char* api, ze_command_list_handle_t list_handle, uint32_t number,
                            ze_kernel_handle_t* kernels, const uint32_t* how_many, const ze_group_count_t* groups,
                            ze_event_handle_t signal, uint32_t count, ze_event_handle_t* waits) {
    const auto* list = find<List>(list_handle);
    if (list == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    if (kernels == nullptr || groups == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    if (list->ordinal == copy_ordinal) return ZE_RESULT_ERROR_INVALID_COMMAND_LIST_TYPE;
    Command command;
    command.api = api;
    std::vector<Launch> launches;
    for (uint32_t i = 0; i < number; ++i) {
        const auto* kernel = find<Kernel>(kernels[i]);
        if (kernel == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
        command.kernel += (i == 0 ? "" : "+") + kernel->name;
        command.cost += kernel->code.ticks;
        launches.emplace_back(*kernel);
    }
    command.effect = [launches, how_many, groups](Device&) {
        const size_t wanted = how_many == nullptr ? launches.size() : *how_many;
        for (size_t i = 0; i < launches.size() && i < wanted; ++i) launches[i].run(groups[i]);
    };
    return append(list_handle, std::move(command), signal, count, waits);
}

ze_result_t set_launch(ze_kernel_handle_t handle, const ze_group_size_t& size, void** arguments) {
    auto* kernel = find<Kernel>(handle);
    if (kernel == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    kernel->group_size[0] = size.groupSizeX;
    kernel->group_size[1] = size.groupSizeY;
    kernel->group_size[2] = size.groupSizeZ;
    // Level Zero knows the arguments' sizes from the module; here they are those of the values set before.
    for (size_t i = 0; i < kernel->arguments.size(); ++i) {
        if (arguments == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
        std::memcpy(kernel->arguments[i].data(), arguments[i], kernel->arguments[i].size());
    }
    return ZE_RESULT_SUCCESS;
}

}  // namespace fake_ze

__attribute__((visibility("default"))) void fake_ze_register_kernel(const char* name, fake_ze_kernel function, void* data,
                                                                   uint64_t ticks) {
    const std::unique_lock lock(fake_ze::registry().mutex);
    fake_ze::registry().code[name] = {function, data, ticks};
}
