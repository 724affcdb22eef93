#include "timestamps.hpp"

#include <unistd.h>

#include <chrono>
#include <cstring>

#include "driver_quirks.hpp"

namespace fake_ze {

ze_kernel_timestamp_result_t result_of(uint64_t start, uint64_t end) {
    const uint32_t bits = quirks().bits;
    ze_kernel_timestamp_result_t result;
    result.global = {low_bits(start, bits), low_bits(end, bits)};
    result.context = {low_bits(start + context_ahead, bits), low_bits(end + context_ahead, bits)};
    return result;
}

ze_kernel_timestamp_result_t read_ticks(const Event& event) {
    // Whether it is signalled is not asked: the ticks of the last signaller may outlive a reset.
    if (event.device.load() == nullptr) return {{poison, poison}, {poison, poison}};
    return result_of(event.start.load(std::memory_order_acquire), event.end.load(std::memory_order_acquire));
}

void reset_ticks(Event& event) {
    if (quirks().reset_clears) event.device.store(nullptr);
}

void store_words(void* to, const void* from, size_t size, uint64_t pause_us) {
    const bool is_aligned = (reinterpret_cast<uintptr_t>(to) | size) % sizeof(uint64_t) == 0;
    if (!is_aligned) {
        std::memcpy(to, from, size);
        return;
    }
    for (size_t i = 0; i < size; i += sizeof(uint64_t)) {
        uint64_t word;
        std::memcpy(&word, static_cast<const char*>(from) + i, sizeof word);
        std::atomic_ref(*reinterpret_cast<uint64_t*>(static_cast<char*>(to) + i)).store(word, std::memory_order_release);
        if (pause_us != 0) std::this_thread::sleep_for(std::chrono::microseconds(pause_us));
    }
}

void write_op(const Command& command, const Instance& instance, uint64_t start, uint64_t end, uint64_t start_ns,
              uint64_t end_ns) {
    std::string line = "{\"kind\": \"op\"";
    const auto text = [&](const char* name, const std::string& value) {
        line += std::string(", \"") + name + "\": " + quoted(value);
    };
    const auto number = [&](const char* name, uint64_t value) {
        line += std::string(", \"") + name + "\": " + std::to_string(value);
    };
    const auto claim = [&](const char* name, bool value) {
        line += std::string(", \"") + name + "\": " + (value ? "true" : "false");
    };
    const auto serials = [&](const char* name, const std::vector<Ref<Event>>& events) {
        line += std::string(", \"") + name + "\": [";
        for (const auto& event : events) line += (&event == events.data() ? "" : ", ") + std::to_string(event.serial);
        line += "]";
    };
    const Lane& lane = *instance.lane;
    number("pid", static_cast<uint64_t>(getpid()));
    text("api", command.api);
    text("mark", command.mark);
    number("list", lane.serial);
    number("life", command.life);
    number("index", command.index);
    number("run", instance.run);
    claim("immediate", lane.immediate);
    claim("in_order", lane.in_order);
    number("device", lane.device->number);
    number("subdevice", lane.device->root == nullptr ? 0 : lane.device->subdevice + 1);
    text("engine", instance.stream->engine % engines_per_device == copy_ordinal ? "copy" : "compute");
    number("queue", instance.stream->queue);
    text("kernel", command.kernel);
    line += ", \"groups\": [" + std::to_string(command.groups.groupCountX) + ", " +
            std::to_string(command.groups.groupCountY) + ", " + std::to_string(command.groups.groupCountZ) + "]";
    number("bytes", command.bytes);
    number("dst", reinterpret_cast<uintptr_t>(command.to));
    number("src", reinterpret_cast<uintptr_t>(command.from));
    number("signal", command.signal.serial);
    serials("waits", command.waits);
    serials("reads", command.uses);
    const ze_kernel_timestamp_result_t ticks = result_of(start, end);
    number("start", ticks.global.kernelStart);
    number("end", ticks.global.kernelEnd);
    number("context_start", ticks.context.kernelStart);
    number("context_end", ticks.context.kernelEnd);
    number("host_start_ns", start_ns);
    number("host_end_ns", end_ns);
    write_truth(line + "}");
}

}  // namespace fake_ze
