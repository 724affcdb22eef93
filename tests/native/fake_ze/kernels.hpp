// Kernels: C functions with names, and how they are launched.
#pragma once

#include "model.hpp"
#include "api_versions.hpp"
#include "fake_ze.h"

namespace fake_ze {

struct Code {
    fake_ze_kernel function = nullptr;
    void* data = nullptr;
    uint64_t ticks = 0;
};

// The code of a name: registered, built in, or `busy_N...`, which takes N ticks and does nothing else. False if there
// is none.
bool find_code(const std::string& name, Code& code);

struct Module : Object {
    static constexpr Kind own_kind = Kind::module;
    std::vector<std::string> names;  // its kernels
    std::string text;
    std::map<std::string, std::vector<char>> globals;
};

struct BuildLog : Object {
    static constexpr Kind own_kind = Kind::build_log;
    std::string text;
};

struct Kernel : Object {
    static constexpr Kind own_kind = Kind::kernel;
    std::string name;
    Code code;
    uint32_t group_size[3] = {1, 1, 1};
    std::vector<std::vector<char>> arguments;
    ze_kernel_indirect_access_flags_t indirect_access = 0;
};

// A kernel with the arguments and group size that it had when it was appended.
struct Launch {
    std::string name;
    Code code;
    uint32_t group_size[3];
    std::vector<std::vector<char>> arguments;

    explicit Launch(const Kernel& kernel);
    void run(const ze_group_count_t& groups) const;
};

ze_result_t append_launch(const char* api, ze_command_list_handle_t list, ze_kernel_handle_t kernel,
                          const ze_group_count_t* groups, ze_event_handle_t signal, uint32_t count,
                          ze_event_handle_t* waits);

// Group counts are read when the command runs, and so is how many of the kernels do; `how_many` null means all.
ze_result_t append_indirect(const char* api, ze_command_list_handle_t list, uint32_t number,
                            ze_kernel_handle_t* kernels, const uint32_t* how_many, const ze_group_count_t* groups,
                            ze_event_handle_t signal, uint32_t count, ze_event_handle_t* waits);

// Set the group size and, by the sizes they have had so far, the arguments of a kernel.
ze_result_t set_launch(ze_kernel_handle_t kernel, const ze_group_size_t& size, void** arguments);

}  // namespace fake_ze
