// Commands that lists do not run themselves: captured into graphs that run later and more than once, and commands that
// are changed between runs.
#include "journal.hpp"
#include "rows.hpp"

namespace {

std::string numbered(const char* name, int number) { return name + std::to_string(number); }

// A capture that begins with one list, and the executions of what it became.
class Capture {
public:
    explicit Capture(Work& primary, ze_context_handle_t into = nullptr) : primary_(primary) {
        const auto begin = NEWER(zeCommandListBeginGraphCaptureExt);
        ze_result_t code = ZE_RESULT_ERROR_UNSUPPORTED_FEATURE;
        if (begin != nullptr && into == nullptr) {
            code = begin(primary.handle(), nullptr);
        } else if (begin != nullptr) {
            code = NEWER(zeGraphCreateExt)(into, nullptr, &graph_);
            if (code == ZE_RESULT_SUCCESS) {
                code = NEWER(zeCommandListBeginCaptureIntoGraphExt)(primary.handle(), graph_, nullptr);
            }
        }
        if (code == ZE_RESULT_ERROR_UNSUPPORTED_FEATURE) return;  // older than API 1.17
        check(code, "zeCommandListBeginGraphCaptureExt");
        is_there_ = true;
        tell_capturing(primary, true);
    }
    ~Capture() {
        if (made_ != nullptr) check(NEWER(zeExecutableGraphDestroyExt)(made_), "zeExecutableGraphDestroyExt");
        if (graph_ != nullptr) check(NEWER(zeGraphDestroyExt)(graph_), "zeGraphDestroyExt");
    }

    bool is_there() const { return is_there_; }

    static void tell_capturing(const Work& work, bool is_expected) {
        const ze_result_t found = NEWER(zeCommandListIsGraphCaptureEnabledExt)(work.handle());
        const ze_result_t wanted = is_expected ? fake_ze::ZE_RESULT_QUERY_TRUE : fake_ze::ZE_RESULT_QUERY_FALSE;
        if (found != wanted) wrong("whether a list is captured");
    }

    void end() {
        check(NEWER(zeCommandListEndGraphCaptureExt)(primary_.handle(), nullptr, &graph_),
              "zeCommandListEndGraphCaptureExt");
        check(NEWER(zeGraphInstantiateExt)(graph_, nullptr, &made_), "zeGraphInstantiateExt");
    }

    void append(Work& work, const std::string& mark, const Event* signal, const Event* wait = nullptr) {
        ze_event_handle_t waits[] = {wait == nullptr ? nullptr : wait->handle()};
        work.mark(mark);
        check(NEWER(zeCommandListAppendGraphExt)(work.handle(), made_, nullptr,
                                                 signal == nullptr ? nullptr : signal->handle(), wait == nullptr ? 0 : 1,
                                                 waits),
              "zeCommandListAppendGraphExt");
        work.appended(mark, "zeCommandListAppendGraphExt", signal != nullptr);
    }

private:
    Work& primary_;
    bool is_there_ = false;
    fake_ze::ze_graph_handle_t graph_ = nullptr;
    fake_ze::ze_executable_graph_handle_t made_ = nullptr;
};

// One list, captured; the graph runs three times, among operations that are timed.
void g1(World& world, Shape shape, int) {
    const Event a(world, "a", true), c(world, "c", true), done(world, "done", true);
    Work work(world, "L", shape);
    work.op("A", &a);
    a.sync();
    a.tell_ticks("A");
    world.due({"A"});
    Capture graph(work);
    if (!graph.is_there()) return;
    work.op("C1", &c);
    work.barrier("C2", nullptr, {&c});
    work.op("C3");
    graph.end();
    Capture::tell_capturing(work, false);
    if (world.count("C1") != 0) wrong("captured commands run at once");
    work.op("B");
    for (int i = 0; i < 3; ++i) graph.append(work, numbered("G", i), i == 1 ? &done : nullptr, i == 2 ? &done : nullptr);
    done.sync();
    done.tell_ticks("G1");
    world.due({"G1"});
    work.op("E", &a);  // an event of ours again
    work.sync();
    a.tell_ticks("A,E");
    world.done({"C1", "C3", "B", "E"});
    world.due({"B", "G0", "G2", "E"});
    if (shape.compute && world.count("C1") != 3) wrong("each run of a graph runs all");
}

// Lists that wait for captured events are captured too, and run as before afterwards.
void fork(World& world, Shape shape, bool by_wait, ze_context_handle_t into) {
    const Event c(world, "c", true), d(world, "d", false), e(world, "e", true), f(world, "f", true);
    const Event done(world, "done", false);
    Work work(world, "L", shape), child(world, "M", shape), beside(world, "N", shape);
    child.op("A", &f);
    f.sync();
    f.tell_ticks("A");
    Capture graph(work, into);
    if (!graph.is_there()) return;
    beside.op("B0");  // is not captured
    if (by_wait) {
        work.op("C1");
        work.signal(c);
        child.wait_on({&c});
        child.op("C2");
        child.op("C3", &e);
        child.signal(d);
        work.wait_on({&d});
    } else {
        work.op("C1", &c);
        child.op("C2", &d, {&c});
        child.op("C3", &e, {&d, &c});
        work.barrier("C4", nullptr, {&e, &d});
    }
    work.op("C5");
    Capture::tell_capturing(child, true);
    Capture::tell_capturing(beside, false);
    graph.end();
    Capture::tell_capturing(child, false);
    child.op("B1", &f);
    child.sync();
    f.tell_ticks("A,B1");
    world.done({"B1"});
    world.due({"B1"});
    beside.op("B2", nullptr, {&f});
    graph.append(work, "G0", nullptr);
    graph.append(work, "G1", &done);
    done.sync();
    world.done({"C1", "C2", "C3", "C5"});
    if (shape.compute && world.count("C2") != 2) wrong("each run of a graph runs all");
    child.op("B3");
    for (Work* each : {&work, &child, &beside}) each->sync();
    world.due({"A", "B0", "B1", "B2", "B3", "G0", "G1"});
}

void g2(World& world, Shape shape, int) { fork(world, shape, false, nullptr); }
void g3(World& world, Shape shape, int) { fork(world, shape, true, nullptr); }
void g4(World& world, Shape shape, int) { fork(world, shape, false, world.context()); }

// Closed lists that a captured list takes: they run with the graph. One is then destroyed, the other runs by itself again.
void g6(World& world, Shape shape, int) {
    const Event a(world, "a", true), k(world, "k", true), last(world, "l", false), done(world, "done", false);
    const Shape closed = {false, shape.in_order, shape.compute};
    Work work(world, "L", shape), kept(world, "M", closed);
    auto gone = std::make_unique<Work>(world, "N", closed);
    kept.op("K1", &k);
    kept.op("K2", &last, {&k});
    kept.close();
    kept.execute();
    kept.sync();
    world.due({"K1", "K2"});
    k.tell_ticks("K1");
    const auto reset = [&] {
        last.sync();
        k.reset();
        last.reset();
    };
    reset();
    gone->op("K3");
    gone->close();
    Capture graph(work);
    if (!graph.is_there()) return;
    work.op("C1");
    ze_command_list_handle_t both[] = {kept.handle(), gone->handle()};
    check(NEWER(zeCommandListImmediateAppendCommandListsExp)(work.handle(), 2, both, nullptr, 0, nullptr),
          "zeCommandListImmediateAppendCommandListsExp");
    graph.end();
    gone.reset();
    graph.append(work, "G0", nullptr);
    graph.append(work, "G1", &done);
    done.sync();
    work.sync();  // without an order the first may end last
    world.done({"C1", "K1", "K2", "K3"});
    if (shape.compute && (world.count("K1") != 3 || world.count("K3") != 2)) wrong("each run of a graph runs all");
    reset();
    kept.execute();
    kept.sync();
    world.due({"K1", "K2"}, 2);
    k.tell_ticks("K1", 2);
    note("unseen 3");
    reset();
    kept.execute();
    graph.append(work, "G2", nullptr, &last);  // right behind that run, of which nothing is read before
    work.sync();
    kept.sync();
    work.op("A", &a);
    a.sync();
    a.tell_ticks("A");
    world.due({"A", "G0", "G1", "G2"});
    work.sync();
}

// Commands that are changed between runs.
void g5(World& world, Shape shape, int) {
    const Event a(world, "a", true), b(world, "b", false), w(world, "w", false);
    const fake_ze::ze_mutable_command_list_exp_desc_t chain = {fake_ze::stype_mutable_list, nullptr, 0};
    Work work(world, "L", shape, nullptr, 0, &chain), other(world, "M", shape);
    uint64_t number = 0;
    const fake_ze::ze_mutable_command_id_exp_desc_t desc = {0, nullptr, 0};
    const auto next = NEWER(zeCommandListGetNextCommandIdExp);
    const ze_result_t code =
        next == nullptr ? ZE_RESULT_ERROR_UNSUPPORTED_FEATURE : next(work.handle(), &desc, &number);
    const bool is_there = code != ZE_RESULT_ERROR_UNSUPPORTED_FEATURE;
    if (is_there) check(code, "zeCommandListGetNextCommandIdExp");
    work.op("C1", &a, {&w});
    work.op("C2");
    work.close();
    w.signal();
    work.execute();
    a.sync();
    work.sync();
    if (is_there) {
        ze_event_handle_t waits[] = {b.handle()};
        check(NEWER(zeCommandListUpdateMutableCommandWaitEventsExp)(work.handle(), number, 1, waits),
              "zeCommandListUpdateMutableCommandWaitEventsExp");
        check(NEWER(zeCommandListUpdateMutableCommandSignalEventExp)(work.handle(), number, w.handle()),
              "zeCommandListUpdateMutableCommandSignalEventExp");
        work.close();
        w.reset();
        b.signal();
    } else {
        a.reset();
    }
    work.execute();
    (is_there ? w : a).sync();
    work.sync();
    world.done({"C1", "C2"});
    other.op("A", &b);
    other.submit();
    other.sync();
    world.due({"A"});
}

}  // namespace

const std::vector<Row> graph_rows = {
    {"G1", "a graph runs three times", g1, immediate | both_orders | both_engines, capturing},
    {"G2", "lists that wait for captured ones", g2, immediate | both_orders | both_engines, capturing},
    {"G3", "the same by signals and waits of their own", g3, immediate | both_orders | both_engines, capturing},
    {"G4", "the same into a graph that is there", g4, immediate | both_orders | both_engines, capturing},
    {"G6", "closed lists in a graph", g6, immediate | both_orders | both_engines, capturing},
    {"G5", "commands that are changed", g5, regular | both_orders | both_engines, changing},
};
