// What every subcommand needs: a device, a context, and short ways to make lists, events, memory and kernels.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "api.hpp"

inline constexpr uint32_t compute_group = 0, copy_group = 1;
inline constexpr uint32_t in_order_queue = 1u << 1, in_order_list = 1u << 3;  // newer than Debian's headers
inline constexpr uint64_t forever = UINT64_MAX;

// End the program, unsuccessfully, if a call did not succeed.
void check(ze_result_t result, const char* call);
#define CHECK(function, ...) check(ze.function(__VA_ARGS__), #function)

// End the program, unsuccessfully, if something that must be so is not.
void require(bool truth, const char* what);

class Device {
public:
    Device();
    ~Device();
    Device(const Device&) = delete;
    Device& operator=(const Device&) = delete;

    ze_context_handle_t context() const { return context_; }
    ze_device_handle_t handle() const { return device_; }

    ze_command_list_handle_t immediate(uint32_t group, uint32_t flags = 0,
                                       ze_command_queue_mode_t mode = ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS) const;
    ze_command_list_handle_t regular(uint32_t group, uint32_t flags = 0) const;
    ze_command_queue_handle_t queue(uint32_t group) const;
    ze_event_handle_t event(bool has_ticks = false);
    ze_kernel_handle_t kernel(const char* name);

    template <class T>
    T* host(size_t count) {
        return static_cast<T*>(memory(count * sizeof(T), false));
    }
    template <class T>
    T* device(size_t count) {
        return static_cast<T*>(memory(count * sizeof(T), true));
    }

    // A function of the driver's own; null if the driver is another than fake_ze.
    void* extension(const char* name) const;

    // Name the next command in the driver's truth, if the driver is fake_ze.
    void mark(const std::string& text) const;

private:
    void* memory(size_t bytes, bool on_device);

    ze_driver_handle_t driver_;
    ze_device_handle_t device_;
    ze_context_handle_t context_;
    ze_module_handle_t module_;
    void (*mark_)(const char*) = nullptr;
    std::vector<ze_event_pool_handle_t> pools_;
    std::vector<ze_event_handle_t> events_;
    std::vector<ze_kernel_handle_t> kernels_;
    std::vector<void*> memory_;
};

template <class T>
void set_argument(ze_kernel_handle_t kernel, uint32_t index, const T& value) {
    CHECK(zeKernelSetArgumentValue, kernel, index, sizeof value, &value);
}

// Set saxpy's arguments: y = a * x + y over n floats.
void set_saxpy(ze_kernel_handle_t kernel, float a, float* x, float* y, uint32_t n);
