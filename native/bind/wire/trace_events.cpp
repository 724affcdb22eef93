// The scanner of trace events.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <bit>
#include <utility>

#include "bind/arrays.hpp"
#include "bind/module.hpp"
#include "core/wire/trace_events/scanner.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace lanescope::trace_events;
using lanescope::bind::Array;
using lanescope::bind::to_numpy;
using lanescope::bind::to_table;

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

nb::dict events_of(Scanner& scanner) {
    Events& events = scanner.events;
    nb::dict found;
    found["begin"] = to_numpy(std::move(events.begin));
    found["size"] = to_numpy(std::move(events.size));
    found["phase"] = to_numpy(std::move(events.phase));
    found["bits"] = to_numpy(std::move(events.bits));
    found["name"] = to_numpy(std::move(events.name));
    found["category"] = to_numpy(std::move(events.category));
    found["ts"] = to_numpy(std::move(events.ts));
    found["dur"] = to_numpy(std::move(events.dur));
    found["place"] = to_numpy(std::move(events.place));
    found["id"] = to_numpy(std::move(events.id));
    found["args_begin"] = to_numpy(std::move(events.args_begin));
    found["args_size"] = to_numpy(std::move(events.args_size));
    return found;
}

nb::list values_of(Scanner& scanner) {
    nb::list found;
    for (Values& values : scanner.values) {
        nb::object value;
        if (values.kind == ValueKind::number) {
            std::vector<double> real(values.value.size());
            for (size_t i = 0; i < real.size(); ++i) real[i] = std::bit_cast<double>(values.value[i]);
            value = nb::cast(to_numpy(std::move(real)));
        } else if (values.kind == ValueKind::triple) {
            value = nb::cast(to_table(std::move(values.value), 3));
        } else {
            value = nb::cast(to_numpy(std::move(values.value)));
        }
        found.append(nb::make_tuple(to_numpy(std::move(values.event)), value, to_numpy(std::move(values.odd))));
    }
    return found;
}

nb::list places_of(const Scanner& scanner) {
    nb::list found;
    for (const Place& place : scanner.places) {
        found.append(nb::make_tuple(static_cast<int>(place.process_kind), place.process, static_cast<int>(place.thread_kind),
                                    place.thread));
    }
    return found;
}

nb::dict facts_of(const Scanner& scanner) {
    static const char* const endings[] = {"open", "whole", "unterminated", "foreign"};
    nb::dict found;
    nb::list members, lost;
    for (const Member& member : scanner.members) {
        members.append(nb::make_tuple(member.key_begin, member.key_end, member.begin, member.end));
    }
    for (size_t i = 0; i < scanner.lost.size(); ++i) {
        lost.append(nb::make_tuple(scanner.lost[i].begin, scanner.lost[i].end, scanner.lost_is_event[i] != 0));
    }
    found["members"] = members;
    found["lost"] = lost;
    found["size"] = scanner.size;
    found["decoded"] = scanner.decoded;
    found["extra_commas"] = scanner.extra_commas;
    found["missing_commas"] = scanner.missing_commas;
    found["is_bare"] = scanner.is_bare;
    found["has_list"] = scanner.has_list;
    found["ending"] = endings[static_cast<size_t>(scanner.ending)];
    found["odd_series"] = scanner.series.odd;
    return found;
}

}  // namespace

void lanescope::bind::trace_events(nb::module_& m) {
    nb::class_<Scanner>(m, "TraceEventScanner", "A scanner of trace events in JSON; the text comes in pieces of any size.")
        .def(
            "__init__",
            [](Scanner* self, const std::vector<std::string>& kinds, const std::vector<Key>& members,
               const std::vector<Key>& args) {
                new (self) Scanner(kinds_of(kinds), wanted_of(members, kinds.size()), wanted_of(args, kinds.size()));
            },
            "kinds"_a, "members"_a, "args"_a,
            "`kinds` of columns: integer, number, text, triple, boolean. Keys of events and of their arguments, as they "
            "stand in the file, with the column of each.")
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
        .def("take_events", &events_of, "Columns of the events, of which the scanner has none afterwards.")
        .def("take_values", &values_of, "Of each column of keys: events, values, and events whose value has another type.")
        .def(
            "take_series",
            [](Scanner& self) {
                return nb::make_tuple(to_numpy(std::move(self.series.event)), to_numpy(std::move(self.series.key)),
                                      to_numpy(std::move(self.series.value)));
            },
            "Values of counters: event, code of the text that names the series, value.")
        .def_prop_ro("places", &places_of, "Kind and value of process and thread; kinds: 0 none, 1 integer, 2 code of a text.")
        .def_prop_ro("names", [](const Scanner& self) { return texts_of(self.names); })
        .def_prop_ro("categories", [](const Scanner& self) { return texts_of(self.categories); })
        .def_prop_ro("texts", [](const Scanner& self) { return texts_of(self.texts); })
        .def_prop_ro("facts", &facts_of);
}
