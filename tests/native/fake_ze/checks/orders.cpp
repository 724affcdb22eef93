// Print, as JSON, whether a second command ends while a first one waits for the host, in one situation after another.
// With FAKE_ZE_EXECUTE=inline all that may run has run when an append returns, so the answers are exact.
#include <dlfcn.h>
#include <level_zero/ze_api.h>

#include <cstdio>
#include <cstdlib>

namespace {

void* loader = nullptr;

#define CALL(function, ...) reinterpret_cast<decltype(&::function)>(dlsym(loader, #function))(__VA_ARGS__)
#define CHECK(function, ...)                                                \
    do {                                                                    \
        if (CALL(function, __VA_ARGS__) != ZE_RESULT_SUCCESS) std::exit(1); \
    } while (false)

constexpr uint32_t in_order_queue = 1u << 1;

class Situation {
public:
    Situation() {
        uint32_t one = 1;
        ze_driver_handle_t driver;
        CHECK(zeInit, 0);
        CHECK(zeDriverGet, &one, &driver);
        CHECK(zeDeviceGet, driver, &one, &device_);
        const ze_context_desc_t context_desc = {ZE_STRUCTURE_TYPE_CONTEXT_DESC, nullptr, 0};
        CHECK(zeContextCreate, driver, &context_desc, &context_);
        const ze_event_pool_desc_t pool_desc = {ZE_STRUCTURE_TYPE_EVENT_POOL_DESC, nullptr,
                                                ZE_EVENT_POOL_FLAG_HOST_VISIBLE, 2};
        CHECK(zeEventPoolCreate, context_, &pool_desc, 0, nullptr, &pool_);
        ze_event_desc_t event_desc = {ZE_STRUCTURE_TYPE_EVENT_DESC, nullptr, 0, 0, 0};
        CHECK(zeEventCreate, pool_, &event_desc, &go);
        event_desc.index = 1;
        CHECK(zeEventCreate, pool_, &event_desc, &second);
    }

    // An immediate list, of which there are at most two.
    ze_command_list_handle_t list(uint32_t ordinal, uint32_t flags) {
        ze_command_queue_desc_t desc = {};
        desc.stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC;
        desc.ordinal = ordinal;
        desc.flags = flags;
        CHECK(zeCommandListCreateImmediate, context_, device_, &desc, &lists_[lists_made_]);
        return lists_[lists_made_++];
    }

    // A copy: a command with no rule of its own.
    void copy(ze_command_list_handle_t list, ze_event_handle_t signal, ze_event_handle_t wait) {
        CHECK(zeCommandListAppendMemoryCopy, list, to_, from_, sizeof to_, signal, wait == nullptr ? 0 : 1,
              wait == nullptr ? nullptr : &wait);
    }

    void barrier(ze_command_list_handle_t list, ze_event_handle_t signal, ze_event_handle_t wait) {
        CHECK(zeCommandListAppendBarrier, list, signal, wait == nullptr ? 0 : 1, wait == nullptr ? nullptr : &wait);
    }

    // Say whether the second command has ended; then let the first go, and see that the second ends too.
    void tell(const char* name, bool is_last = false) {
        const bool has_ended = CALL(zeEventQueryStatus, second) == ZE_RESULT_SUCCESS;
        std::printf("\"%s\": %s%s", name, has_ended ? "true" : "false", is_last ? "}\n" : ", ");
        CHECK(zeEventHostSignal, go);
        CHECK(zeEventHostSynchronize, second, UINT64_MAX);
        while (lists_made_ != 0) CHECK(zeCommandListDestroy, lists_[--lists_made_]);
        CHECK(zeEventDestroy, go);
        CHECK(zeEventDestroy, second);
        CHECK(zeEventPoolDestroy, pool_);
        CHECK(zeContextDestroy, context_);
    }

    ze_event_handle_t go, second;

private:
    ze_device_handle_t device_;
    ze_context_handle_t context_;
    ze_event_pool_handle_t pool_;
    ze_command_list_handle_t lists_[2];
    int lists_made_ = 0;
    char from_[8] = {}, to_[8] = {};
};

}  // namespace

int main() {
    loader = dlopen("libze_loader.so.1", RTLD_NOW);
    if (loader == nullptr) return 3;
    std::printf("{");
    {
        Situation s;
        auto* list = s.list(0, 0);
        s.copy(list, nullptr, s.go);
        s.copy(list, s.second, nullptr);
        s.tell("behind it, unordered list");
    }
    {
        Situation s;
        auto* list = s.list(0, in_order_queue);
        s.copy(list, nullptr, s.go);
        s.copy(list, s.second, nullptr);
        s.tell("behind it, in-order list");
    }
    {
        Situation s;
        auto* list = s.list(0, 0);
        s.barrier(list, nullptr, s.go);
        s.copy(list, s.second, nullptr);
        s.tell("behind a barrier that waits");
    }
    {
        Situation s;
        auto* list = s.list(0, 0);
        s.copy(list, nullptr, s.go);
        s.barrier(list, s.second, nullptr);
        s.tell("a barrier behind it");
    }
    {
        Situation s;
        auto* first = s.list(0, 0);
        s.copy(first, nullptr, s.go);
        s.copy(s.list(0, 0), s.second, nullptr);
        s.tell("another list of the engine");
    }
    {
        Situation s;
        auto* first = s.list(0, 0);
        s.copy(first, nullptr, s.go);
        s.copy(s.list(1, 0), s.second, nullptr);
        s.tell("another engine", true);
    }
}
