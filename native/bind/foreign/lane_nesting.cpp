// How the rows of lanes nest.
#include "core/foreign/lane_nesting.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/map.h>

#include "bind/arrays.hpp"
#include "bind/module.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using lanescope::bind::Array;
using lanescope::bind::span_of;
using lanescope::bind::to_numpy;
using lanescope::foreign::LaneNesting;

void lanescope::bind::foreign_lane_nesting(nb::module_& m) {
    nb::class_<LaneNesting>(m, "LaneNesting", "Rows of lanes part by part, and whether those of each lane nest.")
        .def(nb::init<>())
        .def(
            "add",
            [](LaneNesting& self, const Array<const int32_t>& lane, const Array<const int64_t>& begin,
               const Array<const int64_t>& dur) {
                if (begin.size() != lane.size() || dur.size() != lane.size()) {
                    throw nb::value_error("columns of different lengths");
                }
                nb::gil_scoped_release release;
                self.add(span_of(lane), span_of(begin), span_of(dur));
            },
            "lane"_a.noconvert(), "begin"_a.noconvert(), "dur"_a.noconvert(),
            "Add rows; those of lanes below 0 are left out, those without a length only tell that there is the lane.")
        .def(
            "result",
            [](LaneNesting& self, const std::map<int32_t, int32_t>& renamed, int32_t stride, int32_t disjoint) {
                if (stride <= 0) throw nb::value_error("no such stride");
                LaneNesting::Found found;
                {
                    nb::gil_scoped_release release;
                    found = self.result(renamed, [&](int32_t lane) { return lane % stride == disjoint; });
                }
                return nb::make_tuple(to_numpy(std::move(found.lane)), to_numpy(std::move(found.is_clash)));
            },
            "renamed"_a, "stride"_a, "disjoint"_a,
            "Return the lanes, ascending, and which of them have rows that cross; of lanes that are `disjoint` modulo "
            "`stride`, that share time. `renamed` lanes belong to others. The rows are gone afterwards.");
}
