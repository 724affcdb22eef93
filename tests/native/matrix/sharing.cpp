// Events that several operations share, and what the program reads from its own events.
#include "rows.hpp"

namespace {

std::string numbered(const char* name, int number) { return name + std::to_string(number); }

// Four kernels signal one event.
void r1(World& world, Shape shape, int) {
    const Event a(world, "a", false);
    Work work(world, "L", shape);
    for (int i = 0; i < 4; ++i) work.op(numbered("k", i), &a);
    work.submit();
    a.sync();
    work.sync();
    world.done({"k0", "k1", "k2", "k3"});
    world.due({"k0", "k1", "k2", "k3"});
}

// One event, one operation after the other.
void r2(World& world, Shape shape, int) {
    const Event a(world, "a", false);
    Work work(world, "L", shape);
    for (const char* name : {"A", "B", "C"}) {
        work.op(name, &a);
        work.submit();
        a.sync();
        world.done({name});
        a.reset();
        work.next();
        world.due({name});
    }
}

// A kernel is destroyed, and another one gets its handle.
void r3(World& world, Shape shape, int) {
    Work work(world, "L", shape);
    for (int i = 0; i < 3; ++i) {
        const std::string name = numbered("kernel", i);
        work.op(name);
        work.submit();
        work.next();
        world.done({name.c_str()});
        world.destroy_kernel(name);
    }
}

// A shared event, executed again.
void r6(World& world, Shape shape, int) {
    const Event a(world, "a", false);
    Work work(world, "L", shape);
    for (int i = 0; i < 4; ++i) work.op(numbered("k", i), &a);
    work.close();
    for (int run = 0; run < 3; ++run) {
        work.execute();
        a.sync();
        work.sync();
        a.reset();
    }
}

// Three waves of twelve, each waited for through its last operation's event.
void r10(World& world, Shape shape, int) {
    const Event a(world, "a", false);
    Work work(world, "L", shape);
    for (int wave = 0; wave < 3; ++wave) {
        std::vector<std::string> names;
        for (int i = 0; i < 12; ++i) {
            names.push_back("w" + std::to_string(wave) + numbered("k", i));
            work.op(names.back(), i == 11 ? &a : nullptr);
        }
        work.submit();
        a.sync();
        world.done({names.back().c_str()});
        if (shape.in_order) {
            for (const auto& name : names) {
                world.done({name.c_str()});
                world.due({name});
            }
        }
        a.reset();
        work.next();
    }
}

// An operation of one list waits for one of another list; only the second one's event is waited for.
void r11(World& world, Shape shape, int) {
    const Event a(world, "a", false), b(world, "b", false);
    Work first(world, "L", shape), second(world, "M", shape);
    first.op("A", &a);
    for (int i = 0; i < 3; ++i) second.op(numbered("B", i), i == 2 ? &b : nullptr, {&a});
    first.submit();
    second.submit();
    b.sync();
    world.done({"A", "B2"});
    world.due({"A", "B2"});
    first.sync();
    second.sync();
}

// Signals that the device sets without an operation are none.
void r24(World& world, Shape shape, int) {
    const Event a(world, "a", false), b(world, "b", false);
    Work work(world, "L", shape);
    for (int round = 0; round < 6; ++round) {
        const Event& event = round % 2 == 0 ? a : b;
        work.op(numbered("A", round), &event);
        work.op(numbered("B", round), &event);
        work.wait_on({&event});
        work.signal(event);
        work.submit();
        event.sync();
        work.next();
        event.reset();
    }
}

// Out of order: what a wait has reached is reported, what has not run is not.
void r28(World& world, Shape shape, int) {
    const Event a(world, "a", false), b(world, "b", false), g(world, "g", false);
    Work work(world, "L", shape);
    work.op("A", &a);
    work.op("B", &b, {&a});
    work.op("C", nullptr, {&g});
    b.sync();
    world.done({"A", "B"});
    world.not_done({"C"});
    world.due({"A", "B"});
    g.signal();
    work.sync();
    world.done({"C"});
}

// An operation without a signal, and a barrier that has one.
void r30(World& world, Shape shape, int) {
    const Event a(world, "a", false);
    Work work(world, "L", shape);
    work.op("A");
    work.barrier("X", &a);
    work.submit();
    a.sync();
    world.done({"A"});
    world.due({"A", "X"});
    work.sync();
}

// Timestamps that the program reads from its own events are those of its own operations.
void r31(World& world, Shape shape, int) {
    Event a(world, "a", true);
    const Event b(world, "b", true);
    Work work(world, "L", shape), copies(world, "M", shape.on(false));
    work.op("A", &a);
    copies.op("B", &b);
    work.submit();
    copies.submit();
    work.next();
    copies.next();
    a.tell_ticks("A");
    b.tell_ticks("B");
    a.tell_ticks("A");
    a.renew();
    work.op("C", &a);
    work.submit();
    work.next();
    a.tell_ticks("C");
    // Used again: the last one counts.
    work.op("D", &a);
    work.submit();
    work.next();
    a.tell_ticks("D");
    b.tell_ticks("B");
}

// Two signal the event that is read.
void s1(World& world, Shape shape, int) {
    const Event a(world, "a", true);
    Work work(world, "L", shape);
    for (int i = 0; i < 3; ++i) work.op(numbered("k", i), &a);
    work.submit();
    work.next();
    a.tell_ticks("k0,k1,k2");
}

// The timestamps of an event that is signalled at each run.
void s2(World& world, Shape shape, int) {
    const Event a(world, "a", true);
    Work work(world, "L", shape);
    work.op("A", &a);
    work.op("B");
    work.close();
    for (int run = 1; run <= 3; ++run) {
        work.execute();
        work.sync();
        a.tell_ticks("A", run);
        a.reset();
    }
}

// The program polls, and never waits.
void r32(World& world, Shape shape, int) {
    const Event x(world, "x", false), y(world, "y", false);
    Work kernels(world, "L", shape), copies(world, "M", shape.on(false));
    for (int round = 0; round < 40; ++round) {
        kernels.op(numbered("k", round), &x);
        copies.op(numbered("c", round), &y, {&x});
        y.poll();
        world.due({numbered("k", round), numbered("c", round)});
        x.reset();
        y.reset();
        if (round == 10) world.tell_levels("warm");
    }
    world.tell_levels("end");
}

// The host signals the event of an operation that has not run.
void r33(World& world, Shape shape, int) {
    const Event a(world, "a", false), b(world, "b", false), g(world, "g", false);
    Work kernels(world, "L", shape), copies(world, "M", shape.on(false));
    kernels.op("A", &a, {&g});
    copies.op("B", &b, {&g});
    a.signal();
    b.signal();
    a.sync();
    b.sync();
    world.not_done({"A", "B"});
    g.signal();
    kernels.sync();
    copies.sync();
    world.done({"A", "B"});
    world.due({"A", "B"});
}

}  // namespace

const std::vector<Row> sharing_rows = {
    {"R1", "one event, four operations", r1, all_lists, plain},
    {"R2", "one event, used three times", r2, all_lists, plain},
    {"R3", "kernel handles come back", r3, both_kinds | both_orders | compute, plain},
    {"R6", "one event, four operations, three runs", r6, regular | both_orders | both_engines, plain},
    {"R10", "three waves of twelve", r10, all_lists, plain},
    {"R11", "a wait for another list's event", r11, all_lists, plain},
    {"R24", "signals are no operations", r24, all_lists, plain},
    {"R28", "reported: what a wait reached", r28, immediate | out_of_order | both_engines, plain},
    {"R30", "a barrier that signals", r30, all_lists, plain},
    {"R31", "the program's own timestamps", r31, both_kinds | both_orders | compute, plain},
    {"R32", "polling only", r32, immediate | both_orders | compute, long_running},
    {"R33", "an event that the host signals", r33, immediate | both_orders | compute, plain},
    {"S1", "own timestamps, three signallers", s1, all_lists, plain},
    {"S2", "own timestamps at each run", s2, regular | both_orders | both_engines, plain},
};
