// Out-of-order lists that run again while something else waits for the host: where the recorder puts commands of its own
// in front of a run, none of them may hold up what the program counts on.
#include <utility>

#include "rows.hpp"

namespace {

// Lists that wait for the host hold the engine when the list runs again; the host signals them after its submission.
void held_engines(World& world, Shape shape, bool both) {
    const Event x(world, "x", false), g(world, "g", false);
    Work work(world, "L", shape), holder(world, "M", unordered), copier(world, "N", unordered.on(false));
    work.op("A", &x);
    work.submit();
    work.sync();
    world.due({"A"}, 1);
    x.reset();
    holder.op("C", nullptr, {&g});
    if (both) copier.op("D", nullptr, {&g});
    work.execute();
    g.signal();
    work.sync();
    holder.sync();
    copier.sync();
    world.done({"A", "C"});
    world.due({"A"}, 2);
}

void t1(World& world, Shape shape, int) { held_engines(world, shape, false); }
void t2(World& world, Shape shape, int) { held_engines(world, shape, true); }

// The second run overtakes a list of its queue that waits for the host.
void t3(World& world, Shape shape, int) {
    const Event x(world, "x", false), g(world, "g", false);
    Work work(world, "L", shape), other(world, "M", shape);
    other.use_queue(work);
    work.op("A", &x);
    work.submit();
    work.sync();
    x.reset();
    other.op("C", nullptr, {&g});
    other.submit();
    work.execute();
    x.sync();
    g.signal();
    work.sync();
    world.due({"A"}, 2);
    world.due({"C"}, 1);
}

// A copy without an event that waits for the host, again and again, as programs that measure bandwidth have it.
void t4(World& world, Shape shape, int) {
    const Event g(world, "g", false);
    Work work(world, "L", shape);
    work.op("A", nullptr, {&g});
    work.close();
    for (int run = 1; run <= 5; ++run) {
        work.execute();
        g.signal();
        work.sync();
        world.due({"A"}, run);
        g.reset();
    }
}

// A chain of waits within the list.
void t5(World& world, Shape shape, int) {
    const Event x(world, "x", false), y(world, "y", false);
    Work work(world, "L", shape);
    work.op("A", &x);
    work.op("B", &y, {&x});
    work.op("C", nullptr, {&y});
    work.close();
    for (int run = 1; run <= 3; ++run) {
        work.execute();
        y.sync();
        world.done({"A", "B"});
        work.sync();
        world.due({"A", "B", "C"}, run);
        for (const char* name : {"A", "B", "C"}) {
            if (!shape.compute) world.clear(name);
        }
        x.reset();
        y.reset();
    }
}

// Two lists in one submission, of which one waits for the other.
void pair(World& world, Shape shape, bool waiter_first) {
    const Event x(world, "x", false), y(world, "y", false);
    Work signaller(world, "L", shape), waiter(world, "M", shape);
    waiter.use_queue(signaller);
    signaller.op("A", &x);
    waiter.op("B", &y, {&x});
    signaller.close();
    waiter.close();
    ze_command_list_handle_t lists[] = {signaller.handle(), waiter.handle()};
    if (waiter_first) std::swap(lists[0], lists[1]);
    for (int run = 1; run <= 3; ++run) {
        CHECK(zeCommandQueueExecuteCommandLists, signaller.queue(), 2, lists, nullptr);
        signaller.sync();
        if (!y.is_signalled()) wrong("the waiter's event did not fire");
        world.due({"A", "B"}, run);
        x.reset();
        y.reset();
    }
}

void t6(World& world, Shape shape, int) { pair(world, shape, false); }
void t7(World& world, Shape shape, int) { pair(world, shape, true); }

}  // namespace

const std::vector<Row> rerun_rows = {
    {"T1", "runs again while a wait holds the engine", t1, regular | both_orders | both_engines, plain},
    {"T2", "runs again while waits hold both engines", t2, regular | both_orders | both_engines, plain},
    {"T3", "overtakes a list that waits for the host", t3, regular | both_orders | both_engines, overtaking},
    {"T4", "five runs that wait for the host", t4, regular | both_orders | both_engines, plain},
    {"T5", "a chain of waits, three runs", t5, regular | both_orders | both_engines, plain},
    {"T6", "two lists at once, one waits for the other", t6, regular | both_orders | both_engines, plain},
    {"T7", "the same, the one that waits first", t7, regular | both_orders | both_engines, overtaking},
};
