// The programs of the matrix, a function each. Names that begin with R or N are rows of the regression table; those
// that begin with S are further situations, those with T lists that run again while something waits for the host, those
// with L a device that is lost, with G graphs and commands that may be changed, with D several devices, with M metrics.
#pragma once

#include <vector>

#include "world.hpp"

// What lists a program can be run with; it is run with each combination.
enum Lists : unsigned {
    immediate = 1,
    regular = 2,
    ordered = 4,
    out_of_order = 8,
    compute = 16,
    copy = 32,
    both_kinds = immediate | regular,
    both_orders = ordered | out_of_order,
    both_engines = compute | copy,
    all_lists = both_kinds | both_orders | both_engines,
    one_way = immediate | out_of_order | compute,  // it makes its own lists
};

// What a test must know of a program.
enum Traits : unsigned {
    plain = 0,
    threaded = 1,       // it has threads of its own
    overlapping = 2,    // it executes lists that still run, which Level Zero forbids and programs do
    overtaking = 4,     // it ends only if commands overtake one that waits: FAKE_ZE_ORDER=free
    interleaving = 8,   // it hangs if one list that waits holds up the engine: not FAKE_ZE_ORDER=engine
    long_running = 16,  // it takes a count
    untimed = 32,       // lists that cannot be timed: the recorder says so
    leaving = 64,       // it ends with work under way
    orphaning = 128,    // it destroys a context before what lives in it
    losing = 256,       // the device is lost: what had not ended by then has no result, and that is said
    capturing = 512,    // operations whose marks begin with C go into graphs: not timed, and that is said
    several = 1024,     // there are two devices of two parts each
    changing = 2048,    // lists whose commands may be changed: not timed, and that is said
    reading = 4096,     // a query older than the operations reads their event: not timed, and that is said
    keeping = 8192,     // a query reads an event of several operations: not always right where it stays signalled
    asking = 16384,     // which of two operations a query means is not known: what it reads may be false, and that is said
    unsignalling = 32768,  // it waits for an event anew that the host has reset: not where that does nothing
};

struct Row {
    const char* name;
    const char* title;
    void (*run)(World& world, Shape shape, int count);
    unsigned lists;
    unsigned traits;
};

extern const std::vector<Row> sharing_rows, run_rows, lifetime_rows, order_rows, thread_rows, kind_rows, rerun_rows;
extern const std::vector<Row> loss_rows, graph_rows, device_rows, metric_rows, query_rows;
