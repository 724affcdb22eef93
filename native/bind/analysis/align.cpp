// Straight clocks: numpy arrays in and out.
#include "core/analysis/align/lines.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "bind/arrays.hpp"
#include "bind/module.hpp"

namespace nb = nanobind;
using namespace nb::literals;
namespace align = lanescope::align;

using lanescope::bind::Array;
using lanescope::bind::span_of;
using lanescope::bind::to_numpy;

namespace {

align::Limits limits_of(const Array<const int64_t>& at, const Array<const int64_t>& most) {
    if (at.size() != most.size()) throw nb::value_error("columns of different lengths");
    constexpr int64_t far = int64_t{1} << 60;
    for (size_t i = 0; i < at.size(); ++i) {
        if (at(i) < -far || at(i) > far || most(i) < -far || most(i) > far) throw nb::value_error("a limit is beyond 2**60");
        if (i && at(i) <= at(i - 1)) throw nb::value_error("moments do not rise");
    }
    return {span_of(at), span_of(most)};
}

}  // namespace

void lanescope::bind::align(nb::module_& m) {
    m.def(
        "align_lower_hull",
        [](const Array<const int64_t>& at, const Array<const int64_t>& most) {
            const ::align::Limits limits = limits_of(at, most);
            std::vector<int64_t> corners;
            {
                nb::gil_scoped_release release;
                corners = ::align::lower_hull(limits);
            }
            return to_numpy(std::move(corners));
        },
        "at"_a.noconvert(), "most"_a.noconvert(), "Return the corners of the lower hull of points by rising moment.");
    m.def(
        "align_segments",
        [](const Array<const int64_t>& above_at, const Array<const int64_t>& above_most, const Array<const int64_t>& below_at,
           const Array<const int64_t>& below_most, int64_t numerator, int64_t denominator) {
            const ::align::Limits above = limits_of(above_at, above_most), below = limits_of(below_at, below_most);
            if (numerator < 0 || denominator < 1 || numerator >> 62 || denominator >> 62) {
                throw nb::value_error("a rate of two numbers from 0 to 2**62");
            }
            ::align::Segments found;
            {
                nb::gil_scoped_release release;
                found = ::align::straight_segments(above, below, {numerator, denominator});
            }
            return nb::make_tuple(to_numpy(std::move(found.begin)), to_numpy(std::move(found.end)));
        },
        "above_at"_a.noconvert(), "above_most"_a.noconvert(), "below_at"_a.noconvert(), "below_most"_a.noconvert(),
        "numerator"_a, "denominator"_a,
        "Cut time where no line of a slope of at most the rate is under all upper limits and over all lower ones, those "
        "with their sign turned; return the first and the last moment of each segment.");
}
