// The scanner of trace events.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstdlib>
#include <utility>

#include "bind/arrays.hpp"
#include "bind/module.hpp"
#include "core/wire/trace_events/numbers.hpp"
#include "core/wire/trace_events/scanner.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace lanescope::trace_events;
using lanescope::Growing;
using lanescope::bind::Array;
using lanescope::bind::owner_of;
using lanescope::bind::to_numpy;

namespace {

using Key = std::tuple<nb::bytes, uint32_t>;

std::vector<ValueKind> kinds_of(const std::vector<std::string>& names) {
    static const char* const known[] = {"integer", "number", "text", "triple", "boolean"};
    std::vector<ValueKind> kinds;
    for (const std::string& name : names) {
        size_t i = 0;
        while (i < std::size(known) && name != known[i]) ++i;
        if (i == std::size(known)) throw nb::value_error("unknown kind of value");
        kinds.push_back(static_cast<ValueKind>(i));
    }
    return kinds;
}

std::vector<Wanted> wanted_of(const std::vector<Key>& keys, size_t columns) {
    std::vector<Wanted> wanted;
    for (const auto& [key, column] : keys) {
        if (column >= columns) throw nb::value_error("no such column");
        wanted.push_back({std::string(key.c_str(), key.size()), column});
    }
    return wanted;
}

nb::list texts_of(const Interner& texts) {
    nb::list found;
    for (size_t i = 0; i < texts.size(); ++i) found.append(nb::bytes(texts[i].data(), texts[i].size()));
    return found;
}

template <class T>
auto out(Growing<T>& values) {
    return to_numpy(values);
}

nb::tuple ids_of(Ids& ids) { return nb::make_tuple(out(ids.event), out(ids.value), out(ids.kind)); }

nb::dict events_of(Scanner& scanner) {
    Events& events = scanner.events;
    nb::dict found;
    found["begin"] = out(events.begin);
    found["size"] = out(events.size);
    found["flags"] = out(events.flags);
    found["ts"] = out(events.ts);
    found["dur"] = out(events.dur);
    found["place"] = out(events.place);
    found["name"] = out(events.name);
    found["category"] = out(events.category);
    found["args_begin"] = out(events.args_begin);
    found["args_size"] = out(events.args_size);
    found["by_phase"] = to_numpy(std::vector<int64_t>(events.by_phase.begin(), events.by_phase.end()));
    found["ids"] = ids_of(scanner.ids);
    found["bind_ids"] = ids_of(scanner.bind_ids);
    found["series"] = nb::make_tuple(out(scanner.series.event), out(scanner.series.key), out(scanner.series.value));
    nb::list values;
    for (Values& column : scanner.values) {
        const size_t rows = column.event.size();
        nb::object value;
        if (column.kind == ValueKind::number) {
            // Bits of doubles: the same memory, seen as what it is.
            const auto [memory, size] = column.value.release();
            auto* const data = static_cast<double*>(memory.data);
            value = nb::cast(nb::ndarray<nb::numpy, double, nb::ndim<1>>(data, {size}, owner_of(memory)));
        } else if (column.kind == ValueKind::triple) {
            const auto [memory, size] = column.value.release();
            auto* const data = static_cast<int64_t*>(memory.data);
            value = nb::cast(nb::ndarray<nb::numpy, int64_t, nb::ndim<2>>(data, {rows, 3}, owner_of(memory)));
        } else {
            value = nb::cast(out(column.value));
        }
        values.append(nb::make_tuple(out(column.event), value, out(column.odd)));
    }
    found["values"] = values;
    scanner.begin_columns();
    return found;
}

// Of each place its process and its thread: code of a text (-1: none), and the number that it is, if it is one.
nb::list places_of(const Scanner& scanner) {
    const auto part = [&](int32_t code) -> nb::object {
        if (code < 0) return nb::make_tuple(-1, nb::none());
        int64_t number = 0;
        const bool is_number = code % 2 == 0 && integer(scanner.texts[static_cast<size_t>(code / 2)], &number);
        return nb::make_tuple(code / 2, is_number ? nb::cast(number) : nb::none());
    };
    nb::list found;
    for (const Place& place : scanner.places) found.append(nb::make_tuple(part(place.process), part(place.thread)));
    return found;
}

nb::dict facts_of(const Scanner& scanner) {
    static const char* const endings[] = {"open", "whole", "unterminated", "foreign"};
    static const char* const losses[] = {"broken", "outside", "element", "cut", "trailing"};
    nb::dict found;
    nb::list members, lost;
    for (const Member& member : scanner.members) {
        members.append(nb::make_tuple(member.key_begin, member.key_end, member.begin, member.end));
    }
    for (const Run& run : scanner.lost) {
        lost.append(nb::make_tuple(run.begin, run.end, losses[static_cast<size_t>(run.loss)], run.is_in_list));
    }
    found["members"] = members;
    found["lost"] = lost;
    found["size"] = scanner.size;
    found["decoded"] = scanner.decoded;
    found["extra_commas"] = scanner.extra_commas;
    found["missing_commas"] = scanner.missing_commas;
    found["missing_member_commas"] = scanner.missing_member_commas;
    found["lists"] = scanner.lists;
    found["has_trailing_comma"] = scanner.has_trailing_comma;
    found["is_bare"] = scanner.is_bare;
    found["has_list"] = scanner.has_list;
    found["ending"] = endings[static_cast<size_t>(scanner.ending)];
    found["odd_series"] = scanner.series.odd;
    return found;
}

nb::object nanoseconds_of(const std::string& text) {
    const Nanoseconds found = nanoseconds(text);
    if (found.exactness == Exactness::unusable) return nb::none();
    return nb::make_tuple(found.value, found.exactness == Exactness::rounded);
}

}  // namespace

void lanescope::bind::trace_events(nb::module_& m) {
    nb::class_<Scanner>(m, "TraceEventScanner", "A scanner of trace events in JSON; the text comes in pieces of any size.")
        .def(
            "__init__",
            [](Scanner* self, const std::vector<std::string>& kinds, const std::vector<Key>& args) {
                new (self) Scanner(kinds_of(kinds), wanted_of(args, kinds.size()));
            },
            "kinds"_a, "args"_a,
            "`kinds` of columns: integer, number, text, triple, boolean. Keys of arguments, as they stand in the file, with "
            "the column of each.")
        .def("expect", &Scanner::expect, "bytes"_a, "Make room for the rows of so many bytes until they are taken.")
        .def(
            "feed",
            [](Scanner& self, Array<const uint8_t> bytes) {
                nb::gil_scoped_release release;
                self.feed({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
            },
            "bytes"_a.noconvert())
        .def("finish",
             [](Scanner& self) {
                 nb::gil_scoped_release release;
                 self.finish();
             })
        .def("take", &events_of, "Columns of the events, of which the scanner has none afterwards.")
        .def_prop_ro("places", &places_of, "Process and thread of each place: code of a text, -1: none; and the number if it is one.")
        .def_prop_ro("names", [](const Scanner& self) { return texts_of(self.names); })
        .def_prop_ro("categories", [](const Scanner& self) { return texts_of(self.categories); })
        .def_prop_ro("texts", [](const Scanner& self) { return texts_of(self.texts); })
        .def_prop_ro("facts", &facts_of);
    m.def("trace_event_nanoseconds", &nanoseconds_of, "text"_a,
          nb::sig("def trace_event_nanoseconds(text: str) -> tuple[int, bool] | None"),
          "Return decimal microseconds in nanoseconds, and whether they were rounded; None for anything else.");
}
