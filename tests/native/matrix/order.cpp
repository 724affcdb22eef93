// Programs that hang, or whose events fire early, if the recorder adds an order that was not there.
#include "rows.hpp"

#include <thread>

namespace {

// A waits for the host; B, behind it in an unordered list, does not.
void n1(World& world, Shape shape, int) {
    const Event a(world, "a", false), b(world, "b", false), g(world, "g", false);
    Work work(world, "L", shape);
    work.op("A", &a, {&g});
    work.op("B", &b);
    b.sync();
    world.done({"B"});
    world.not_done({"A"});
    world.due({"B"});
    g.signal();
    work.sync();
    world.done({"A"});
}

// A copy waits for a kernel that is appended after it.
void n2(World& world, Shape shape, int) {
    const Event a(world, "a", false), b(world, "b", false);
    Work copies(world, "L", shape.on(false)), kernels(world, "M", shape.on(true));
    copies.op("A", &a, {&b});
    kernels.op("K", &b);
    a.sync();
    world.done({"K", "A"});
    world.due({"K", "A"});
    kernels.sync();
    copies.sync();
}

// A kernel waits for the host, a copy does not.
void n3(World& world, Shape shape, int) {
    const Event a(world, "a", false), b(world, "b", false), g(world, "g", false);
    Work kernels(world, "M", shape.on(true)), copies(world, "L", shape.on(false));
    kernels.op("K", &b, {&g});
    copies.op("A", &a);
    a.sync();
    world.done({"A"});
    world.not_done({"K"});
    world.due({"A"});
    g.signal();
    b.sync();
    world.done({"K"});
    kernels.sync();
    copies.sync();
}

// L, M which waits for the host, L again, on one queue.
void n4(World& world, Shape shape, int) {
    const Event a(world, "a", false), b(world, "b", false), c(world, "c", false), g(world, "g", false);
    Work first(world, "L", shape), second(world, "M", shape);
    second.use_queue(first);
    first.op("A", &a);
    first.op("B", &b);
    first.close();
    second.op("C", &c, {&g});
    second.close();
    first.execute();
    second.execute();
    first.execute();
    world.not_done({"C"});
    g.signal();
    first.sync();
    world.done({"A", "B", "C"});
}

// The recorder's event for A comes back for B.
void n5(World& world, Shape shape, int) {
    const Event a(world, "a", false), b(world, "b", false), g(world, "g", false);
    Work work(world, "L", shape);
    for (int round = 0; round < 5; ++round) {
        const std::string number = std::to_string(round);
        work.op("A" + number, &a);
        a.sync();
        a.reset();
        work.op("B" + number, &b, {&g});
        if (b.is_signalled()) wrong("b fired before B");
        g.signal();
        b.sync();
        world.done({("B" + number).c_str()});
        b.reset();
        work.sync();
        g.reset();
    }
}

// One thread executes twice a list that waits for what the other one appends.
void n7(World& world, Shape shape, int) {
    const Event a(world, "a", false);
    Work lists(world, "L", shape), kernels(world, "M", {true, shape.in_order, true});
    world.prepare({"A", "K"});
    lists.op("A", nullptr, {&a});
    lists.close();
    std::thread other([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        kernels.op("K", &a);
        a.sync();
    });
    lists.execute();
    lists.execute();
    lists.sync();
    other.join();
    kernels.sync();
    world.done({"A", "K"});
}

// Two signal one event; one of them has ended.
void n8(World& world, Shape shape, int) {
    const Event a(world, "a", false), g(world, "g", false);
    Work work(world, "L", shape);
    work.op("A", &a);
    work.op("B", &a, {&g});
    a.sync();
    world.done({"A"});
    world.not_done({"B"});
    world.due({"A"});
    g.signal();
    work.sync();
    world.done({"B"});
    world.due({"B"});
}

// One thread waits for, and asks, the event of an Append that has not returned in the other.
void n9(World& world, Shape shape, int) {
    Event a(world, "a", true);
    world.prepare({"A"});
    Work work(world, "L", shape);
    for (int round = 0; round < 20; ++round) {
        const std::string mark = "A" + std::to_string(round);
        std::thread other([&] {
            a.sync();
            a.tell_ticks(mark);
        });
        work.op(mark, &a, {}, "A");
        other.join();
        work.sync();
        a.renew();
    }
}

// More results are there than are collected at once, of another thread's list that was looked at just before.
void s20(World& world, Shape shape, int) {
    const Event a(world, "a", true), g(world, "g", false), h(world, "h", false);
    world.prepare({"k", "last"});
    Work work(world, "L", shape);
    std::thread([&] {
        for (int i = 0; i < 140; ++i) work.op("k" + std::to_string(i), nullptr, {&g}, "k");
        work.barrier("X");
        work.op("last", &a);
        work.submit();
    }).join();
    h.signal();
    h.sync();  // all lists are looked at, and nothing has ended
    g.signal();
    while (world.count("last") == 0) {
    }
    a.sync();
    a.tell_ticks("last");
    work.sync();
    a.tell_ticks("last");
}

}  // namespace

const std::vector<Row> order_rows = {
    {"N1", "an operation that waits lets others pass", n1, immediate | out_of_order | both_engines, overtaking},
    {"N2", "a copy waits for a later kernel", n2, immediate | both_orders | compute, plain},
    {"N3", "a kernel waits, a copy does not", n3, immediate | both_orders | compute, plain},
    {"N4", "a run, a list that waits, the run again", n4, regular | both_orders | both_engines, overlapping},
    {"N5", "an event of the recorder's comes back", n5, immediate | both_orders | both_engines, plain},
    {"N7", "executed twice, waiting for another thread", n7, regular | both_orders | both_engines,
     threaded | overlapping | interleaving},
    {"N8", "two signallers, one has ended", n8, immediate | out_of_order | both_engines, plain},
    {"N9", "asked before the Append returns", n9, immediate | both_orders | both_engines, threaded},
    {"S20", "many results, one is asked for", s20, all_lists, threaded},
};
