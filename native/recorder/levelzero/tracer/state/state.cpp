#include "tracer/state/internal.hpp"
#include "tracer/tracer.hpp"

namespace lanescope::levelzero::tracer {

std::atomic<u64> list_generation = 1;
std::atomic<u64> live_lists = 0;
std::atomic<u32> captures = 0;

constinit State* the_state = nullptr;

void StateLock::lock() {
    state().mutex.lock();
    is_held_ = local.holds = true;
}

void StateLock::unlock() {
    is_held_ = local.holds = false;
    state().mutex.unlock();
}

void StateLock::wait() {
    is_held_ = local.holds = false;
    state().changed.wait(state().mutex);
    is_held_ = local.holds = true;
}

void start(const Options& options) {
    the_state = new State;
    state().options = options;
}

u64 lock_waits() { return state().mutex.waits(); }

void before_fork() { state().mutex.lock(); }
void after_fork_in_parent() { state().mutex.unlock(); }

// Nothing of the device is there in a child: what was known is left alone.
void after_fork_in_child() {
    State& all = state();
    all.lists.forget();
    all.contexts.forget();
    all.devices.forget();
    all.queues.forget();
    all.events.forget();
    all.ticked_pools.forget();
    all.ticked.forget();
    all.free_ticked = nullptr;
    all.active = nullptr;
    all.fences = nullptr;
    all.free_events = nullptr;
    all.captured = nullptr;
    for (u64& count : all.untimed) count = 0;
    live_lists.store(0);
    captures.store(0);
    all.first_device.store(nullptr);
    list_generation.fetch_add(1);
    all.mutex.unlock();
}

}  // namespace lanescope::levelzero::tracer
