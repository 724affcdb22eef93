// The device is lost while work is under way. What has ended by then keeps its result, the rest has none, and nothing
// waits for ever.
#include <thread>

#include "rows.hpp"

namespace {

enum class Told { by_event, by_status, by_queue, by_fence, by_fence_status, by_device, by_submission, by_nothing };

void expect_lost(ze_result_t code, const char* call) {
    if (code != ZE_RESULT_ERROR_DEVICE_LOST) wrong(std::string(call) + " does not notice that the device is lost");
}
#define EXPECT_LOST(function, ...) expect_lost(function(__VA_ARGS__), #function)

// A and B have ended, C waits for ever. A regular list runs for the second time.
struct InFlight {
    InFlight(World& in, Shape shape)
        : world(in), never(in, "never", false), a(in, "a", false), b(in, "b", false), c(in, "c", false),
          work(in, "L", shape) {
        if (!shape.immediate) {
            const ze_fence_desc_t desc = {ZE_STRUCTURE_TYPE_FENCE_DESC, nullptr, 0};
            CHECK(zeFenceCreate, work.queue(), &desc, &fence);
        }
        work.op("A", &a);
        work.op("B", &b);
        work.op("C", &c, {&never});
        work.op("D", nullptr, {&c});
        if (shape.immediate) {
            a.sync();
            b.sync();
            world.due({"A", "B"});
            return;
        }
        work.close();
        for (int run = 1; run <= 2; ++run) {
            if (run == 1) never.signal();
            work.execute(fence);
            if (run == 1) work.sync();
            a.sync();
            b.sync();
            world.due({"A", "B"}, run);
            if (run == 1) {
                world.due({"C", "D"});
                CHECK(zeFenceReset, fence);
                for (const Event* event : {&never, &a, &b, &c}) event->reset();
            }
        }
    }
    ~InFlight() {
        if (fence != nullptr) CHECK(zeFenceDestroy, fence);
    }

    ze_result_t wait_for_list() const {
        if (!work.shape().immediate) return zeCommandQueueSynchronize(work.queue(), forever);
        static const auto wait = NEWER(zeCommandListHostSynchronize);
        const ze_result_t code = wait == nullptr ? ZE_RESULT_ERROR_UNSUPPORTED_FEATURE : wait(work.handle(), forever);
        return code == ZE_RESULT_ERROR_UNSUPPORTED_FEATURE ? zeEventHostSynchronize(c.handle(), forever) : code;
    }

    ze_result_t ask(Told told) const {
        switch (told) {
            case Told::by_event: return zeEventHostSynchronize(c.handle(), forever);
            case Told::by_status: return zeEventQueryStatus(c.handle());
            case Told::by_fence: return fence == nullptr ? wait_for_list() : zeFenceHostSynchronize(fence, forever);
            case Told::by_fence_status: return zeFenceQueryStatus(fence);
            case Told::by_device: {
                static const auto wait = NEWER(zeDeviceSynchronize);
                const ze_result_t code =
                    wait == nullptr ? ZE_RESULT_ERROR_UNSUPPORTED_FEATURE : wait(world.device());
                return code == ZE_RESULT_ERROR_UNSUPPORTED_FEATURE ? wait_for_list() : code;
            }
            default: return wait_for_list();
        }
    }

    // Nothing can be submitted any more.
    void submit() {
        ze_command_list_handle_t handle = work.handle();
        if (work.shape().immediate) {
            EXPECT_LOST(zeCommandListAppendBarrier, handle, nullptr, 0, nullptr);
        } else {
            // Nobody submits a list again without having waited for it.
            Work next(world, "M", work.shape());
            next.barrier("E");
            next.close();
            ze_command_list_handle_t other = next.handle();
            EXPECT_LOST(zeCommandQueueExecuteCommandLists, work.queue(), 1, &other, nullptr);
            EXPECT_LOST(zeCommandQueueExecuteCommandLists, work.queue(), 1, &handle, nullptr);
            EXPECT_LOST(zeCommandListReset, handle);
        }
        world.mark("");
    }

    World& world;
    Event never, a, b, c;
    Work work;
    ze_fence_handle_t fence = nullptr;
};

template <Told told, bool is_silent>
void loss(World& world, Shape shape, int) {
    InFlight running(world, shape);
    world.lose(is_silent);
    if (told != Told::by_submission) expect_lost(running.ask(told), "the wait");
    running.submit();
}

// Another thread waits for it, and nobody asks again: lists are destroyed at once.
void l8(World& world, Shape shape, int) {
    InFlight running(world, shape);
    Work other(world, "M", shape.on(true));
    other.op("E");
    other.submit();
    other.sync();
    world.due({"E"});
    std::thread waits([&] { expect_lost(running.ask(Told::by_queue), "the wait"); });
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    world.lose(true);
    waits.join();
}

// The program ends without having noticed.
void l9(World& world, Shape shape, int) {
    static InFlight* running = nullptr;  // never destroyed
    running = new InFlight(world, shape);
    world.lose(true);
}

}  // namespace

const std::vector<Row> loss_rows = {
    {"L1", "device lost: a wait for an event", loss<Told::by_event, false>, all_lists, losing},
    {"L2", "device lost: the status of an event", loss<Told::by_status, false>, all_lists, losing},
    {"L3", "device lost: a wait for a queue or list", loss<Told::by_queue, false>, all_lists, losing},
    {"L4", "device lost: a wait for a fence", loss<Told::by_fence, true>, regular | both_orders | both_engines, losing},
    {"L5", "device lost: the status of a fence", loss<Told::by_fence_status, false>,
     regular | both_orders | both_engines, losing},
    {"L6", "device lost: a wait for the device", loss<Told::by_device, true>, all_lists, losing},
    {"L7", "device lost: nothing can be submitted", loss<Told::by_submission, true>, all_lists, losing},
    {"L8", "device lost while a thread waits", l8, all_lists,
     losing | threaded | interleaving},
    {"L9", "device lost, and nobody notices", l9, all_lists,
     losing | leaving | orphaning},
};
