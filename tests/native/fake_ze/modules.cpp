// Modules and kernels. The "binary" of a module is text: a word for each kernel, `global:NAME:BYTES` for a global
// variable, and `error` to have the build fail.
#include <algorithm>
#include <cstring>
#include <sstream>

#include "api.hpp"
#include "kernels.hpp"
#include "device_state.hpp"

namespace fake_ze {
namespace {

ze_module_handle_t to_handle(Module* object) { return reinterpret_cast<ze_module_handle_t>(object); }
ze_kernel_handle_t to_handle(Kernel* object) { return reinterpret_cast<ze_kernel_handle_t>(object); }
ze_module_build_log_handle_t to_handle(BuildLog* object) {
    return reinterpret_cast<ze_module_build_log_handle_t>(object);
}

// Read the module's text; return what is wrong with it.
std::string build(Module& module) {
    std::istringstream words(module.text);
    for (std::string word; words >> word;) {
        if (word == "error") return "error: the module says so";
        if (word.rfind("global:", 0) == 0) {
            const size_t colon = word.rfind(':');
            module.globals[word.substr(7, colon - 7)].resize(std::strtoull(word.c_str() + colon + 1, nullptr, 10));
            continue;
        }
        Code code;
        if (!find_code(word, code)) return "error: no kernel is called " + word;
        module.names.push_back(word);
    }
    return "";
}

// Answer a query for a text's size, then for the text.
ze_result_t text_out(const std::string& text, size_t* size, char* out) {
    if (size == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    if (out != nullptr && *size != 0) {
        std::memcpy(out, text.c_str(), std::min(*size, text.size() + 1));
        out[*size - 1] = '\0';
    }
    *size = text.size() + 1;
    return ZE_RESULT_SUCCESS;
}

}  // namespace

ze_result_t zeModuleCreate(ze_context_handle_t context, ze_device_handle_t, const ze_module_desc_t* desc,
                           ze_module_handle_t* out, ze_module_build_log_handle_t* log_out) {
    FAKE_ZE_ENTER(zeModuleCreate);
    if (find<Context>(context) == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    if (desc == nullptr || out == nullptr || desc->pInputModule == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    auto* module = make<Module>();
    module->text.assign(reinterpret_cast<const char*>(desc->pInputModule), desc->inputSize);
    const std::string trouble = build(*module);
    if (log_out != nullptr) {
        auto* log = make<BuildLog>();
        log->text = trouble;
        *log_out = to_handle(log);
    }
    if (!trouble.empty()) {
        destroy(module);
        return ZE_RESULT_ERROR_MODULE_BUILD_FAILURE;
    }
    *out = to_handle(module);
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeModuleDestroy(ze_module_handle_t handle) {
    FAKE_ZE_ENTER(zeModuleDestroy);
    auto* module = find<Module>(handle);
    if (module == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    destroy(module);
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeModuleDynamicLink(uint32_t, ze_module_handle_t*, ze_module_build_log_handle_t* log_out) {
    FAKE_ZE_ENTER(zeModuleDynamicLink);
    if (log_out != nullptr) *log_out = to_handle(make<BuildLog>());
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeModuleGetNativeBinary(ze_module_handle_t handle, size_t* size, uint8_t* binary) {
    FAKE_ZE_ENTER(zeModuleGetNativeBinary);
    const auto* module = find<Module>(handle);
    if (module == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    if (binary != nullptr) std::memcpy(binary, module->text.data(), std::min(*size, module->text.size()));
    *size = module->text.size();
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeModuleGetGlobalPointer(ze_module_handle_t handle, const char* name, size_t* size, void** pointer) {
    FAKE_ZE_ENTER(zeModuleGetGlobalPointer);
    auto* module = find<Module>(handle);
    if (module == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    const auto at = module->globals.find(name);
    if (at == module->globals.end()) return ZE_RESULT_ERROR_INVALID_GLOBAL_NAME;
    if (size != nullptr) *size = at->second.size();
    if (pointer != nullptr) *pointer = at->second.data();
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeModuleGetKernelNames(ze_module_handle_t handle, uint32_t* count, const char** names) {
    FAKE_ZE_ENTER(zeModuleGetKernelNames);
    const auto* module = find<Module>(handle);
    if (module == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    const auto available = static_cast<uint32_t>(module->names.size());
    if (*count == 0 || *count > available) *count = available;
    for (uint32_t i = 0; names != nullptr && i < *count; ++i) names[i] = module->names[i].c_str();
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeModuleGetProperties(ze_module_handle_t handle, ze_module_properties_t* properties) {
    FAKE_ZE_ENTER(zeModuleGetProperties);
    if (find<Module>(handle) == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    properties->flags = 0;
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeModuleGetFunctionPointer(ze_module_handle_t handle, const char* name, void** function) {
    FAKE_ZE_ENTER(zeModuleGetFunctionPointer);
    if (find<Module>(handle) == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    Code code;
    if (!find_code(name, code)) return ZE_RESULT_ERROR_INVALID_FUNCTION_NAME;
    *function = reinterpret_cast<void*>(code.function);
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeModuleBuildLogDestroy(ze_module_build_log_handle_t handle) {
    FAKE_ZE_ENTER(zeModuleBuildLogDestroy);
    auto* log = find<BuildLog>(handle);
    if (log == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    destroy(log);
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeModuleBuildLogGetString(ze_module_build_log_handle_t handle, size_t* size, char* text) {
    FAKE_ZE_ENTER(zeModuleBuildLogGetString);
    const auto* log = find<BuildLog>(handle);
    if (log == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    return text_out(log->text, size, text);
}

ze_result_t zeKernelCreate(ze_module_handle_t handle, const ze_kernel_desc_t* desc, ze_kernel_handle_t* out) {
    FAKE_ZE_ENTER(zeKernelCreate);
    const auto* module = find<Module>(handle);
    if (module == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    if (desc == nullptr || desc->pKernelName == nullptr || out == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    if (std::find(module->names.begin(), module->names.end(), desc->pKernelName) == module->names.end()) {
        return ZE_RESULT_ERROR_INVALID_KERNEL_NAME;
    }
    auto* kernel = make<Kernel>();
    kernel->name = desc->pKernelName;
    find_code(kernel->name, kernel->code);
    *out = to_handle(kernel);
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeKernelDestroy(ze_kernel_handle_t handle) {
    FAKE_ZE_ENTER(zeKernelDestroy);
    auto* kernel = find<Kernel>(handle);
    if (kernel == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    destroy(kernel);
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeKernelSetCacheConfig(ze_kernel_handle_t handle, ze_cache_config_flags_t) {
    FAKE_ZE_ENTER(zeKernelSetCacheConfig);
    return find<Kernel>(handle) == nullptr ? ZE_RESULT_ERROR_INVALID_NULL_HANDLE : ZE_RESULT_SUCCESS;
}

ze_result_t zeKernelSetGroupSize(ze_kernel_handle_t handle, uint32_t x, uint32_t y, uint32_t z) {
    FAKE_ZE_ENTER(zeKernelSetGroupSize);
    auto* kernel = find<Kernel>(handle);
    if (kernel == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    if (x == 0 || y == 0 || z == 0) return ZE_RESULT_ERROR_INVALID_GROUP_SIZE_DIMENSION;
    kernel->group_size[0] = x;
    kernel->group_size[1] = y;
    kernel->group_size[2] = z;
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeKernelSuggestGroupSize(ze_kernel_handle_t, uint32_t x, uint32_t y, uint32_t z, uint32_t* group_x,
                                     uint32_t* group_y, uint32_t* group_z) {
    FAKE_ZE_ENTER(zeKernelSuggestGroupSize);
    *group_x = std::clamp(x, 1u, 256u);
    *group_y = std::clamp(y, 1u, 1u);
    *group_z = std::clamp(z, 1u, 1u);
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeKernelSuggestMaxCooperativeGroupCount(ze_kernel_handle_t, uint32_t* total) {
    FAKE_ZE_ENTER(zeKernelSuggestMaxCooperativeGroupCount);
    *total = 64;
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeKernelSetArgumentValue(ze_kernel_handle_t handle, uint32_t index, size_t size, const void* value) {
    FAKE_ZE_ENTER(zeKernelSetArgumentValue);
    auto* kernel = find<Kernel>(handle);
    if (kernel == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    if (index >= 64) return ZE_RESULT_ERROR_INVALID_KERNEL_ARGUMENT_INDEX;
    if (kernel->arguments.size() <= index) kernel->arguments.resize(index + 1);
    const auto* bytes = static_cast<const char*>(value);
    if (bytes == nullptr) {
        kernel->arguments[index].assign(size, 0);
    } else {
        kernel->arguments[index].assign(bytes, bytes + size);
    }
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeKernelSetIndirectAccess(ze_kernel_handle_t handle, ze_kernel_indirect_access_flags_t flags) {
    FAKE_ZE_ENTER(zeKernelSetIndirectAccess);
    auto* kernel = find<Kernel>(handle);
    if (kernel == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    kernel->indirect_access = flags;
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeKernelGetIndirectAccess(ze_kernel_handle_t handle, ze_kernel_indirect_access_flags_t* flags) {
    FAKE_ZE_ENTER(zeKernelGetIndirectAccess);
    const auto* kernel = find<Kernel>(handle);
    if (kernel == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    *flags = kernel->indirect_access;
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeKernelGetSourceAttributes(ze_kernel_handle_t, uint32_t* size, char** text) {
    FAKE_ZE_ENTER(zeKernelGetSourceAttributes);
    *size = 1;
    if (text != nullptr && *text != nullptr) **text = '\0';
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeKernelGetProperties(ze_kernel_handle_t handle, ze_kernel_properties_t* properties) {
    FAKE_ZE_ENTER(zeKernelGetProperties);
    const auto* kernel = find<Kernel>(handle);
    if (kernel == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    properties->numKernelArgs = static_cast<uint32_t>(kernel->arguments.size());
    properties->requiredGroupSizeX = properties->requiredGroupSizeY = properties->requiredGroupSizeZ = 0;
    properties->requiredNumSubGroups = properties->requiredSubgroupSize = 0;
    properties->maxSubgroupSize = 16;
    properties->maxNumSubgroups = 64;
    properties->localMemSize = properties->privateMemSize = properties->spillMemSize = 0;
    std::memset(&properties->uuid, 0, sizeof properties->uuid);
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeKernelGetName(ze_kernel_handle_t handle, size_t* size, char* name) {
    FAKE_ZE_ENTER(zeKernelGetName);
    const auto* kernel = find<Kernel>(handle);
    if (kernel == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    return text_out(kernel->name, size, name);
}

}  // namespace fake_ze
