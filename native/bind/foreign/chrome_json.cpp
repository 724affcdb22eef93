// The reader of trace events in Chrome's JSON.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <algorithm>

#include "bind/arrays.hpp"
#include "bind/module.hpp"
#include "core/foreign/chrome_json.hpp"
#include "core/foreign/decimal_time.hpp"
#include "core/foreign/event_pairs.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace lanescope::foreign;
using lanescope::bind::Array;
using lanescope::bind::span_of;
using lanescope::bind::to_numpy;

namespace {

nb::bytes bytes_of(std::string_view text) { return nb::bytes(text.data(), text.size()); }

size_t feed(EventReader& reader, Array<const uint8_t> buffer, size_t size, bool is_last) {
    if (size + EventReader::kPadding > buffer.size()) throw nb::value_error("no padding behind the window");
    const uint8_t* end = buffer.data() + size;
    if (std::any_of(end, end + EventReader::kPadding, [](uint8_t c) { return c != 0; })) {
        throw nb::value_error("the padding is not of zeros");
    }
    nb::gil_scoped_release release;
    return reader.feed({reinterpret_cast<const char*>(buffer.data()), size}, is_last);
}

nb::dict take(EventReader& reader) {
    Events events = reader.take();
    nb::dict out;
    out["offset"] = to_numpy(std::move(events.offset));
    out["size"] = to_numpy(std::move(events.size));
    out["flags"] = to_numpy(std::move(events.flags));
    out["ts"] = to_numpy(std::move(events.ts));
    out["dur"] = to_numpy(std::move(events.dur));
    out["lane"] = to_numpy(std::move(events.lane));
    out["name"] = to_numpy(std::move(events.name));
    out["category"] = to_numpy(std::move(events.category));
    out["args_begin"] = to_numpy(std::move(events.args_begin));
    out["args_size"] = to_numpy(std::move(events.args_size));
    out["id_row"] = to_numpy(std::move(events.ids.row));
    out["id_value"] = to_numpy(std::move(events.ids.value));
    out["id_kind"] = to_numpy(std::move(events.ids.kind));
    out["bind_row"] = to_numpy(std::move(events.bind_ids.row));
    out["bind_value"] = to_numpy(std::move(events.bind_ids.value));
    out["bind_kind"] = to_numpy(std::move(events.bind_ids.kind));
    out["series_row"] = to_numpy(std::move(events.series_row));
    out["series_name"] = to_numpy(std::move(events.series_name));
    out["series_value"] = to_numpy(std::move(events.series_value));
    return out;
}

nb::dict tally(const EventReader& reader) {
    const FileTally& found = reader.tally();
    nb::dict out;
    out["lost_bytes"] = found.lost_bytes;
    out["first_broken"] = found.first_broken;
    out["first_not_event"] = found.first_not_event;
    out["first_cut"] = found.first_cut;
    out["first_trailing"] = found.first_trailing;
    out["broken"] = found.broken;
    out["not_events"] = found.not_events;
    out["missing_commas"] = found.missing_commas;
    out["is_cut"] = found.is_cut;
    out["is_unterminated"] = found.is_unterminated;
    out["is_trailing_comma"] = found.is_trailing_comma;
    out["has_trailing"] = found.has_trailing;
    out["has_events"] = found.has_events;
    return out;
}

void match(Array<const int32_t> lane, Array<const int32_t> name, Array<const uint8_t> is_end, size_t lanes,
           Array<int64_t> partner, Array<uint8_t> crosses) {
    for (const size_t size : {name.size(), is_end.size(), partner.size(), crosses.size()}) {
        if (size != lane.size()) throw nb::value_error("columns of different lengths");
    }
    bool is_sound = false;
    {
        nb::gil_scoped_release release;
        is_sound = match_stacks(span_of(lane), span_of(name), span_of(is_end), lanes, span_of(partner), span_of(crosses));
    }
    if (!is_sound) throw nb::value_error("no such lane");
}

void around(Array<const int64_t> lane, Array<const int64_t> begin, Array<const int64_t> end, Array<const int64_t> point_lane,
            Array<const int64_t> point, Array<int64_t> inside, Array<int64_t> next) {
    if (begin.size() != lane.size() || end.size() != lane.size() || point.size() != point_lane.size() ||
        inside.size() != point.size() || next.size() != point.size()) {
        throw nb::value_error("columns of different lengths");
    }
    nb::gil_scoped_release release;
    slices_around(span_of(lane), span_of(begin), span_of(end), span_of(point_lane), span_of(point), span_of(inside), span_of(next));
}

nb::object nanoseconds(const std::string& text) {
    int64_t value = 0;
    bool is_rounded = false;
    if (!nanoseconds_of(text, &value, &is_rounded)) return nb::none();
    return nb::make_tuple(value, is_rounded);
}

}  // namespace

void lanescope::bind::foreign_chrome(nb::module_& m) {
    nb::class_<EventReader>(m, "TraceEventReader", "Reads trace events in Chrome's JSON, window by window.")
        .def(nb::init<>())
        .def("feed", &feed, "buffer"_a.noconvert(), "size"_a, "is_last"_a,
             "Read the events of a window, uint8 with 64 zeros behind its size; return how many bytes are done with.")
        .def("take", &take, "Return the events since the last call, a column by name.")
        .def("tally", &tally, "Return what became of the bytes outside of events.")
        .def(
            "texts",
            [](const EventReader& self, size_t first) {
                nb::list out;
                for (size_t i = first; i < self.texts().size(); ++i) out.append(bytes_of(self.texts().text(i)));
                return out;
            },
            "first"_a = 0, "Return the texts behind the codes, escapes as they stand.")
        .def("lanes",
             [](const EventReader& self) {
                 nb::list out;
                 for (const auto& [process, thread] : self.lanes()) out.append(nb::make_tuple(process, thread));
                 return out;
             },
             "Return the codes of process and thread of each lane, -1: not given.")
        .def("entries",
             [](const EventReader& self) {
                 nb::list out;
                 for (const Entry& entry : self.entries()) out.append(nb::make_tuple(bytes_of(entry.key), entry.begin, entry.end));
                 return out;
             },
             "Return key, begin and end of each other value of the outermost object.");
    m.def("trace_event_pairs", &match, "lane"_a.noconvert(), "name"_a.noconvert(), "is_end"_a.noconvert(), "lanes"_a,
          "partner"_a.noconvert(), "crosses"_a.noconvert(),
          "Pair begins and ends by a stack for each lane; an end closes the innermost open begin of its name (-1: of any).");
    m.def("slices_around", &around, "lane"_a.noconvert(), "begin"_a.noconvert(), "end"_a.noconvert(), "point_lane"_a.noconvert(),
          "point"_a.noconvert(), "inside"_a.noconvert(), "next"_a.noconvert(),
          "Find the innermost slice that is open at each point, and the first that begins there or later; -1: none.");
    m.def("trace_event_nanoseconds", &nanoseconds, "text"_a,
          nb::sig("def trace_event_nanoseconds(text: str) -> tuple[int, bool] | None"),
          "Return decimal microseconds in nanoseconds, and whether they were rounded; None for anything else.");
}
