// Several threads.
#include <barrier>
#include <thread>

#include "rows.hpp"

namespace {

std::string numbered(const char* name, int number) { return name + std::to_string(number); }

// Call `each(number)` in that many threads, and wait for them.
template <class Each>
void in_threads(int count, Each each) {
    std::vector<std::thread> threads;
    for (int number = 0; number < count; ++number) threads.emplace_back([&, number] { each(number); });
    for (auto& thread : threads) thread.join();
}

// Three threads execute three lists in turn, each on a queue of its own.
void r9(World& world, Shape shape, int) {
    const Event a(world, "a", false), b(world, "b", false);
    std::vector<std::unique_ptr<Work>> lists;
    for (int i = 0; i < 3; ++i) {
        lists.push_back(std::make_unique<Work>(world, numbered("L", i), shape));
        lists[static_cast<size_t>(i)]->op(numbered("A", i), &a);
        lists[static_cast<size_t>(i)]->op(numbered("B", i), &b);
        lists[static_cast<size_t>(i)]->close();
    }
    std::barrier all(3);
    in_threads(3, [&](int thread) {
        for (int round = 0; round < 12; ++round) {
            ze_command_list_handle_t list = lists[static_cast<size_t>((thread + round) % 3)]->handle();
            const Work& mine = *lists[static_cast<size_t>(thread)];
            CHECK(zeCommandQueueExecuteCommandLists, mine.queue(), 1, &list, nullptr);
            CHECK(zeCommandQueueSynchronize, mine.queue(), forever);
            all.arrive_and_wait();
        }
    });
}

// The same without taking turns: they execute lists that still run.
void s16(World& world, Shape shape, int) {
    std::vector<std::unique_ptr<Work>> lists;
    std::vector<ze_command_list_handle_t> handles;
    for (int i = 0; i < 3; ++i) {
        lists.push_back(std::make_unique<Work>(world, numbered("L", i), shape));
        lists.back()->op(numbered("A", i));
        lists.back()->op(numbered("B", i));
        lists.back()->close();
        handles.push_back(lists.back()->handle());
    }
    in_threads(3, [&](int thread) {
        const Work& mine = *lists[static_cast<size_t>(thread)];
        auto order = handles;
        for (int round = 0; round < 10; ++round) {
            std::swap(order[static_cast<size_t>(round % 3)], order[static_cast<size_t>(thread)]);
            CHECK(zeCommandQueueExecuteCommandLists, mine.queue(), 3, order.data(), nullptr);
        }
        CHECK(zeCommandQueueSynchronize, mine.queue(), forever);
    });
    for (auto& list : lists) list->sync();
}

// A list a thread.
void r20(World& world, Shape shape, int count) {
    world.prepare({"k0", "k1", "k2", "k3"});
    in_threads(4, [&](int thread) {
        const std::string name = numbered("k", thread);
        Work work(world, "L" + name, shape);
        for (int i = 0; i < count; ++i) {
            work.op(numbered((name + ":").c_str(), i), nullptr, {}, name);
            if (i % 50 == 49) {
                work.submit();
                work.next();
            }
        }
        work.submit();
        work.sync();
    });
}

// One thread appends, another makes and destroys contexts with lists in them.
void r21(World& world, Shape shape, int) {
    world.prepare({"k0", "k1"});
    in_threads(2, [&](int thread) {
        if (thread == 0) {
            Work work(world, "L", shape);
            for (int i = 0; i < 200; ++i) {
                work.op(numbered("k0:", i), nullptr, {}, "k0");
                if (i % 10 == 9) {
                    work.submit();
                    work.next();
                }
            }
            return;
        }
        for (int i = 0; i < 30; ++i) {
            ze_context_handle_t context = world.another_context();
            Work work(world, numbered("M", i), shape, context);
            work.op(numbered("k1:", i), nullptr, {}, "k1");
            work.submit();
            work.sync();
            work.destroy();
            CHECK(zeContextDestroy, context);
        }
    });
}

// One thread's operations wait for the other's, and each waits for its own.
void r22(World& world, Shape shape, int) {
    world.prepare({"k0", "k1"});
    constexpr int number = 40;
    std::vector<std::unique_ptr<Event>> theirs, mine;
    for (int i = 0; i < number; ++i) {
        theirs.push_back(std::make_unique<Event>(world, "a", false));
        mine.push_back(std::make_unique<Event>(world, "b", false));
    }
    in_threads(2, [&](int thread) {
        Work work(world, numbered("L", thread), shape);
        for (size_t i = 0; i < number; ++i) {
            const std::string mark = "k" + std::to_string(thread) + ":" + std::to_string(i);
            if (thread == 0) {
                work.op(mark, theirs[i].get(), {}, "k0");
                if (i % 8 == 7) theirs[i]->sync();
            } else {
                work.op(mark, mine[i].get(), {theirs[i].get()}, "k1");
                if (i % 5 == 4) mine[i]->sync();
            }
        }
        work.sync();
    });
}

// Events come and go in all threads, with waits by list, event and status.
void r23(World& world, Shape shape, int count) {
    world.prepare({"k0", "k1", "k2", "k3"});
    in_threads(4, [&](int thread) {
        const std::string name = numbered("k", thread);
        Work work(world, "L" + name, shape);
        Event event(world, "a", true);
        for (int i = 0; i < count / 4; ++i) {
            const std::string mark = numbered((name + ":").c_str(), i);
            work.op(mark, &event, {}, name);
            work.submit();
            if (i % 3 == 0) event.sync();
            if (i % 3 == 1) event.poll();
            work.next();
            event.tell_ticks(mark);
            event.renew();
        }
    });
}

// One list, from thread to thread; all the time another one waits for what there is.
void s17(World& world, Shape shape, int) {
    world.prepare({"k"});
    Work work(world, "L", shape), other(world, "M", {true, true, shape.compute});
    for (int round = 0; round < 10; ++round) {
        std::atomic<bool> over{false};
        std::thread waiter([&] {
            while (!over) other.sync();
        });
        std::thread appender([&] {
            for (int i = 0; i < 70; ++i) work.op("k" + std::to_string(round) + ":" + std::to_string(i), nullptr, {}, "k");
            work.submit();
        });
        appender.join();
        work.next();
        over = true;
        waiter.join();
    }
}

}  // namespace

const std::vector<Row> thread_rows = {
    {"R9", "three lists, queues and threads", r9, regular | both_orders | both_engines, threaded},
    {"R20", "a list a thread", r20, all_lists, threaded | long_running},
    {"R21", "contexts come and go", r21, all_lists, threaded},
    {"R22", "waits for another thread's operations", r22, immediate | both_orders | both_engines, threaded | interleaving},
    {"R23", "events come and go in all threads", r23, all_lists, threaded | long_running},
    {"S16", "three threads, lists that still run", s16, regular | both_orders | both_engines, threaded | overlapping},
    {"S17", "a list that changes threads", s17, all_lists, threaded},
};
