// The one driver and its devices, and handles to and from objects.
#pragma once

#include "model.hpp"

namespace fake_ze {

struct DeviceState {
    Driver* driver = nullptr;
    std::vector<Device*> devices;
};

DeviceState& device_state();

inline ze_driver_handle_t to_handle(Driver* object) { return reinterpret_cast<ze_driver_handle_t>(object); }
inline ze_device_handle_t to_handle(Device* object) { return reinterpret_cast<ze_device_handle_t>(object); }
inline ze_context_handle_t to_handle(Context* object) { return reinterpret_cast<ze_context_handle_t>(object); }
inline ze_event_pool_handle_t to_handle(Pool* object) { return reinterpret_cast<ze_event_pool_handle_t>(object); }
inline ze_event_handle_t to_handle(Event* object) { return reinterpret_cast<ze_event_handle_t>(object); }
inline ze_command_list_handle_t to_handle(List* object) { return reinterpret_cast<ze_command_list_handle_t>(object); }
inline ze_command_queue_handle_t to_handle(Queue* object) { return reinterpret_cast<ze_command_queue_handle_t>(object); }
inline ze_fence_handle_t to_handle(Fence* object) { return reinterpret_cast<ze_fence_handle_t>(object); }

inline ze_image_handle_t to_handle(Image* object) { return reinterpret_cast<ze_image_handle_t>(object); }

// Say so if an object's context is gone. Destroying the object afterwards is borne, everything else is not.
template <class T>
bool context_lives(const T& object, const char* function) {
    if (object.context.is_alive()) return true;
    mistake(std::string(function) + " after the destruction of the context");
    return false;
}

}  // namespace fake_ze
