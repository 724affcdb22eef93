// The programs of the matrix, and the interpreter of random ones.
//
//   fake_ze_matrix --rows                                     a line for each program: its name, lists, traits, title
//   fake_ze_matrix ROW LISTS ENGINE [COUNT]                   LISTS: immediate|regular,in-order|out-of-order
//   fake_ze_matrix --program FILE                             a program as program.cpp reads it
//
// It prints its own results, which must not depend on whether it is recorded, and exits 0 if they are right.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "journal.hpp"
#include "locks.hpp"
#include "rows.hpp"

void interpret(const char* path);

namespace {

template <class Use>
void for_each_row(Use use) {
    for (const auto* rows : {&sharing_rows, &run_rows, &lifetime_rows, &order_rows, &thread_rows, &kind_rows, &rerun_rows,
                            &loss_rows, &graph_rows, &device_rows, &metric_rows, &query_rows}) {
        for (const Row& row : *rows) use(row);
    }
}

void tell_rows() {
    for_each_row([](const Row& row) { std::printf("%s %u %u %s\n", row.name, row.lists, row.traits, row.title); });
}

void leave() {
    tell_locks();
    write_journal();
}

}  // namespace

int main(int count, char** arguments) {
    if (count == 2 && std::strcmp(arguments[1], "--rows") == 0) {
        tell_rows();
        return 0;
    }
    if (count == 3 && std::strcmp(arguments[1], "--program") == 0) {
        interpret(arguments[2]);
        leave();
        return 0;
    }
    if (count < 4) {
        std::fprintf(stderr, "fake_ze_matrix ROW LISTS ENGINE [COUNT]\n");
        return 2;
    }
    Shape shape;
    shape.immediate = std::strncmp(arguments[2], "immediate", 9) == 0;
    shape.in_order = std::strstr(arguments[2], "in-order") != nullptr;
    shape.compute = std::strcmp(arguments[3], "compute") == 0;
    bool is_found = false;
    for_each_row([&](const Row& row) {
        if (std::strcmp(row.name, arguments[1]) != 0) return;
        is_found = true;
        {
            World world;
            row.run(world, shape, count > 4 ? std::atoi(arguments[4]) : 200);
        }
        leave();
    });
    if (is_found) return 0;
    std::fprintf(stderr, "fake_ze_matrix: no row %s\n", arguments[1]);
    return 2;
}
