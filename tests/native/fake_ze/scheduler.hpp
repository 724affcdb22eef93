// Runs submitted commands in an order that the API allows: a worker thread or more an engine, or inline.
#pragma once

#include <condition_variable>
#include <map>
#include <random>
#include <thread>

#include "model.hpp"

namespace fake_ze {

struct Instance {
    std::shared_ptr<const Command> command;
    std::shared_ptr<Lane> lane;
    std::shared_ptr<Stream> stream;
    std::shared_ptr<Batch> batch;
    uint64_t sequence = 0, run = 1;
    uint64_t ready_ns = 0;  // not before this host time; 0: its waits have not been seen signalled yet
    bool started = false;
};

struct Submission {
    std::shared_ptr<const Command> command;
    std::shared_ptr<Lane> lane;
    uint64_t run = 1;
};

class Scheduler {
public:
    // Submit commands to a stream, in one step. `fence` may be null; a fence needs a command.
    void submit(const std::shared_ptr<Stream>& stream, const std::vector<Submission>& submissions, Fence* fence);

    // Wait until `is_done()` (called under the lock), at most `timeout` ns; 0 only looks, UINT64_MAX waits for ever.
    // ZE_RESULT_SUCCESS, ZE_RESULT_NOT_READY or ZE_RESULT_ERROR_DEVICE_LOST.
    ze_result_t wait(uint64_t timeout, const std::function<bool()>& is_done);

    // Wait until what is in the stream now has ended.
    ze_result_t wait_for(const Stream& stream, uint64_t timeout);

    // The same for all streams of a device.
    ze_result_t wait_for_device(uint32_t device, uint64_t timeout);

    // Inline execution: run what may run, as a device would have by now.
    void poll();

    // Tell sleepers that an event changed without a command.
    void changed();

    // Commands of a lane that have not ended.
    int64_t pending(const Lane& lane);

    bool is_lost() const { return lost_.load(std::memory_order_relaxed); }

    // The device is lost, with all that it has not ended. `is_silent`: questions for a status do not notice.
    void lose(bool is_silent);

    // What a question for a status says of the loss: nothing, or ZE_RESULT_ERROR_DEVICE_LOST.
    bool status_is_lost() const { return is_lost() && !is_silent_.load(std::memory_order_relaxed); }

    // End the workers. Commands that have not started never will.
    void stop();

private:
    using Lock = std::unique_lock<std::mutex>;

    void work(uint32_t engine);
    void start_workers(uint32_t engine);
    Instance* pick(uint32_t first_engine, uint32_t last_engine, uint64_t& next_ns);
    Instance* pick_in(Stream& stream, bool only_first, std::vector<Instance*>& choice, uint64_t& next_ns);
    static bool waits_are_over(Instance& instance, uint64_t& next_ns);
    void run(Instance& instance, Lock& lock);
    void finish(Instance& instance, uint64_t end, uint64_t end_ns);

    std::mutex mutex_;
    std::condition_variable work_, done_;
    std::map<uint32_t, std::vector<std::shared_ptr<Stream>>> busy_;  // engine -> streams with instances
    std::map<uint32_t, std::vector<std::thread>> workers_;
    std::mt19937_64 random_{0};
    uint64_t sequence_ = 0, ended_ = 0;
    bool stopping_ = false;
    std::atomic<bool> lost_{false}, is_silent_{false};
};

Scheduler& scheduler();

}  // namespace fake_ze
