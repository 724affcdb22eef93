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
        std::string line = "written " + mark + " 1";
        for (const uint64_t value : {found_->global.kernelStart, found_->global.kernelEnd, found_->context.kernelStart,
                                     found_->context.kernelEnd}) {
            line += " " + std::to_string(value);
        }
        note(line);
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

// The query is there before anything signals its event.
void s22(World& world, Shape shape, int) {
    const Event a(world, "a", true);
    Reader reader(world, shape, a);
    Work work(world, "L", shape);
    for (int life = 1; life <= 3; ++life) {
        const std::string mark = "A" + std::to_string(life);
        work.op(mark, &a);
        work.submit();
        work.sync();
        world.due({mark});
        reader.tell(mark);
        a.reset();
        work.next();
    }
}

// The query is appended after the first of several operations that signal its event, and runs after each.
void s23(World& world, Shape shape, int) {
    const Event a(world, "a", true);
    Work work(world, "L", shape);
    work.op("A1", &a);
    Reader reader(world, shape, a);
    for (int life = 1; life <= 3; ++life) {
        const std::string mark = "A" + std::to_string(life);
        if (life > 1) work.op(mark, &a);
        work.submit();
        work.sync();
        world.due({mark});
        reader.tell(mark);
        a.reset();
        work.next();
    }
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

}  // namespace

const std::vector<Row> query_rows = {
    {"S22", "a query older than what it reads", s22, all_lists, reading},
    {"S23", "a query that is kept, operations that change", s23, all_lists, keeping},
    {"S24", "a query appended after the end", s24, all_lists, plain},
};
