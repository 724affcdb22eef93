// The JSON scanner of Ascend captures, and cycles of task graphs.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "core/devices/ascend/joins.hpp"
#include "core/devices/ascend/json_scanner.hpp"
#include "core/devices/ascend/task_graph.hpp"
#include "core/devices/ascend/task_texts.hpp"
#include "bind/arrays.hpp"
#include "bind/module.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace lanescope::ascend;

namespace {

using Text = nb::ndarray<const uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Columns = nb::ndarray<uint64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Tasks = nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Marks = nb::ndarray<bool, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using CellRow = std::tuple<std::string, std::string, uint32_t, uint64_t, bool, std::vector<std::string>>;

Kind kind_of(const std::string& name) {
    static const char* const names[] = {"number", "integer", "token", "boolean", "text", "words", "micros", "span"};
    for (size_t i = 0; i < std::size(names); ++i) {
        if (name == names[i]) return static_cast<Kind>(i);
    }
    throw nb::value_error("unknown kind of cell");
}

// The bytes live in Python's array, which the scanner keeps.
struct BoundScanner {
    Text text;
    Scanner scanner;
};

std::vector<Cell> cells_of(const std::vector<CellRow>& rows) {
    if (rows.size() > Shape::kMaxCells) throw nb::value_error("too many cells");
    std::vector<Cell> cells;
    for (const auto& [key, kind, count, limit, is_required, words] : rows) {
        if (count == 0 || words.size() > 63) throw nb::value_error("a cell without columns, or too many words");
        if (kind == "span" && count != 2) throw nb::value_error("a span has two columns");
        cells.push_back({key, kind_of(kind), count, limit, is_required, words});
    }
    return cells;
}

nb::object span_or_none(bool found, Span span) {
    return found ? nb::object(nb::make_tuple(span.begin, span.end)) : nb::object(nb::none());
}

void cycles(Tasks pred, Tasks succ, Marks found) {
    if (pred.size() != succ.size()) throw nb::value_error("an edge has two ends");
    for (const Tasks& ends : {pred, succ}) {
        for (size_t edge = 0; edge < ends.size(); ++edge) {
            if (static_cast<uint64_t>(ends.data()[edge]) >= found.size()) throw nb::value_error("no such task");
        }
    }
    nb::gil_scoped_release release;
    find_cycles({pred.data(), pred.size()}, {succ.data(), succ.size()},
                {reinterpret_cast<uint8_t*>(found.data()), found.size()});
}

using Int64s = nb::ndarray<nb::numpy, int64_t, nb::ndim<1>>;

nb::tuple extreme_rows(Tasks task, Tasks value, size_t tasks, bool largest) {
    if (task.size() != value.size()) throw nb::value_error("columns of different lengths");
    std::vector<int64_t> best(tasks), row(tasks);
    bool is_inside = false;
    {
        nb::gil_scoped_release release;
        is_inside = extremes({task.data(), task.size()}, {value.data(), value.size()}, largest, best, row);
    }
    if (!is_inside) throw nb::value_error("no such task");
    return nb::make_tuple(lanescope::bind::to_numpy(std::move(best)), lanescope::bind::to_numpy(std::move(row)));
}

Int64s last_rows(Tasks lane, Tasks value, Tasks wanted_lane, Tasks wanted) {
    if (lane.size() != value.size() || wanted_lane.size() != wanted.size()) throw nb::value_error("columns of different lengths");
    std::vector<int64_t> found(wanted.size());
    {
        nb::gil_scoped_release release;
        last_of_lane({lane.data(), lane.size()}, {value.data(), value.size()}, {wanted_lane.data(), wanted_lane.size()},
                     {wanted.data(), wanted.size()}, found);
    }
    return lanescope::bind::to_numpy(std::move(found));
}

Int64s first_rows(Tasks key, Tasks other, Tasks stamp, size_t keys) {
    if (key.size() != other.size() || key.size() != stamp.size()) throw nb::value_error("columns of different lengths");
    std::vector<int64_t> found;
    bool is_inside = false;
    {
        nb::gil_scoped_release release;
        is_inside = first_of_pairs({key.data(), key.size()}, {other.data(), other.size()}, {stamp.data(), stamp.size()}, keys, found);
    }
    if (!is_inside) throw nb::value_error("no such key");
    return lanescope::bind::to_numpy(std::move(found));
}

Int64s edges_once(Tasks pred, Tasks succ, size_t tasks) {
    if (pred.size() != succ.size()) throw nb::value_error("an edge has two ends");
    for (const Tasks& ends : {pred, succ}) {
        for (size_t edge = 0; edge < ends.size(); ++edge) {
            if (static_cast<uint64_t>(ends.data()[edge]) >= tasks) throw nb::value_error("no such task");
        }
    }
    std::vector<int64_t> found;
    {
        nb::gil_scoped_release release;
        first_edges({pred.data(), pred.size()}, {succ.data(), succ.size()}, tasks, found);
    }
    return lanescope::bind::to_numpy(std::move(found));
}

using Ids = nb::ndarray<const uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

nb::object union_or_none(const std::vector<Ids>& lists, uint64_t most) {
    std::vector<std::span<const uint64_t>> spans;
    for (const Ids& list : lists) spans.emplace_back(list.data(), list.size());
    std::vector<uint64_t> found;
    bool is_dense = false;
    {
        nb::gil_scoped_release release;
        is_dense = union_of_ids(spans, most, found);
    }
    if (!is_dense) return nb::none();
    return nb::cast(lanescope::bind::to_numpy(std::move(found)));
}

Int64s latest(Tasks pred, Tasks succ, Tasks value) {
    if (pred.size() != succ.size()) throw nb::value_error("an edge has two ends");
    std::vector<int64_t> best(value.size());
    bool is_inside = false;
    {
        nb::gil_scoped_release release;
        is_inside = latest_before({pred.data(), pred.size()}, {succ.data(), succ.size()}, {value.data(), value.size()}, best);
    }
    if (!is_inside) throw nb::value_error("no such task");
    return lanescope::bind::to_numpy(std::move(best));
}

Int64s places(Ids ids, Tasks shift, nb::ndarray<const int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu> table) {
    std::vector<int64_t> found(ids.size());
    bool is_inside = false;
    {
        nb::gil_scoped_release release;
        is_inside = places_of({ids.data(), ids.size()}, {shift.data(), shift.size()}, {table.data(), table.size()}, found);
    }
    if (!is_inside) throw nb::value_error("an id without an entry");
    return lanescope::bind::to_numpy(std::move(found));
}

nb::list task_names(nb::ndarray<const uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu> ids) {
    nb::list found;
    std::array<char, 32> room;
    for (size_t i = 0; i < ids.size(); ++i) {
        const std::string_view text = task_name(ids.data()[i], room);
        found.append(nb::str(text.data(), text.size()));
    }
    return found;
}

nb::tuple names_as_bytes(nb::ndarray<const uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu> ids) {
    EncodedNames found;
    {
        nb::gil_scoped_release release;
        found = encoded_names({ids.data(), ids.size()});
    }
    return nb::make_tuple(lanescope::bind::to_numpy(std::move(found.bytes)), lanescope::bind::to_numpy(std::move(found.first)));
}

Lists lists_of(Tasks first, Tasks item, size_t tasks, size_t texts) {
    if (first.size() != tasks + 1 || first.data()[0] != 0 || first.data()[tasks] != static_cast<int64_t>(item.size())) {
        throw nb::value_error("lists of different number");
    }
    for (size_t i = 0; i < tasks; ++i) {
        if (first.data()[i] > first.data()[i + 1]) throw nb::value_error("begins of lists fall");
    }
    for (size_t i = 0; i < item.size(); ++i) {
        if (static_cast<uint64_t>(item.data()[i]) >= texts) throw nb::value_error("no such text");
    }
    return {{first.data(), first.size()}, {item.data(), item.size()}};
}

nb::list hints(const std::vector<std::string>& texts, Tasks out_first, Tasks out_item, Tasks in_first, Tasks in_item) {
    if (out_first.size() == 0) throw nb::value_error("lists of different number");
    const size_t tasks = out_first.size() - 1;
    const Lists out = lists_of(out_first, out_item, tasks, texts.size());
    const Lists in = lists_of(in_first, in_item, tasks, texts.size());
    const std::vector<std::string_view> views(texts.begin(), texts.end());
    nb::list found;
    std::string text;
    for (size_t task = 0; task < tasks; ++task) {
        text = "\"fanout-hint\":\"";
        append_list(out, task, views, text);
        text += "\",\"fanin-hint\":\"";
        append_list(in, task, views, text);
        text += '"';
        found.append(nb::str(text.data(), text.size()));
    }
    return found;
}

}  // namespace

void lanescope::bind::ascend(nb::module_& m) {
    nb::class_<Shape>(m, "AscendShape", "What an element of a list looks like: cells in order, or by key.")
        .def(
            "__init__",
            [](Shape* self, bool is_object, const std::vector<CellRow>& cells) {
                new (self) Shape(is_object, cells_of(cells));
            },
            "is_object"_a, "cells"_a, "Cells are (key, kind, count, limit, is_required, words).")
        .def_prop_ro("columns", &Shape::columns, "How many columns `take` fills.");

    nb::class_<BoundScanner>(m, "AscendScanner", "A strict JSON scanner over bytes that end with a NUL.")
        .def(
            "__init__",
            [](BoundScanner* self, Text text) {
                if (text.size() == 0 || text.data()[text.size() - 1] != 0) throw nb::value_error("no NUL at the end");
                const std::span<const char> bytes{reinterpret_cast<const char*>(text.data()), text.size()};
                new (self) BoundScanner{std::move(text), Scanner(bytes)};
            },
            "text"_a.noconvert())
        .def("open", [](BoundScanner& self) { return self.scanner.open(); })
        .def("key",
             [](BoundScanner& self) {
                 Span span;
                 const bool found = self.scanner.key(&span);
                 return span_or_none(found, span);
             })
        .def("open_list", [](BoundScanner& self) { return self.scanner.open_list(); })
        .def("item", [](BoundScanner& self) { return self.scanner.item(); })
        .def("is_object", [](BoundScanner& self) { return self.scanner.peek() == '{'; })
        .def("is_list", [](BoundScanner& self) { return self.scanner.peek() == '['; })
        .def("skip",
             [](BoundScanner& self) {
                 Span span;
                 bool found = false;
                 {
                     nb::gil_scoped_release release;
                     found = self.scanner.skip(&span);
                 }
                 return span_or_none(found, span);
             })
        .def(
            "take",
            [](BoundScanner& self, const Shape& shape, uint32_t depth, Columns out) {
                if (out.shape(0) != shape.columns() || depth < 1 || depth > 2) {
                    throw nb::value_error("the columns are not those of the shape");
                }
                bool done = false;
                size_t rows = 0;
                {
                    nb::gil_scoped_release release;
                    rows = self.scanner.take(shape, depth, {out.data(), out.size()}, out.shape(1), &done);
                }
                return nb::make_tuple(rows, done);
            },
            "shape"_a, "depth"_a, "out"_a.noconvert(), "Fill columns with the next elements: (how many, list is over).")
        .def("texts",
             [](BoundScanner& self) {
                 nb::list spans;
                 for (const Span& span : self.scanner.texts()) spans.append(nb::make_tuple(span.begin, span.end));
                 return spans;
             })
        .def("others",
             [](BoundScanner& self) {
                 nb::list keys;
                 for (const auto& key : self.scanner.others()) {
                     keys.append(nb::make_tuple(key.name.begin, key.name.end, key.count));
                 }
                 return keys;
             },
             nb::sig("def others(self) -> list[tuple[int, int, int]]"),
             "Return the keys of the last list that no cell has: begin and end of the name, and in how many elements; "
             "without a name all further ones.")
        .def("tally",
             [](BoundScanner& self) {
                 const Tally& tally = self.scanner.tally();
                 return nb::make_tuple(tally.good_bytes, tally.bad_bytes, tally.bad_count, tally.bad_first, tally.groups);
             })
        .def_prop_ro("fault",
                     [](BoundScanner& self) {
                         static const char* const names[] = {"", "truncated", "syntax", "depth"};
                         return std::string(names[static_cast<size_t>(self.scanner.fault())]);
                     })
        .def_prop_ro("offset", [](BoundScanner& self) { return self.scanner.offset(); })
        .def_prop_ro("torn", [](BoundScanner& self) { return self.scanner.torn(); },
                     "Behind a fault in `take`: where the element begins that it stands in.");

    m.def("ascend_extremes", &extreme_rows, "task"_a.noconvert(), "value"_a.noconvert(), "tasks"_a, "largest"_a,
          "Return the largest or smallest value among the rows of each task, and the first row that has it: 0 and -1 "
          "without rows. No value is below 0.");
    m.def("ascend_last_of_lane", &last_rows, "lane"_a.noconvert(), "value"_a.noconvert(), "wanted_lane"_a.noconvert(),
          "wanted"_a.noconvert(),
          "Return the last place of each wanted lane whose value does not exceed the wanted one, -1 without. Lanes do not "
          "fall, nor do values within a lane.");
    m.def("ascend_first_of_pairs", &first_rows, "key"_a.noconvert(), "other"_a.noconvert(), "stamp"_a.noconvert(), "keys"_a,
          "Return the row with the first stamp of each pair of key and other value, by both; rows with one of them -1, or "
          "without a stamp above 0, are left out.");
    m.def("ascend_first_edges", &edges_once, "pred"_a.noconvert(), "succ"_a.noconvert(), "tasks"_a,
          "Return the edges that are the first ones of their pair of tasks, rising.");
    m.def("ascend_union", &union_or_none, "lists"_a, "most"_a,
          nb::sig("def ascend_union(lists: list[numpy.typing.NDArray], most: int) -> numpy.typing.NDArray | None"),
          "Return the distinct ids of lists (uint64), rising; None where rings (upper halves) together span more numbers "
          "than `most`.");
    m.def("ascend_latest_before", &latest, "pred"_a.noconvert(), "succ"_a.noconvert(), "value"_a.noconvert(),
          "Return the largest value (of tasks, none below 0) of those that each task waits for, 0 without any.");
    m.def("ascend_places", &places, "ids"_a.noconvert(), "shift"_a.noconvert(), "table"_a.noconvert(),
          "Return what a table (int32) says of ids (uint64): its entries are at the number of an id, the lower half, plus "
          "the shift of its ring, the upper half.");
    m.def("ascend_task_names", &task_names, "ids"_a.noconvert(), nb::sig("def ascend_task_names(ids: numpy.typing.NDArray) -> list[str]"),
          "Return the names of tasks: t5 in ring 0, else r2t5.");
    m.def("ascend_encoded_names", &names_as_bytes, "ids"_a.noconvert(),
          nb::sig("def ascend_encoded_names(ids: numpy.typing.NDArray) -> tuple[numpy.typing.NDArray, numpy.typing.NDArray]"),
          "Return the names of tasks as UTF-8 end to end, uint8, and where each begins, int64 [n + 1].");
    m.def("ascend_hints", &hints, "texts"_a, "out_first"_a.noconvert(), "out_item"_a.noconvert(), "in_first"_a.noconvert(),
          "in_item"_a.noconvert(), nb::sig("def ascend_hints(texts: list[str], out_first: numpy.typing.NDArray, out_item: numpy.typing.NDArray, in_first: numpy.typing.NDArray, in_item: numpy.typing.NDArray) -> list[str]"),
          "Return for each task the arguments of its execution that list consumers and producers, by their texts: those "
          "of task i are item[first[i]:first[i + 1]].");
    m.def("ascend_cycles", &cycles, "pred"_a.noconvert(), "succ"_a.noconvert(), "found"_a.noconvert(),
          "Mark the tasks on cycles, and on ways from one cycle to another.");
}
