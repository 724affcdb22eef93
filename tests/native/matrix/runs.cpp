// Lists that are executed more than once, and the ways to wait for them.
#include "rows.hpp"

namespace {

std::string numbered(const char* name, int number) { return name + std::to_string(number); }

void resubmit(World& world, Shape shape, bool has_ticks) {
    const Event a(world, "a", has_ticks), b(world, "b", has_ticks);
    Work work(world, "L", shape);
    work.op("A", &a);
    work.op("B", &b, {&a});
    work.op("C");
    work.close();
    for (int run = 1; run <= 3; ++run) {
        work.execute();
        work.sync();
        world.done({"A", "B", "C"});
        world.due({"A", "B", "C"}, run);
        for (const char* name : {"A", "B", "C"}) {
            if (!shape.compute) world.clear(name);
        }
        if (shape.compute && world.count("B") != static_cast<uint64_t>(run)) wrong("each run runs once");
        a.reset();
        b.reset();
    }
}

// Executed three times, waited for between.
void r4(World& world, Shape shape, int) { resubmit(world, shape, false); }

// The same with events that have timestamps, which a reset may leave signalled.
void r5(World& world, Shape shape, int) { resubmit(world, shape, true); }

// A copy on the engine that can do nothing else.
void r7(World& world, Shape shape, int) {
    const Event a(world, "a", false);
    Work work(world, "L", shape);
    work.op("A", &a);
    work.op("B");
    work.submit();
    a.sync();
    world.done({"A"});
    work.sync();
    world.due({"A", "B"});
}

// Copies on a regular list, beside kernels that wait for them.
void r8(World& world, Shape shape, int) {
    const Event a(world, "a", false), b(world, "b", false);
    Work copies(world, "L", shape), kernels(world, "M", {true, shape.in_order, true});
    kernels.op("K", &b, {&a});
    copies.op("A", &a);
    copies.submit();
    copies.sync();
    b.sync();
    world.done({"A", "K"});
    kernels.sync();
}

// Two operations signal one event; the event is reset between two runs.
void r19(World& world, Shape shape, int) {
    const Event a(world, "a", false);
    Work work(world, "L", shape);
    work.op("A", &a);
    work.op("B", &a);
    work.close();
    for (int run = 1; run <= 2; ++run) {
        work.execute();
        a.sync();
        work.sync();
        world.due({"A", "B"}, run);
        a.reset();
    }
}

// Executed three times without a wait between: the third looks for the results of a run that has hardly begun.
void r29(World& world, Shape shape, int) {
    const Event a(world, "a", false);
    Work work(world, "L", shape);
    work.op("B");
    work.op("A", &a);
    work.close();
    for (int run = 0; run < 3; ++run) work.execute();
    work.sync();
}

// More than a chunk's worth of operations, each with a signal; the last one's is waited for.
void r13(World& world, Shape shape, int) {
    const Event a(world, "a", false), last(world, "last", false);
    Work work(world, "L", shape);
    constexpr int number = 65 + 64;
    for (int i = 0; i < number; ++i) work.op(numbered("k", i), i == number - 1 ? &last : &a, {}, "k");
    work.submit();
    last.sync();
    work.next();
}

// Runs of more than one chunk.
void r14(World& world, Shape shape, int) {
    Work work(world, "L", shape);
    for (int i = 0; i < 70; ++i) work.op(numbered("k", i), nullptr, {}, "k");
    work.close();
    for (int run = 0; run < 2; ++run) {
        work.execute();
        work.sync();
    }
}

// The second run of an out-of-order list: its event must not fire before its operation.
void n6(World& world, Shape shape, int) {
    const Event b(world, "b", false), g(world, "g", false);
    Work work(world, "L", shape);
    work.op("A", &b, {&g});
    work.close();
    g.signal();
    work.execute();
    work.sync();
    world.clear("A");
    b.reset();
    g.reset();
    work.execute();
    if (b.is_signalled()) wrong("the second run's event fired before the run");
    world.not_done({"A"});
    g.signal();
    b.sync();
    world.done({"A"});
    work.sync();
}

// Fences are waited for, and asked.
void s3(World& world, Shape shape, int) {
    Work work(world, "L", shape);
    work.op("A");
    work.op("B");
    work.close();
    const ze_fence_desc_t desc = {ZE_STRUCTURE_TYPE_FENCE_DESC, nullptr, 0};
    ze_fence_handle_t fence;
    CHECK(zeFenceCreate, work.queue(), &desc, &fence);
    work.execute(fence);
    CHECK(zeFenceHostSynchronize, fence, forever);
    world.done({"A", "B"});
    world.due({"A", "B"}, 1);
    CHECK(zeFenceReset, fence);
    work.execute(fence);
    while (zeFenceQueryStatus(fence) == ZE_RESULT_NOT_READY) {
    }
    world.due({"A", "B"}, 2);
    work.sync();
    CHECK(zeFenceDestroy, fence);
}

// Only the device is waited for.
void s4(World& world, Shape shape, int) {
    const auto wait = NEWER(zeDeviceSynchronize);
    Work work(world, "L", shape);
    for (int i = 0; i < 3; ++i) {
        work.op(numbered("A", i));
        work.submit();
        if (wait == nullptr || wait(world.device()) == ZE_RESULT_ERROR_UNSUPPORTED_FEATURE) work.sync();
        world.due({numbered("A", i)});
        if (!shape.immediate) work.reset();
    }
}

// Queues and lists that wait by themselves: no call waits, and yet all is reported.
void r25(World& world, Shape shape, int) {
    shape.synchronous = true;
    const Event a(world, "a", false);
    Work work(world, "L", shape);
    for (int i = 0; i < 5; ++i) {
        work.op(numbered("A", i), i % 2 == 0 ? &a : nullptr);
        work.submit();
        world.done({numbered("A", i).c_str()});
        world.due({numbered("A", i)});
        if (!shape.immediate) work.reset();
    }
}

// Regular lists, executed by an immediate one.
void s5(World& world, Shape shape, int) {
    const auto append = NEWER(zeCommandListImmediateAppendCommandListsExp);
    const Event a(world, "a", false), b(world, "b", false);
    Work lists(world, "L", shape), taker(world, "M", {true, shape.in_order, shape.compute});
    lists.op("A", &a);
    lists.op("B", nullptr, {&a});
    lists.close();
    for (int run = 1; run <= 3; ++run) {
        ze_command_list_handle_t handle = lists.handle();
        taker.mark("-lists");
        const ze_result_t code = append == nullptr ? ZE_RESULT_ERROR_UNSUPPORTED_FEATURE
                                                   : append(taker.handle(), 1, &handle, nullptr, 0, nullptr);
        if (code == ZE_RESULT_ERROR_UNSUPPORTED_FEATURE) {
            taker.mark("");
            lists.execute();
            lists.sync();
        } else {
            check(code, "zeCommandListImmediateAppendCommandListsExp");
        }
        taker.sync();
        world.done({"A", "B"});
        world.due({"A", "B"}, run);
        a.reset();
    }
}

// Several lists in one Execute, and the lists of one queue on another later.
void s6(World& world, Shape shape, int) {
    const Event a(world, "a", false);
    Work first(world, "L", shape), second(world, "M", shape);
    first.op("A", &a);
    second.op("B", nullptr, {&a});
    first.close();
    second.close();
    ze_command_list_handle_t both[] = {first.handle(), second.handle()};
    for (int run = 1; run <= 4; ++run) {
        CHECK(zeCommandQueueExecuteCommandLists, run % 2 == 0 ? first.queue() : second.queue(), 2, both, nullptr);
        (run % 2 == 0 ? first : second).sync();
        world.due({"A", "B"}, run);
        a.reset();
    }
}

// Events that the device resets.
void s7(World& world, Shape shape, int) {
    const Event a(world, "a", false);
    Work work(world, "L", shape);
    work.op("A", &a);
    work.wait_on({&a});
    work.reset_event(a);
    work.barrier("X");
    work.op("B", &a);
    work.submit();
    work.sync();
    a.sync();
    world.done({"A", "B"});
    work.next();
}

}  // namespace

const std::vector<Row> run_rows = {
    {"R4", "three runs of a closed list", r4, regular | both_orders | both_engines, plain},
    {"R5", "three runs, events with timestamps", r5, regular | both_orders | both_engines, plain},
    {"R7", "a copy-only engine", r7, both_kinds | both_orders | copy, plain},
    {"R8", "regular copies that a kernel waits for", r8, regular | both_orders | copy, plain},
    {"R13", "the 65th operation's signal", r13, all_lists, plain},
    {"R14", "runs of more than 64 operations", r14, regular | both_orders | both_engines, plain},
    {"R19", "two signallers, event reset between runs", r19, regular | both_orders | both_engines, plain},
    {"R25", "synchronous lists: nothing waits", r25, all_lists, plain},
    {"R29", "a run while one runs", r29, regular | both_orders | both_engines, overlapping},
    {"N6", "second run's signal not early", n6, regular | both_orders | both_engines, plain},
    {"S3", "fences", s3, regular | both_orders | both_engines, plain},
    {"S4", "zeDeviceSynchronize only", s4, all_lists, plain},
    {"S5", "an immediate list executes regular ones", s5, regular | both_orders | both_engines, plain},
    {"S6", "two lists at once, two queues in turn", s6, regular | both_orders | both_engines, plain},
    {"S7", "events that the device resets", s7, all_lists, plain},
};
