// Queries by which the device writes the timestamps of the program's events, appended elsewhere or earlier than what
// signals them.
#include <cstring>

#include "journal.hpp"
#include "rows.hpp"

namespace {

// A regular list that has one query, whose result is looked at after each run.
class Reader {
public:
    Reader(World& world, Shape shape, const Event& event)
        : world_(world), event_(event), mark_("Q" + event.name()), list_(world, mark_, {false, shape.in_order, true}),
          found_(static_cast<ze_kernel_timestamp_result_t*>(world.memory(sizeof *found_))) {
        ze_event_handle_t handle = event.handle();
        list_.mark(mark_);
        CHECK(zeCommandListAppendQueryKernelTimestamps, list_.handle(), 1, &handle, found_, nullptr, nullptr, 1, &handle);
        list_.appended(mark_, "zeCommandListAppendQueryKernelTimestamps", false);
        list_.close();
    }

    // The event was signalled by this operation.
    void tell(const std::string& mark) {
        std::memset(found_, 0, sizeof *found_);
        list_.execute();
        list_.sync();
        world_.due({mark_}, ++runs_);
        tell_written(mark, *found_);
        event_.tell_ticks(mark);
    }

private:
    World& world_;
    const Event& event_;
    std::string mark_;
    Work list_;
    ze_kernel_timestamp_result_t* found_;
    int runs_ = 0;
};

// Three operations, one in each life of a list, signal the event. The query is there before the life `first`.
void read_three(World& world, Shape shape, int first) {
    const Event a(world, "a", true);
    Work work(world, "L", shape);
    if (first == 2) work.op("A1", &a);
    Reader reader(world, shape, a);
    for (int life = 1; life <= 3; ++life) {
        const std::string mark = "A" + std::to_string(life);
        if (life >= first) work.op(mark, &a);
        work.submit();
        work.sync();
        world.due({mark});
        reader.tell(mark);
        a.reset();
        work.next();
    }
}

// The query is there before anything signals its event.
void s22(World& world, Shape shape, int) {
    read_three(world, shape, 1);
}

// The query is appended after the first of several operations that signal its event, and runs after each.
void s23(World& world, Shape shape, int) {
    read_three(world, shape, 2);
}

// The query is appended when the operation has been seen to end, and again later.
void s24(World& world, Shape shape, int) {
    const Event a(world, "a", true), b(world, "b", true);
    Work work(world, "L", shape);
    work.op("A", &a);
    work.op("B", &b);
    work.submit();
    work.sync();
    world.due({"A", "B"});
    a.tell_ticks("A");
    Reader first(world, shape, a), second(world, shape, b);
    for (int run = 0; run < 2; ++run) {
        second.tell("B");
        first.tell("A");
    }
    work.next();
}

// The event's next life: it is reset, an immediate list gets a query of it, and then a list what signals it.
void ask_early(World& world, const Event& event, Work& reader, Work& work, int life) {
    const std::string mark = "A" + std::to_string(life), query = "Q" + std::to_string(life);
    auto* found = static_cast<ze_kernel_timestamp_result_t*>(world.memory(sizeof(ze_kernel_timestamp_result_t)));
    ze_event_handle_t handle = event.handle();
    event.reset();
    reader.mark(query);
    CHECK(zeCommandListAppendQueryKernelTimestamps, reader.handle(), 1, &handle, found, nullptr, nullptr, 1, &handle);
    reader.appended(query, "zeCommandListAppendQueryKernelTimestamps", false);
    work.op(mark, &event);
    work.submit();
    work.sync();
    reader.sync();
    world.due({mark, query});
    tell_written(mark, *found);
    event.tell_ticks(mark);
}

void signal_once(World& world, const Event& event, Work& work) {
    work.op("A1", &event);
    work.submit();
    work.sync();
    world.due({"A1"});
    event.tell_ticks("A1");
}

// A query of an immediate list is there before what signals its event again.
void s25(World& world, Shape shape, int) {
    const Event a(world, "a", true);
    Work work(world, "L", shape);
    signal_once(world, a, work);
    work.next();
    Work reader(world, "Q", {true, shape.in_order, true});
    for (int life = 2; life <= 3; ++life) {
        ask_early(world, a, reader, work, life);
        work.next();
    }
}

// The same, and what signalled the event before is in a list that could be executed again.
void s26(World& world, Shape shape, int) {
    const Event a(world, "a", true);
    Work first(world, "L", shape), second(world, "M", shape), reader(world, "Q", {true, shape.in_order, true});
    signal_once(world, a, first);
    ask_early(world, a, reader, second, 2);
}

}  // namespace

const std::vector<Row> query_rows = {
    {"S22", "a query older than what it reads", s22, all_lists, reading},
    {"S23", "a query that is kept, operations that change", s23, all_lists, keeping},
    {"S24", "a query appended after the end", s24, all_lists, plain},
    {"S25", "an immediate query of an event that was reset", s25, all_lists, reading | interleaving | unsignalling},
    {"S26", "the same, of an event of a list that is kept", s26, regular | both_orders | both_engines,
     asking | interleaving | unsignalling},
};
