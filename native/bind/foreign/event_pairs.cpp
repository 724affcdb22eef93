// Begins and ends of trace events, and the slices around points of time.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "bind/arrays.hpp"
#include "bind/module.hpp"
#include "core/foreign/event_pairs.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace lanescope::foreign;
using lanescope::bind::Array;
using lanescope::bind::span_of;

namespace {

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

}  // namespace

void lanescope::bind::foreign_event_pairs(nb::module_& m) {
    m.def("trace_event_pairs", &match, "lane"_a.noconvert(), "name"_a.noconvert(), "is_end"_a.noconvert(), "lanes"_a,
          "partner"_a.noconvert(), "crosses"_a.noconvert(),
          "Pair begins and ends by a stack for each lane; an end closes the innermost open begin of its name (-1: of any).");
    m.def("slices_around", &around, "lane"_a.noconvert(), "begin"_a.noconvert(), "end"_a.noconvert(), "point_lane"_a.noconvert(),
          "point"_a.noconvert(), "inside"_a.noconvert(), "next"_a.noconvert(),
          "Find the innermost slice that is open at each point, and the first that begins there or later; -1: none.");
}
