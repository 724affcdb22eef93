#include "telemetry/sampler.hpp"

#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <cstdlib>
#include <ctime>
#include <vector>

#include "stream/events.hpp"
#include "telemetry/sysman.hpp"

namespace lanescope::levelzero::telemetry {

namespace {

struct Sampler {
    u64 interval = 0;
    std::vector<Handle> devices;  // of the program's driver
    Text reason = nullptr;        // why nothing can be sampled
    pthread_mutex_t starting;     // held while it starts
    std::atomic<const void*> starter = nullptr;  // by whom
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t wake;
    bool is_ending = false;
    std::atomic<bool> has_started = false, is_running = false;
};

// Lives as long as the process.
Sampler& sampler() {
    static Sampler* made = [] {
        auto* created = new Sampler;
        pthread_mutex_init(&created->starting, nullptr);
        pthread_mutex_init(&created->mutex, nullptr);
        pthread_condattr_t monotonic;
        pthread_condattr_init(&monotonic);
        pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
        pthread_cond_init(&created->wake, &monotonic);
        return created;
    }();
    return *made;
}

// Waits until a time of the host's clock; false: the process ends.
bool wait_until(Sampler& state, u64 time) {
    timespec end;
    end.tv_sec = static_cast<time_t>(time / 1'000'000'000);
    end.tv_nsec = static_cast<long>(time % 1'000'000'000);
    pthread_mutex_lock(&state.mutex);
    int result = 0;
    while (!state.is_ending && result == 0) result = pthread_cond_timedwait(&state.wake, &state.mutex, &end);
    const bool goes_on = !state.is_ending;
    pthread_mutex_unlock(&state.mutex);
    return goes_on;
}

void* run(void* of) {
    auto& state = *static_cast<Sampler*>(of);
    std::vector<Found> found;
    std::vector<Sensor> sensors;
    const Text reason = state.reason != nullptr ? state.reason : find(state.devices, found, sensors);
    emit<Record::sampling>(host_ns(), state.interval, reason == nullptr ? "" : reason);
    for (const Found& one : found) {
        emit<Record::sensor_kind>(host_ns(), one.device, one.uuid, one.name, kind_names[static_cast<usize>(one.kind)],
                                  one.count, one.code);
    }
    for (usize i = 0; i < sensors.size(); ++i) {
        const Sensor& one = sensors[i];
        emit<Record::sensor>(host_ns(), static_cast<u32>(i), one.device, kind_names[static_cast<usize>(one.kind)],
                             one.part, one.subdevice);
    }
    u64 samples = 0, missed = 0, failed = 0, busy = 0;
    for (u64 next = host_ns(); !sensors.empty();) {
        const u64 begin = host_ns();
        for (usize i = 0; i < sensors.size(); ++i) {
            Reading reading{};
            const Result result = read(sensors[i], reading);
            if (result != success) {
                ++failed;
            } else if (recording.load(std::memory_order_relaxed)) {
                ++samples;
                emit<Record::sample>(host_ns(), static_cast<u32>(i), reading.value, reading.at);
            }
        }
        const u64 end = host_ns();
        busy += end - begin;
        next += state.interval;
        // What is over is not made up for.
        if (next < end) {
            const u64 over = (end - next) / state.interval + 1;
            missed += over;
            next += over * state.interval;
        }
        if (!wait_until(state, next)) break;
    }
    emit<Record::sampling_end>(host_ns(), samples, missed, failed, busy);
    return nullptr;
}

// Before the driver's own destructors: it was loaded earlier.
void end() {
    Sampler& state = sampler();
    if (!state.is_running.exchange(false)) return;
    pthread_mutex_lock(&state.mutex);
    state.is_ending = true;
    pthread_cond_signal(&state.wake);
    pthread_mutex_unlock(&state.mutex);
    pthread_join(state.thread, nullptr);
}

void start(Sampler& state, Handle driver, DeviceGet devices_of) {
    // The program's signals are for its own threads: neither for ours nor for any that a driver starts for the sensors.
    sigset_t all_signals, before;
    sigfillset(&all_signals);
    pthread_sigmask(SIG_SETMASK, &all_signals, &before);
    // Loaders fill their tables of functions anew in zesInit. Calls that other threads make meanwhile may go past the
    // recorder: the program has no devices yet, and so no operations, and its other threads wait below.
    state.reason = initialize();
    u32 count = 0;
    if (devices_of(driver, &count, nullptr) == success) {
        state.devices.resize(count);
        if (devices_of(driver, &count, state.devices.data()) != success) count = 0;
        state.devices.resize(count);
    }
    const bool is_made = pthread_create(&state.thread, nullptr, run, &state) == 0;
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    static std::atomic<bool> is_registered = false;
    if (!is_made) return;
    state.is_running.store(true);
    if (!is_registered.exchange(true)) std::atexit(end);
}

}  // namespace

void configure(u64 interval_ns) { sampler().interval = interval_ns; }

void on_devices(Handle driver, DeviceGet devices_of) {
    Sampler& state = sampler();
    if (state.interval == 0 || devices_of == nullptr || state.has_started.load(std::memory_order_acquire)) return;
    if (state.starter.load() == &local) return;  // a driver that asks for its own devices
    pthread_mutex_lock(&state.starting);
    if (!state.has_started.load(std::memory_order_relaxed)) {
        state.starter.store(&local);
        start(state, driver, devices_of);
        state.starter.store(nullptr);
        state.has_started.store(true, std::memory_order_release);
    }
    pthread_mutex_unlock(&state.starting);
}

void after_fork_in_child() {
    Sampler& state = sampler();
    pthread_mutex_init(&state.starting, nullptr);
    state.starter.store(nullptr);
    pthread_mutex_init(&state.mutex, nullptr);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&state.wake, &monotonic);
    state.is_ending = false;
    state.is_running.store(false);
    state.has_started.store(false);
}

}  // namespace lanescope::levelzero::telemetry
