#include "scheduler.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "driver_quirks.hpp"
#include "timestamps.hpp"

namespace fake_ze {
namespace {

// Whether the API lets `later` start although `earlier`, before it in the same stream, has not ended.
bool may_overtake(const Instance& later, const Instance& earlier) {
    if (later.lane->in_order && earlier.lane == later.lane) return false;
    if (earlier.command->role != Role::plain) return false;  // a barrier holds all that follows, with or without waits
    return !(later.command->role == Role::barrier && later.command->waits.empty());
}

void count_use(const Ref<Event>& event, int64_t amount) {
    if (event.is_alive()) event.object->queued.fetch_add(amount);
}

void release(const Command& command, const std::vector<Ref<Event>>& events) {
    for (const auto& event : events) {
        if (!event.is_alive()) mistake(std::string("event destroyed under a queued ") + command.api);
        count_use(event, -1);
    }
}

}  // namespace

Scheduler& scheduler() {
    static Scheduler& once = *new Scheduler;
    return once;
}

void Scheduler::submit(const std::shared_ptr<Stream>& stream, const std::vector<Submission>& submissions,
                       Fence* fence) {
    const bool is_inline = quirks().inline_execution;
    Lock lock(mutex_);
    if (sequence_ == 0) random_.seed(quirks().seed);
    std::shared_ptr<Batch> batch;
    if (fence != nullptr) {
        batch = std::make_shared<Batch>(static_cast<int64_t>(submissions.size()), Ref<Fence>(fence));
        fence->queued.fetch_add(1);
    }
    if (submissions.empty()) return;
    if (stream->instances.empty()) busy_[stream->engine].push_back(stream);
    for (const Submission& submission : submissions) {
        ++submission.lane->pending;
        count_use(submission.command->signal, 1);
        if (submission.command->signal.is_alive() && submission.command->signal.object->is_counter) {
            submission.command->signal.object->signalled.store(0, std::memory_order_release);
        }
        for (const auto& event : submission.command->waits) count_use(event, 1);
        for (const auto& event : submission.command->uses) {
            count_use(event, 1);
            if (submission.command->is_query && event.is_alive()) event.object->queried.fetch_add(1);
        }
        stream->instances.push_back(new Instance{submission.command, submission.lane, stream, batch, ++sequence_,
                                                 submission.run, 0, false});
    }
    if (is_inline) {
        uint64_t next_ns = UINT64_MAX;
        while (Instance* instance = pick(0, UINT32_MAX, next_ns)) run(*instance, lock);
    } else {
        start_workers(stream->engine);
        work_.notify_all();
    }
}

bool Scheduler::waits_are_over(Instance& instance, uint64_t& next_ns) {
    for (const auto& event : instance.command->waits) {
        if (event.object->signalled.load(std::memory_order_acquire) == 0) return false;
    }
    if (quirks().late_us == 0 || !instance.command->is_query) return true;
    const uint64_t now = host_ns();
    if (instance.ready_ns == 0) instance.ready_ns = now + quirks().late_us * 1000;
    if (now >= instance.ready_ns) return true;
    next_ns = std::min(next_ns, instance.ready_ns);
    return false;
}

// The first instance of the stream that may start. With a seed, all of them go into `choice` and null is returned.
Instance* Scheduler::pick_in(Stream& stream, bool only_first, std::vector<Instance*>& choice, uint64_t& next_ns) {
    auto& all = stream.instances;
    for (size_t i = 0; i < all.size(); ++i) {
        if (all[i]->started) continue;
        const bool is_free = std::all_of(all.begin(), all.begin() + static_cast<ptrdiff_t>(i),
                                         [&](const Instance* earlier) { return may_overtake(*all[i], *earlier); });
        if (is_free && waits_are_over(*all[i], next_ns)) {
            if (quirks().seed == 0) return all[i];
            choice.push_back(all[i]);
        }
        if (only_first || all[i]->command->role != Role::plain) break;  // nothing overtakes a barrier
    }
    return nullptr;
}

Instance* Scheduler::pick(uint32_t first_engine, uint32_t last_engine, uint64_t& next_ns) {
    if (lost_ || stopping_) return nullptr;
    const Order order = quirks().order;
    Instance* best = nullptr;
    std::vector<Instance*> choice;
    for (auto& [engine, streams] : busy_) {
        if (engine < first_engine || engine > last_engine) continue;
        uint64_t oldest = UINT64_MAX;
        if (order == Order::engine) {
            for (const auto& stream : streams) {
                for (const Instance* instance : stream->instances) {
                    if (instance->started) continue;
                    oldest = std::min(oldest, instance->sequence);
                    break;
                }
            }
        }
        const size_t before = choice.size();
        for (const auto& stream : streams) {
            Instance* found = pick_in(*stream, order != Order::free, choice, next_ns);
            if (found == nullptr || (order == Order::engine && found->sequence != oldest)) continue;
            if (best == nullptr || found->sequence < best->sequence) best = found;
        }
        if (order == Order::engine) {
            const auto is_younger = [&](const Instance* instance) { return instance->sequence != oldest; };
            choice.erase(std::remove_if(choice.begin() + static_cast<ptrdiff_t>(before), choice.end(), is_younger),
                         choice.end());
        }
    }
    if (choice.empty()) return best;
    return choice[random_() % choice.size()];
}

void Scheduler::run(Instance& instance, Lock& lock) {
    instance.started = true;
    const Command& command = *instance.command;
    // What it waited for is the device's no more, and what it reads only until it has been read: who sees a query's
    // result may reset or destroy the event.
    release(command, command.waits);
    Device& device = *instance.lane->device;
    Event* signal = command.signal.is_alive() ? command.signal.object : nullptr;
    lock.unlock();

    const uint64_t start_ns = host_ns();
    const uint64_t start = device.clock->begin();
    if (signal != nullptr) {
        // As on a device, the start is visible long before the end: a reader in between sees a mixture.
        signal->device.store(&device);
        signal->start_ns.store(start_ns);
        signal->start.store(start, std::memory_order_release);
    }
    if (signal != nullptr && quirks().torn_us != 0) {
        signal->end.store(start, std::memory_order_release);
        std::this_thread::sleep_for(std::chrono::microseconds(quirks().torn_us));
    }
    if (command.effect) command.effect(device);
    const uint64_t end = device.clock->end(start, command.cost);
    const uint64_t end_ns = host_ns();
    // What runs when the device is lost never ends.
    if (is_lost()) {
        lock.lock();
        return;
    }
    if (truth_wanted() && *command.api != '\0') write_op(command, instance, start, end, start_ns, end_ns);

    lock.lock();
    if (!lost_) finish(instance, end, end_ns);
}

void Scheduler::finish(Instance& instance, uint64_t end, uint64_t end_ns) {
    const Command& command = *instance.command;
    if (!command.is_query) release(command, command.uses);
    count_use(command.signal, -1);
    if (command.signal.object != nullptr) {
        if (command.signal.is_alive()) {
            Event& event = *command.signal.object;
            event.end_ns.store(end_ns);
            event.end.store(end);
            event.signalled.store(1, std::memory_order_release);
        } else {
            mistake(std::string("event destroyed under a queued ") + command.api);
        }
    }
    --instance.lane->pending;
    auto& all = instance.stream->instances;
    all.erase(std::find(all.begin(), all.end(), &instance));
    if (all.empty()) {
        auto& streams = busy_[instance.stream->engine];
        streams.erase(std::find(streams.begin(), streams.end(), instance.stream));
    }
    if (instance.batch != nullptr && --instance.batch->left == 0 && instance.batch->fence.is_alive()) {
        instance.batch->fence.object->queued.fetch_sub(1);
        instance.batch->fence.object->signalled.store(1, std::memory_order_release);
    }
    delete &instance;
    if (++ended_ >= quirks().lost_after) lost_ = true;
    work_.notify_all();
    done_.notify_all();
}

void Scheduler::start_workers(uint32_t engine) {
    auto& threads = workers_[engine];
    while (threads.size() < quirks().workers) threads.emplace_back([this, engine] { work(engine); });
}

void Scheduler::work(uint32_t engine) {
    Lock lock(mutex_);
    while (!stopping_) {
        uint64_t next_ns = UINT64_MAX;
        if (Instance* instance = pick(engine, engine, next_ns)) {
            run(*instance, lock);
        } else if (next_ns == UINT64_MAX) {
            work_.wait(lock);
        } else {
            const uint64_t now = host_ns();
            if (next_ns > now) work_.wait_for(lock, std::chrono::nanoseconds(next_ns - now));
        }
    }
}

ze_result_t Scheduler::wait(uint64_t timeout, const std::function<bool()>& is_done) {
    const uint64_t begin = host_ns();
    Lock lock(mutex_);
    for (;;) {
        uint64_t next_ns = UINT64_MAX;
        if (lost_) return ZE_RESULT_ERROR_DEVICE_LOST;
        if (is_done()) return ZE_RESULT_SUCCESS;
        if (quirks().inline_execution) {
            if (Instance* instance = pick(0, UINT32_MAX, next_ns)) {
                run(*instance, lock);
                continue;
            }
        }
        const uint64_t now = host_ns();
        const uint64_t deadline = timeout > UINT64_MAX - begin ? UINT64_MAX : begin + timeout;
        if (now >= deadline) return ZE_RESULT_NOT_READY;
        const uint64_t until = std::min(deadline, next_ns);
        if (until == UINT64_MAX) {
            done_.wait(lock);
        } else if (until > now) {
            done_.wait_for(lock, std::chrono::nanoseconds(std::min<uint64_t>(until - now, 1'000'000'000)));
        }
    }
}

ze_result_t Scheduler::wait_for(const Stream& stream, uint64_t timeout) {
    uint64_t last = 0;
    {
        const Lock lock(mutex_);
        if (!stream.instances.empty()) last = stream.instances.back()->sequence;
    }
    return wait(timeout, [&] { return stream.instances.empty() || stream.instances.front()->sequence > last; });
}

ze_result_t Scheduler::wait_for_device(uint32_t device, uint64_t timeout) {
    uint64_t last = 0;
    {
        const Lock lock(mutex_);
        last = sequence_;
    }
    return wait(timeout, [&] {
        for (uint32_t engine = device * engines_per_device; engine < (device + 1) * engines_per_device; ++engine) {
            for (const auto& stream : busy_[engine]) {
                if (stream->instances.front()->sequence <= last) return false;
            }
        }
        return true;
    });
}

void Scheduler::lose(bool is_silent) {
    const Lock lock(mutex_);
    is_silent_ = is_silent;
    lost_ = true;
    work_.notify_all();
    done_.notify_all();
}

void Scheduler::poll() {
    if (quirks().inline_execution) wait(0, [] { return false; });
}

void Scheduler::changed() {
    const Lock lock(mutex_);
    work_.notify_all();
    done_.notify_all();
}

int64_t Scheduler::pending(const Lane& lane) {
    const Lock lock(mutex_);
    return lane.pending;
}

void Scheduler::stop() {
    leaving = true;
    std::vector<std::thread> threads;
    {
        const Lock lock(mutex_);
        stopping_ = true;
        for (auto& [engine, of_engine] : workers_) {
            for (auto& thread : of_engine) threads.push_back(std::move(thread));
        }
        workers_.clear();
        work_.notify_all();
    }
    for (auto& thread : threads) thread.join();
}

}  // namespace fake_ze
