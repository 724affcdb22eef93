// Devices, and readings of their clocks together with the host's.
#include <new>

#include "stream/events.hpp"
#include "tracer/state/internal.hpp"
#include "tracer/tracer.hpp"

namespace lanescope::levelzero::tracer {

namespace {

constexpr u64 second_ns = 1'000'000'000, spacing_ns = second_ns / 10;

void ask(Device& device) {
    if (driver().zeDeviceGetCommandQueueGroupProperties != nullptr) {
        QueueGroup groups[32] = {};
        for (QueueGroup& group : groups) group.stype = stype_queue_group;
        u32 count = 32;
        if (driver().zeDeviceGetCommandQueueGroupProperties(device.handle, &count, groups) == success) {
            device.groups = std::min<u32>(count, 32);
            for (u32 i = 0; i < device.groups; ++i) device.group_flags[i] = groups[i].flags;
        }
    }
    if (driver().zeDeviceGetProperties == nullptr) return;
    DeviceProperties found{};
    found.stype = stype_device_properties_1_2;
    u64 num = 0, den = 1;
    if (driver().zeDeviceGetProperties(device.handle, &found) == success) {
        num = found.timer_resolution;
    } else {
        found = DeviceProperties{};
        found.stype = stype_device_properties;
        if (driver().zeDeviceGetProperties(device.handle, &found) != success) return;
        num = second_ns;
        den = found.timer_resolution;
    }
    if (found.kernel_timestamp_bits >= 1 && found.kernel_timestamp_bits <= 64) device.kernel_bits = found.kernel_timestamp_bits;
    if (num == 0 || den == 0) return;
    device.ticks_num = num;
    device.ticks_den = den;
    u32 bits = device.kernel_bits;
    if (found.timestamp_bits >= 1 && found.timestamp_bits < bits) bits = found.timestamp_bits;
    const double quarter = static_cast<double>(u64{1} << (bits - 1)) / 2 * 1e9 * static_cast<double>(den) / static_cast<double>(num);
    if (quarter < 1e18) device.quarter_ns = static_cast<u64>(quarter);
}

}  // namespace

Device* describe(Handle handle) {
    State& all = state();
    {
        StateLock lock;
        if (Device* found = all.devices.find(handle)) return found;
    }
    auto* made = new (std::nothrow) Device;
    if (made == nullptr) return nullptr;
    made->handle = handle;
    ask(*made);
    {
        StateLock lock;
        Device* other = all.devices.find(handle);
        if (other != nullptr || !all.devices.add(handle, made)) {
            lock.unlock();
            delete made;
            return other;
        }
        made->next = all.first_device.load();
        all.first_device.store(made, std::memory_order_release);
    }
    if (all.options.timing) read_clock(*made, host_ns());
    return made;
}

// Between two readings of the host's clock; of three tries the one that took the shortest.
void read_clock(Device& device, u64 now) {
    u64 due = device.next_pair.load(std::memory_order_relaxed);
    if (now < due || driver().zeDeviceGetGlobalTimestamps == nullptr) return;
    const u64 next = now + std::min(spacing_ns, device.quarter_ns);
    if (!device.next_pair.compare_exchange_strong(due, next)) return;  // another thread reads it
    u64 best = ~u64{0}, host = 0, ticks = 0;
    for (int i = 0; i < 3; ++i) {
        u64 unused = 0, read = 0;
        const u64 before = host_ns();
        if (driver().zeDeviceGetGlobalTimestamps(device.handle, &unused, &read) != success) return;
        const u64 after = host_ns();
        if (after - before >= best) continue;
        best = after - before;
        host = before + best / 2;
        ticks = read;
    }
    const u64 error = (best + 1) / 2;
    emit<Record::clock_pair>(host_ns(), number(device.handle), host, ticks,
                             static_cast<u32>(std::min<u64>(error, ~u32{0})));
}

u64 submissions() { return state().submissions.load(std::memory_order_acquire); }

namespace {

// Notes which runs are known to have ended.
void note_ended(State& all, Waited waited, Handle handle, u64 before) {
    for (List* list = all.active; list != nullptr; list = list->next) {
        if (list->has_ended || list->submitted > before) continue;
        const Handle its = waited == Waited::fence    ? list->fence
                           : waited == Waited::device ? (list->device == nullptr ? nullptr : list->device->handle)
                                                      : list->queue;
        if (its == handle) list->has_ended = true;
    }
}

}  // namespace

void synced(Call& call, Waited waited, Handle handle, u64 before) {
    State& all = state();
    if (!all.options.timing || local.holds) return;
    if (live_lists.load(std::memory_order_relaxed) != 0) {
        StateLock lock;
        if (all.reads_at_end && waited != Waited::event) note_ended(all, waited, handle, before);
        if (!all.has_ended) collect_results_and_write(all, lock, waited != Waited::event, nullptr, call.now());
    }
    Device* device = all.first_device.load(std::memory_order_acquire);
    for (; device != nullptr; device = device->next) {
        if (call.now() >= device->next_pair.load(std::memory_order_relaxed)) read_clock(*device, call.now());
    }
}

}  // namespace lanescope::levelzero::tracer
