// Profiles of traces for plausibility rules: numpy arrays in, numpy arrays out.
#include "core/analysis/check/profile.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <cstring>
#include <initializer_list>

#include "arrays.hpp"
#include "module.hpp"

namespace nb = nanobind;
using namespace nb::literals;
namespace check = lanescope::check;

using lanescope::bind::Array;
using lanescope::bind::span_of;

namespace {

using Table = nb::ndarray<nb::numpy, int64_t, nb::ndim<2>>;

// Rows of integers, filled one by one.
class Lines {
  public:
    Lines(size_t rows, size_t columns) : columns_(columns) { values_.reserve(rows * columns); }
    void add(std::initializer_list<int64_t> line) { values_.insert(values_.end(), line); }
    Table table() {
        return lanescope::bind::to_table(std::move(values_), columns_);
    }

  private:
    size_t columns_;
    std::vector<int64_t> values_;
};

Table lane_table(const check::Profile& self) {
    Lines found(self.lanes(), 16 + 2 * check::kGaps);
    for (size_t i = 0; i < self.lanes(); ++i) {
        const check::LaneProfile& p = self.lane(i);
        int64_t hash;
        std::memcpy(&hash, &p.hash, sizeof hash);
        found.add({p.count, p.closed, p.empty, p.start, p.end, p.busiest, hash, p.instants, p.first_instant,
                   p.last_instant, p.is_ordered ? 1 : 0, p.starts, p.distinct, p.run, p.run_at, 0});
        for (const check::Gap& gap : p.gaps) found.add({gap.start, gap.end});
    }
    return found.table();
}

check::ProfileRows rows_of(const Array<const int64_t>& track, const Array<const int64_t>& start,
                           const Array<const int64_t>& length, const Array<const uint8_t>& length_known,
                           const Array<const int64_t>& last_seen, const Array<const uint8_t>& last_seen_known,
                           const Array<const int32_t>& name, const Array<const int64_t>& row) {
    const size_t n = track.size();
    const auto fits = [n](size_t size) { return size == 0 || size == n; };
    if (start.size() != n || name.size() != n || !fits(length.size()) || !fits(length_known.size()) ||
        !fits(last_seen.size()) || !fits(last_seen_known.size()) || !fits(row.size())) {
        throw nb::value_error("columns of different lengths");
    }
    return {span_of(track),
            span_of(start),
            {span_of(length), span_of(length_known)},
            {span_of(last_seen), span_of(last_seen_known)},
            span_of(name),
            span_of(row)};
}

}  // namespace

void lanescope::bind::profile(nb::module_& m) {
    using Ints = Array<const int64_t>;
    using Bytes = Array<const uint8_t>;
    using Codes = Array<const int32_t>;
    nb::class_<::check::Profile>(m, "TraceProfile", "Sums over the slices and instants of each lane, batch by batch.")
        .def(nb::init<>())
        .def(
            "add_lanes", [](::check::Profile& self, const Codes& shapes) { self.add_lanes(span_of(shapes)); },
            "shapes"_a.noconvert(), "Make all tracks so far known, with the number of the shape of each.")
        .def(
            "slices",
            [](::check::Profile& self, const Ints& track, const Ints& start, const Ints& length,
               const Bytes& length_known, const Ints& last_seen, const Bytes& last_seen_known, const Codes& name,
               const Ints& row) {
                const auto rows = rows_of(track, start, length, length_known, last_seen, last_seen_known, name, row);
                nb::gil_scoped_release release;
                self.slices(rows);
            },
            "track"_a.noconvert(), "start"_a.noconvert(), "length"_a.noconvert(), "length_known"_a.noconvert(),
            "last_seen"_a.noconvert(), "last_seen_known"_a.noconvert(), "name"_a.noconvert(), "row"_a.noconvert(),
            "Add slices. Empty values: none is known; an empty mask: all are; empty rows: numbered on.")
        .def(
            "ordered",
            [](::check::Profile& self, const Ints& track, const Ints& start, const Ints& length,
               const Bytes& length_known, const Ints& last_seen, const Bytes& last_seen_known, const Codes& name,
               const Ints& row, const Ints& order, const Bytes& wanted) {
                const auto rows = rows_of(track, start, length, length_known, last_seen, last_seen_known, name, row);
                const auto is_row = [&](int64_t i) { return static_cast<uint64_t>(i) < track.size(); };
                if (!std::all_of(order.data(), order.data() + order.size(), is_row)) throw nb::value_error("no such row");
                nb::gil_scoped_release release;
                self.ordered(rows, span_of(order), span_of(wanted));
            },
            "track"_a.noconvert(), "start"_a.noconvert(), "length"_a.noconvert(), "length_known"_a.noconvert(),
            "last_seen"_a.noconvert(), "last_seen_known"_a.noconvert(), "name"_a.noconvert(), "row"_a.noconvert(),
            "order"_a.noconvert(), "wanted"_a.noconvert(),
            "Add what needs order of the slices on wanted tracks, in an order that sorts them by start. Empty rows: as "
            "they stand.")
        .def(
            "instants",
            [](::check::Profile& self, const Ints& track, const Ints& time) {
                if (track.size() != time.size()) throw nb::value_error("columns of different lengths");
                nb::gil_scoped_release release;
                self.instants(span_of(track), span_of(time));
            },
            "track"_a.noconvert(), "time"_a.noconvert(), "Add instants.")
        .def("lanes", &lane_table,
             "Return a row per track: count, closed, empty, start, end, sum of lengths, hash, instants, first and last "
             "of them, is_ordered, distinct starts, distinct timestamps, longest run and its time, 0, and start and "
             "end of the largest inner gaps.")
        .def(
            "repeated",
            [](const ::check::Profile& self) {
                Lines found(self.repeated().size(), 3);
                for (const auto& one : self.repeated()) found.add({one.row, one.track, one.length});
                return found.table();
            },
            "Return (row, track, length) of slices that repeat an earlier one.")
        .def(
            "pairs",
            [](const ::check::Profile& self) {
                Lines found(self.pairs().size(), 6);
                for (const auto& one : self.pairs()) {
                    found.add({one.track, one.name, one.count, one.closed, one.total,
                               static_cast<int64_t>(one.sample.size())});
                }
                return found.table();
            },
            "Return (track, name, count, closed, sum of lengths, lengths sampled) of each lane and name.")
        .def(
            "sample",
            [](const ::check::Profile& self) {
                Lines found(self.pairs().size(), 1);
                for (const auto& one : self.pairs()) {
                    for (const int64_t length : one.sample) found.add({length});
                }
                return found.table();
            },
            "Return the sampled lengths, in the order of the pairs, as a table of one column.")
        .def(
            "longest",
            [](const ::check::Profile& self) {
                Lines found(self.groups().size() * ::check::kLongest, 5);
                for (const auto& group : self.groups()) {
                    auto sorted = group.longest;
                    std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
                        return a.length != b.length ? a.length > b.length : a.row < b.row;
                    });
                    for (const auto& one : sorted) found.add({group.name, group.shape, one.length, one.row, one.track});
                }
                return found.table();
            },
            "Return (name, shape, length, row, track) of the longest slices of each name and shape, the longest first.")
        .def(
            "outermost",
            [](const ::check::Profile& self) {
                Lines found(2 * ::check::kOutermost, 3);
                for (const auto& one : self.first_starts()) found.add({0, one.time, one.row});
                for (const auto& one : self.last_ends()) found.add({1, ~one.time, one.row});
                return found.table();
            },
            "Return (0, start, row) of the slices that start first, and (1, end, row) of those that end last.")
        .def_prop_ro("step", &::check::Profile::step, "Greatest common divisor of all differences of timestamps.")
        .def_prop_ro("has_all_pairs", &::check::Profile::has_all_pairs, "Whether sums by lane and name are complete.");
}
