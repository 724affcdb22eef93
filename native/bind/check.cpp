// Sweeps for checks: numpy arrays in, numpy arrays out.
#include <nanobind/nanobind.h>

#include "arrays.hpp"
#include "core/analysis/check/sweep.hpp"
#include "module.hpp"

namespace nb = nanobind;
using namespace nb::literals;
namespace check = lanescope::check;

using lanescope::bind::Array;
using lanescope::bind::span_of;
using lanescope::bind::to_numpy;

namespace {

check::Nullable nullable(const Array<const int64_t>& values, const Array<const uint8_t>& known, size_t n) {
    if ((values.size() != 0 && values.size() != n) || (known.size() != 0 && known.size() != n)) {
        throw nb::value_error("columns of different lengths");
    }
    return {span_of(values), span_of(known)};
}

}  // namespace

void lanescope::bind::check(nb::module_& m) {
    using Ints = Array<const int64_t>;
    using Bytes = Array<const uint8_t>;
    nb::class_<::check::Sweep>(m, "CheckSweep", "Goes over the slices or instants of a trace, batch by batch.")
        .def(nb::init<bool, uint32_t>(), "points"_a, "judged"_a)
        .def(
            "add_lanes",
            [](::check::Sweep& self, const Bytes& disciplines) {
                std::vector<::check::Nesting> all(disciplines.size());
                for (size_t i = 0; i < all.size(); ++i) {
                    if (disciplines.data()[i] > 2) throw nb::value_error("no such nesting");
                    all[i] = static_cast<::check::Nesting>(disciplines.data()[i]);
                }
                self.add_lanes(all);
            },
            "disciplines"_a.noconvert(), "Say what all tracks so far promise: 0 nothing, 1 disjoint, 2 nested.")
        .def(
            "prepare",
            [](::check::Sweep& self, const Ints& longest, const Bytes& whole) {
                if (longest.size() != self.lanes() || whole.size() != self.lanes()) {
                    throw nb::value_error("columns of different lengths");
                }
                self.prepare(span_of(longest), span_of(whole));
            },
            "longest"_a.noconvert(), "whole"_a.noconvert(),
            "Say, by track: the longest slice that need not be kept, and whether to leave its rows out.")
        .def(
            "add_gaps",
            [](::check::Sweep& self, const Ints& track, const Ints& end) {
                if (track.size() != end.size()) throw nb::value_error("columns of different lengths");
                self.add_gaps(span_of(track), span_of(end));
            },
            "track"_a.noconvert(), "end"_a.noconvert(), "Say where gaps end, before the rows that came with them.")
        .def(
            "sweep",
            [](::check::Sweep& self, const Ints& track, const Ints& begin, const Ints& length, const Bytes& length_known,
               const Ints& last_seen, const Bytes& last_seen_known, const Ints& ticks, const Bytes& ticks_known,
               const Ints& length_ticks, const Bytes& length_ticks_known, const Array<const uint32_t>& flags,
               const Array<uint8_t>& keep) {
                const size_t n = track.size();
                if (begin.size() != n || keep.size() != n || (flags.size() != 0 && flags.size() != n)) {
                    throw nb::value_error("columns of different lengths");
                }
                const ::check::Rows rows{span_of(track),
                                         span_of(begin),
                                         nullable(length, length_known, n),
                                         nullable(last_seen, last_seen_known, n),
                                         nullable(ticks, ticks_known, n),
                                         nullable(length_ticks, length_ticks_known, n),
                                         span_of(flags)};
                nb::gil_scoped_release release;
                return self.pass(rows, span_of(keep));
            },
            "track"_a.noconvert(), "begin"_a.noconvert(), "length"_a.noconvert(), "length_known"_a.noconvert(),
            "last_seen"_a.noconvert(), "last_seen_known"_a.noconvert(), "ticks"_a.noconvert(),
            "ticks_known"_a.noconvert(), "length_ticks"_a.noconvert(), "length_ticks_known"_a.noconvert(),
            "flags"_a.noconvert(), "keep"_a.noconvert(),
            "Set keep for the rows to look at, to 2 where they take no time that rows before them do not take, and "
            "return how many there are. Empty values: none is known; an empty mask: all are; empty flags: none is set.")
        .def(
            "earlier",
            [](const ::check::Sweep& self) {
                const auto rows = self.earlier();
                return to_numpy(std::vector<int64_t>{rows.begin(), rows.end()});
            },
            "Return the rows of earlier batches that the last one showed to be worth keeping.")
        .def(
            "open",
            [](const ::check::Sweep& self) {
                std::vector<int64_t> rows;
                self.open(rows);
                return to_numpy(std::move(rows));
            },
            "Return the rows that were not kept so far and that a row to come may clash with.")
        .def(
            "results",
            [](const ::check::Sweep& self, const Array<int64_t>& covered, const Array<int64_t>& longest,
               const Array<uint8_t>& late, const Array<uint8_t>& whole) {
                const size_t n = self.lanes();
                if (covered.size() != n || longest.size() != n || late.size() != n || whole.size() != n) {
                    throw nb::value_error("outputs of wrong length");
                }
                for (size_t lane = 0; lane < n; ++lane) {
                    const auto result = self.result(lane);
                    covered.data()[lane] = result.covered;
                    longest.data()[lane] = result.longest;
                    late.data()[lane] = result.is_late ? 1 : 0;
                    whole.data()[lane] = result.is_whole ? 1 : 0;
                }
            },
            "covered"_a.noconvert(), "longest"_a.noconvert(), "late"_a.noconvert(), "whole"_a.noconvert(),
            "Fill, by track: time covered, the longest slice not kept, whether a gap came too late, whether its rows "
            "must be looked at as a whole.")
        .def_prop_ro("lanes", &::check::Sweep::lanes, "Tracks so far.")
        .def_prop_ro("rows", &::check::Sweep::rows, "Rows so far.")
        .def_prop_ro("first", &::check::Sweep::first, "The first begin; beyond the last end when there is none.")
        .def_prop_ro("last", &::check::Sweep::last, "The last end.");
    m.def(
        "check_add_covered",
        [](const Ints& track, const Ints& begin, const Ints& length, const Bytes& length_known, const Ints& last_seen,
           const Bytes& last_seen_known, const Ints& excluded, const Bytes& wanted, const Array<int64_t>& reach,
           const Array<int64_t>& covered) {
            const size_t n = track.size();
            if (begin.size() != n || reach.size() != wanted.size() || covered.size() != wanted.size()) {
                throw nb::value_error("columns of different lengths");
            }
            const ::check::Rows rows{span_of(track), span_of(begin), nullable(length, length_known, n),
                                     nullable(last_seen, last_seen_known, n), {}, {}, {}};
            nb::gil_scoped_release release;
            ::check::add_covered(rows, span_of(excluded), span_of(wanted), span_of(reach), span_of(covered));
        },
        "track"_a.noconvert(), "begin"_a.noconvert(), "length"_a.noconvert(), "length_known"_a.noconvert(),
        "last_seen"_a.noconvert(), "last_seen_known"_a.noconvert(), "excluded"_a.noconvert(), "wanted"_a.noconvert(),
        "reach"_a.noconvert(), "covered"_a.noconvert(),
        "Add the time that slices cover on the wanted tracks, whose slices come in order of begin, but for the excluded "
        "rows, which rise; reach is the furthest end by track, the lowest number before the first slice.");
}
