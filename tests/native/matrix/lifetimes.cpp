// What comes and goes: events, lists, contexts, memory, and the program itself.
#include <cstdlib>

#include "journal.hpp"
#include "rows.hpp"

namespace {

std::string numbered(const char* name, int number) { return name + std::to_string(number); }

// For runs in which calls fail (FAKE_ZE_FAIL): more than a chunk's worth, some with signals that are waited for.
void faults(World& world, Shape shape, int) {
    const Event a(world, "a", false), b(world, "b", false);
    Work work(world, "L", shape);
    for (int life = 0; life < 2; ++life) {
        for (int i = 0; i < 70; ++i) {
            const Event* signal = i == 34 ? &a : i == 69 ? &b : nullptr;
            work.op(numbered("k", life * 100 + i), signal, {}, "k");
        }
        work.submit();
        a.sync();
        b.sync();
        a.reset();
        b.reset();
        work.next();
    }
}

// Appended, waited for, appended ...: as much memory at the end as near the begin.
void r15(World& world, Shape shape, int count) {
    const Event a(world, "a", false);
    Work work(world, "L", shape);
    for (int i = 0; i < count; ++i) {
        work.op(numbered("k", i), i % 2 == 0 ? &a : nullptr, {}, "k");
        work.submit();
        if (i % 2 == 0) {
            a.sync();
            a.reset();
        }
        work.next();
        if (i == count / 5) world.tell_levels("warm");
    }
    world.tell_levels("end");
}

// The same on lists that wait by themselves, without any call that waits.
void s8(World& world, Shape shape, int count) {
    shape.synchronous = true;
    Work work(world, "L", shape);
    for (int i = 0; i < count; ++i) {
        work.op(numbered("k", i), nullptr, {}, "k");
        work.submit();
        if (!shape.immediate) work.reset();
        if (i == count / 5) world.tell_levels("warm");
    }
    world.tell_levels("end");
}

// A full chunk, waited for, again and again.
void s9(World& world, Shape shape, int count) {
    Work work(world, "L", shape);
    for (int round = 0; round < count / 64; ++round) {
        for (int i = 0; i < 64; ++i) work.op(numbered("k", round * 64 + i), nullptr, {}, "k");
        work.submit();
        work.next();
        if (round == count / 320) world.tell_levels("warm");
    }
    world.tell_levels("end");
}

// A closed list, executed many times.
void s10(World& world, Shape shape, int count) {
    const Event a(world, "a", false);
    Work work(world, "L", shape);
    for (int i = 0; i < 8; ++i) work.op(numbered("k", i), i == 3 ? &a : nullptr, {}, "k");
    work.close();
    for (int run = 0; run < count / 8; ++run) {
        work.execute();
        work.sync();
        a.reset();
        if (run == count / 40) world.tell_levels("warm");
    }
    world.tell_levels("end");
}

// The context goes before its lists do.
void r16(World& world, Shape shape, int) {
    ze_context_handle_t context = world.another_context();
    Work first(world, "L", shape, context), second(world, "M", shape, context);
    for (int i = 0; i < 3; ++i) {
        first.op(numbered("A", i));
        second.op(numbered("B", i));
    }
    first.submit();
    second.submit();
    first.sync();
    second.sync();
    world.due({"A0", "B2"});
    CHECK(zeContextDestroy, context);
    first.destroy();
    second.destroy();
}

// More than a chunk's worth on each of several lists, in turn.
void r17(World& world, Shape shape, int) {
    Work lists[] = {{world, "L", shape}, {world, "M", shape}, {world, "N", shape}};
    for (int i = 0; i < 70; ++i) {
        for (int which = 0; which < 3; ++which) {
            lists[which].op(numbered("k", which * 100 + i), nullptr, {}, numbered("k", which));
        }
    }
    for (auto& list : lists) list.submit();
    for (auto& list : lists) list.next();
}

// Lists come and go.
void r18(World& world, Shape shape, int count) {
    const Event a(world, "a", false);
    for (int round = 0; round < count / 20; ++round) {
        Work work(world, numbered("L", round), shape);
        for (int i = 0; i < 20; ++i) {
            work.op(numbered("k", round * 20 + i), i == 19 ? &a : nullptr, {}, "k");
        }
        work.submit();
        a.sync();
        a.reset();
        work.sync();
        work.destroy();
        if (round == count / 100) world.tell_levels("warm");
    }
    world.tell_levels("end");
}

// Handles of events and lists come back while results are awaited.
void s11(World& world, Shape shape, int) {
    Event a(world, "a", true);
    for (int round = 0; round < 6; ++round) {
        Work work(world, numbered("L", round), shape);
        work.op(numbered("A", round), &a);
        work.submit();
        work.next();  // a list may not hold a destroyed event
        a.tell_ticks(numbered("A", round));
        a.renew();
    }
}

// An event is destroyed as soon as it was seen signalled, with the list still full of others.
void s12(World& world, Shape shape, int) {
    const Event g(world, "g", false);
    Work work(world, "L", shape);
    {
        const Event a(world, "a", false);
        work.op("A", &a);
        if (shape.immediate) {
            work.op("B", nullptr, {&g});
        } else {
            work.submit();
        }
        a.sync();
        if (!shape.immediate) work.next();  // a list may not hold a destroyed event
    }
    const Event b(world, "b", true);
    work.op("C", &b);
    work.submit();
    g.signal();
    work.next();
    b.tell_ticks("C");
}

// A list that may be cloned is left alone, and so is its clone.
void s13(World& world, Shape shape, int) {
    const auto clone = NEWER(zeCommandListCreateCloneExp);
    Work work(world, "L", shape, nullptr, fake_ze::list_flag_cloneable);
    work.op("A");
    work.op("B");
    work.close();
    work.execute();
    work.sync();
    ze_command_list_handle_t other = nullptr;
    if (clone != nullptr && clone(work.handle(), &other) == ZE_RESULT_SUCCESS) {
        CHECK(zeCommandQueueExecuteCommandLists, work.queue(), 1, &other, nullptr);
        work.sync();
        CHECK(zeCommandListDestroy, other);
    } else {
        work.execute();
        work.sync();
    }
}

// Two contexts, one after the other with the same handle.
void s14(World& world, Shape shape, int) {
    for (int round = 0; round < 3; ++round) {
        ze_context_handle_t context = world.another_context();
        Work work(world, numbered("L", round), shape, context);
        work.op(numbered("A", round));
        work.submit();
        work.sync();
        work.destroy();
        CHECK(zeContextDestroy, context);
    }
}

// The program ends; what it never waited for has ended by then.
void s15(World& world, Shape shape, int) {
    auto& work = *new Work(world, "L", shape);
    auto& g = *new Event(world, "g", false);
    for (int i = 0; i < 5; ++i) work.op(numbered("A", i));
    work.op("last", &g);
    work.submit();
    // Look without a call: it would see the results.
    while (world.count("last") == 0) {
    }
    std::fflush(stdout);
    write_journal();
    std::exit(0);
}

}  // namespace

const std::vector<Row> lifetime_rows = {
    {"R12", "calls of the recorder's fail", faults, all_lists, plain},
    {"R15", "operation and wait, again and again", r15, all_lists, long_running},
    {"R16", "a context goes before its lists", r16, all_lists, orphaning},
    {"R17", "three lists of 70", r17, all_lists, plain},
    {"R18", "lists come and go", r18, all_lists, long_running},
    {"R27", "a copy's slot cannot be had", faults, both_kinds | both_orders | copy, plain},
    {"S8", "no waits at all, synchronous list", s8, all_lists, long_running},
    {"S9", "a full chunk, and a wait", s9, all_lists, long_running},
    {"S10", "many runs", s10, regular | both_orders | both_engines, long_running},
    {"S11", "handles of events and lists come back", s11, all_lists, plain},
    {"S12", "an event goes, others wait", s12, all_lists, plain},
    {"S13", "lists that may be cloned", s13, regular | both_orders | compute, untimed},
    {"S14", "contexts with one handle", s14, all_lists, plain},
    {"S15", "the program ends without a wait", s15, all_lists, leaving},
};
