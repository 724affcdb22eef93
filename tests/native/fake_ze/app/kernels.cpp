#include <cstring>

#include "../fake_ze.h"
#include "device.hpp"
#include "subcommands.hpp"

namespace {

constexpr char first_name[] = "count_groups", second_name[] = "count_twice";

// Add to *argument what the launch counts, times the number that the function was registered with.
void count_groups(const fake_ze_launch* launch) {
    uint32_t* total;
    std::memcpy(&total, launch->arguments[0], sizeof total);
    const auto* factor = static_cast<const uint32_t*>(launch->data);
    *total += *factor * launch->groups[0] * launch->groups[1] * launch->group_size[0];
}

ze_module_handle_t build(Device& device, const std::string& text, std::string& log) {
    ze_module_desc_t desc = {};
    desc.stype = ZE_STRUCTURE_TYPE_MODULE_DESC;
    desc.inputSize = text.size();
    desc.pInputModule = reinterpret_cast<const uint8_t*>(text.data());
    ze_module_handle_t module = nullptr;
    ze_module_build_log_handle_t log_handle;
    const ze_result_t code = ze.zeModuleCreate(device.context(), device.handle(), &desc, &module, &log_handle);
    require(code == ZE_RESULT_SUCCESS || code == ZE_RESULT_ERROR_MODULE_BUILD_FAILURE, "it builds or it does not");
    size_t size = 0;
    CHECK(zeModuleBuildLogGetString, log_handle, &size, nullptr);
    log.resize(size);
    CHECK(zeModuleBuildLogGetString, log_handle, &size, log.data());
    log.resize(size - 1);
    CHECK(zeModuleBuildLogDestroy, log_handle);
    return module;
}

}  // namespace

void kernels(uint32_t count) {
    Device device;
    static uint32_t once = 1, twice = 2;
    const auto add = reinterpret_cast<fake_ze_register_kernel_t>(device.extension("fake_ze_register_kernel"));
    const auto stat = reinterpret_cast<fake_ze_stat_t>(device.extension("fake_ze_stat"));
    require(add != nullptr && stat != nullptr, "the driver is fake_ze");
    std::string log;
    require(build(device, first_name, log) == nullptr, "a name that is not registered");
    require(log == "error: no kernel is called count_groups", "the log says why");
    add(first_name, count_groups, &once, 10);
    add(second_name, count_groups, &twice, 10);
    auto* module = build(device, std::string(first_name) + " global:table:12 " + second_name, log);
    require(module != nullptr && log.empty(), "names that are registered");
    uint32_t number = 0;
    CHECK(zeModuleGetKernelNames, module, &number, nullptr);
    std::vector<const char*> names(number);
    CHECK(zeModuleGetKernelNames, module, &number, names.data());
    require(number == 2 && names[0] == std::string(first_name) && names[1] == std::string(second_name), "both names");
    size_t size = 0;
    void* table = nullptr;
    CHECK(zeModuleGetGlobalPointer, module, "table", &size, &table);
    require(size == 12 && table != nullptr, "a global of twelve bytes");

    auto* total = device.host<uint32_t>(1);
    auto* groups = device.host<ze_group_count_t>(2);
    auto* how_many = device.host<uint32_t>(1);
    groups[0] = {3, 2, 1};
    groups[1] = {5, 1, 1};
    *total = 0;
    *how_many = 0;
    ze_kernel_handle_t both[2];
    for (int i = 0; i < 2; ++i) {
        const ze_kernel_desc_t desc = {ZE_STRUCTURE_TYPE_KERNEL_DESC, nullptr, 0, names[static_cast<size_t>(i)]};
        CHECK(zeKernelCreate, module, &desc, &both[i]);
        CHECK(zeKernelSetGroupSize, both[i], 10, 1, 1);
        set_argument(both[i], 0, total);
        char name[32];
        size_t length = sizeof name;
        CHECK(zeKernelGetName, both[i], &length, name);
        require(name == std::string(desc.pKernelName) && length == std::strlen(name) + 1, "a kernel's name");
    }
    require(stat("live.kernel") == 2 && stat("nothing.of.the.kind") == 0, "two kernels are alive");
    auto* list = device.immediate(compute_group, in_order_queue, ZE_COMMAND_QUEUE_MODE_SYNCHRONOUS);
    uint32_t expected = 0;
    for (uint32_t i = 0; i < count; ++i) {
        *how_many = i % 3;  // read when the command runs
        CHECK(zeCommandListAppendLaunchMultipleKernelsIndirect, list, 2, both, how_many, groups, nullptr, 0, nullptr);
        expected += (i % 3 > 0 ? 60 : 0) + (i % 3 > 1 ? 100 : 0);
        require(*total == expected, "a synchronous list has run what it took");
    }
    CHECK(zeCommandListDestroy, list);
    for (auto* kernel : both) CHECK(zeKernelDestroy, kernel);
    CHECK(zeModuleDestroy, module);
}
