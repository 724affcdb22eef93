// Metric queries among operations: recorders do not see the calls, but the commands keep their places and their events.
#include <dlfcn.h>
#include <level_zero/zet_api.h>

#include <cstring>

#include "rows.hpp"

namespace {

template <class Function>
Function* tool(const char* name) {
    auto* found = reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
    if (found == nullptr) wrong(std::string("the loader has no ") + name);
    return found;
}
#define TOOL(function, ...) check(tool<decltype(function)>(#function)(__VA_ARGS__), #function)

struct Report {
    uint64_t begin = 0, end = 0, ends = 0;
};

// How much later, of counters that may have wrapped in between.
int64_t later(uint64_t than, uint64_t ticks) { return static_cast<int64_t>((ticks - than) << 40) >> 40; }

void m1(World& world, Shape shape, int) {
    const Event a(world, "a", true), c(world, "c", true), e(world, "e", false), d(world, "d", true);
    Work work(world, "L", shape);
    zet_metric_query_pool_handle_t pool = nullptr;
    zet_metric_query_handle_t query = nullptr;
    const zet_metric_query_pool_desc_t desc = {ZET_STRUCTURE_TYPE_METRIC_QUERY_POOL_DESC, nullptr,
                                               ZET_METRIC_QUERY_POOL_TYPE_PERFORMANCE, 1};
    TOOL(zetMetricQueryPoolCreate, world.context(), world.device(), nullptr, &desc, &pool);
    TOOL(zetMetricQueryCreate, pool, 0, &query);
    work.op("A", &a);
    work.barrier("X");
    world.mark("-begin");
    TOOL(zetCommandListAppendMetricQueryBegin, work.handle(), query);
    work.barrier("Y");
    work.op("B");
    work.op("C", &c);
    work.barrier("Z");
    world.mark("-end");
    TOOL(zetCommandListAppendMetricQueryEnd, work.handle(), query, e.handle(), 0, nullptr);
    world.mark("-marker");
    TOOL(zetCommandListAppendMetricStreamerMarker, work.handle(), nullptr, 7);
    world.mark("-barrier");
    TOOL(zetCommandListAppendMetricMemoryBarrier, work.handle());
    work.op("D", &d, {&e});
    if (!shape.immediate) work.close();
    for (int run = 1; run <= (shape.immediate ? 1 : 3); ++run) {
        if (!shape.immediate) work.execute();
        e.sync();
        world.done({"A", "B", "C"});
        Report report;
        size_t size = sizeof report;
        TOOL(zetMetricQueryGetData, query, &size, reinterpret_cast<uint8_t*>(&report));
        ze_kernel_timestamp_result_t inside, before, after;
        work.sync();
        CHECK(zeEventQueryKernelTimestamp, a.handle(), &before);
        CHECK(zeEventQueryKernelTimestamp, c.handle(), &inside);
        CHECK(zeEventQueryKernelTimestamp, d.handle(), &after);
        if (report.ends != 1) wrong("a query ends once");
        if (later(report.begin, inside.global.kernelStart) < 0 || later(inside.global.kernelEnd, report.end) < 0 ||
            later(before.global.kernelEnd, report.begin) < 0 || later(report.end, after.global.kernelStart) < 0) {
            wrong("a query is elsewhere");
        }
        a.tell_ticks("A", run);
        c.tell_ticks("C", run);
        d.tell_ticks("D", run);
        world.due({"A", "X", "Y", "B", "C", "Z", "D"}, run);
        TOOL(zetMetricQueryReset, query);
        for (const Event* event : {&a, &c, &d, &e}) event->reset();
    }
    TOOL(zetMetricQueryDestroy, query);
    TOOL(zetMetricQueryPoolDestroy, pool);
}

}  // namespace

const std::vector<Row> metric_rows = {
    {"M1", "metric queries", m1, all_lists, plain},
};
