// Several devices, and parts of devices: each has its own engines, events go across.
#include <thread>

#include "rows.hpp"

namespace {

std::string numbered(const char* name, size_t number) { return name + std::to_string(number); }

// Each waits for the one before it.
void d1(World& world, Shape shape, int) {
    const auto devices = world.devices();
    std::vector<std::unique_ptr<Event>> events;
    std::vector<std::unique_ptr<Work>> works;
    for (size_t i = 0; i < devices.size(); ++i) {
        events.push_back(std::make_unique<Event>(world, numbered("e", i), i % 2 == 0));
        works.push_back(std::make_unique<Work>(world, numbered("L", i), shape, nullptr, 0, nullptr, devices[i]));
    }
    for (size_t i = 0; i < devices.size(); ++i) {
        works[i]->op(numbered("A", i), events[i].get(),
                     i == 0 ? std::vector<const Event*>{} : std::vector<const Event*>{events[i - 1].get()});
        works[i]->op(numbered("B", i));
        if (!shape.immediate) works[i]->close();
    }
    for (int run = 1; run <= (shape.immediate ? 1 : 3); ++run) {
        for (auto& work : works) {
            if (!shape.immediate) work->execute();
        }
        events.back()->sync();
        for (size_t i = 0; i < devices.size(); ++i) {
            works[i]->sync();
            if (events[i]->has_ticks()) events[i]->tell_ticks(numbered("A", i), run);
            world.due({numbered("A", i), numbered("B", i)}, run);
        }
        // Those that have timestamps may stay signalled, which lets the next one begin early.
        for (auto& event : events) event->reset();
    }
}

// A thread for each.
void d2(World& world, Shape shape, int) {
    const auto devices = world.devices();
    std::vector<std::unique_ptr<Work>> works;
    for (size_t i = 0; i < devices.size(); ++i) {
        for (size_t j = 0; j < 8; ++j) world.kernel(numbered("A", i * 8 + j));
        works.push_back(std::make_unique<Work>(world, numbered("L", i), shape, nullptr, 0, nullptr, devices[i]));
    }
    std::vector<std::thread> threads;
    for (size_t i = 0; i < devices.size(); ++i) {
        threads.emplace_back([&, i] {
            const Event own(world, numbered("e", i), true);
            for (size_t j = 0; j < 8; ++j) works[i]->op(numbered("A", i * 8 + j), j == 7 ? &own : nullptr);
            if (!shape.immediate) works[i]->submit();
            works[i]->sync();
            own.sync();
            own.tell_ticks(numbered("A", i * 8 + 7));
            works[i]->next();
        });
    }
    for (auto& thread : threads) thread.join();
}

}  // namespace

const std::vector<Row> device_rows = {
    {"D1", "devices and their parts, one after the other", d1, all_lists, several},
    {"D2", "devices and their parts, a thread each", d2, all_lists, several | threaded},
};
