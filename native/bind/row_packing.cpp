// Drawing rows: numpy arrays in, numpy arrays out.
#include "core/trace/row_packing/pack.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>

#include <optional>
#include <string>
#include <utility>

#include "arrays.hpp"
#include "module.hpp"

namespace nb = nanobind;
using namespace nb::literals;
namespace layout = lanescope::layout;

using lanescope::bind::Array;
using lanescope::bind::span_of;
using lanescope::bind::to_numpy;

namespace {

layout::Intervals intervals(const Array<const int64_t>& track, const Array<const int64_t>& begin, const Array<const int64_t>& length,
                            const Array<const uint8_t>& known) {
    const size_t n = track.size();
    if (begin.size() != n || length.size() != n || (known.size() != 0 && known.size() != n)) {
        throw nb::value_error("columns of different lengths");
    }
    return {span_of(track), span_of(begin), span_of(length), span_of(known)};
}

using NumpyInt64 = nb::ndarray<nb::numpy, int64_t, nb::ndim<1>>;

NumpyInt64 place(const Array<const int64_t>& track, const Array<const int64_t>& begin, const Array<const int64_t>& length,
                 const Array<const uint8_t>& known, const Array<const uint8_t>& nested, const Array<int64_t>& order,
                 const Array<int32_t>& row, const Array<int64_t>& begins, const Array<int64_t>& ends,
                 const Array<int32_t>& rows) {
    const layout::Intervals items = intervals(track, begin, length, known);
    const size_t n = track.size();
    if (order.size() != n || row.size() != n || begins.size() != n || ends.size() != n || rows.size() != nested.size()) {
        throw nb::value_error("outputs of wrong length");
    }
    std::vector<int64_t> row_start;
    layout::PackResult outcome;
    {
        nb::gil_scoped_release release;
        outcome = layout::place(items, span_of(nested),
                                {span_of(order), span_of(row), span_of(begins), span_of(ends), span_of(rows)}, row_start);
    }
    if (outcome.status != layout::Status::ok) {
        const std::string what = outcome.status == layout::Status::bad_track
                                     ? "lies on no known track"
                                     : "ends before it begins, or after the last time that there is";
        throw nb::value_error(("interval " + std::to_string(outcome.where) + " " + what).c_str());
    }
    return to_numpy(std::move(row_start));
}

std::optional<std::pair<NumpyInt64, NumpyInt64>> lane_after_lane(
    const Array<const int64_t>& track, const Array<const int64_t>& begin, const Array<const int64_t>& length,
    const Array<const uint8_t>& known, const Array<const uint8_t>& nested, const Array<int32_t>& rows) {
    const layout::Intervals items = intervals(track, begin, length, known);
    if (rows.size() != nested.size()) throw nb::value_error("outputs of wrong length");
    std::vector<int64_t> order, row_start;
    bool is_so;
    {
        nb::gil_scoped_release release;
        is_so = layout::lane_after_lane(items, span_of(nested), span_of(rows), order, row_start);
    }
    if (!is_so) return std::nullopt;
    return std::pair(to_numpy(std::move(order)), to_numpy(std::move(row_start)));
}

void depths(const Array<const int64_t>& begins, const Array<const int64_t>& ends, const Array<const int64_t>& order,
            const Array<const int64_t>& row_start, const Array<int32_t>& depth) {
    const size_t n = order.size();
    if (begins.size() != n || ends.size() != n || depth.size() != n) throw nb::value_error("arrays of different lengths");
    for (const int64_t at : span_of(row_start)) {
        if (at < 0 || static_cast<size_t>(at) > n) throw nb::value_error("a row lies outside");
    }
    for (const int64_t index : span_of(order)) {
        if (static_cast<uint64_t>(index) >= n) throw nb::value_error("order is not a permutation");
    }
    nb::gil_scoped_release release;
    layout::depths(span_of(begins), span_of(ends), span_of(order), span_of(row_start), span_of(depth));
}

}  // namespace

void lanescope::bind::layout(nb::module_& m) {
    m.def("layout_place", place, "track"_a.noconvert(), "begin"_a.noconvert(), "length"_a.noconvert(),
          "known"_a.noconvert(), "nested"_a.noconvert(), "order"_a.noconvert(), "row"_a.noconvert(),
          "begins"_a.noconvert(), "ends"_a.noconvert(), "rows"_a.noconvert(),
          "Fill order, row (by interval), begins and ends (along order) and rows (by lane); return where each row begins "
          "in order, int64 [rows + 1].");
    m.def("layout_lane_after_lane", lane_after_lane, "track"_a.noconvert(), "begin"_a.noconvert(), "length"_a.noconvert(),
          "known"_a.noconvert(), "nested"_a.noconvert(), "rows"_a.noconvert(),
          "Fill rows (by lane); return order (empty: it counts up) and where each row begins in it, where the intervals come "
          "lane after lane and each lane needs but one row; else None.");
    m.def("layout_depths", depths, "begins"_a.noconvert(), "ends"_a.noconvert(), "order"_a.noconvert(),
          "row_start"_a.noconvert(), "depth"_a.noconvert(),
          "Fill depth, the number of intervals that are open around each on its row.");
}
