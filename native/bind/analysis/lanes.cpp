// Intervals of lanes: numpy arrays in, numpy arrays out.
#include "core/analysis/lanes/lanes.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <span>
#include <vector>

#include "bind/arrays.hpp"
#include "bind/disk_memory.hpp"
#include "bind/module.hpp"

namespace nb = nanobind;
using namespace nb::literals;
namespace lanes = lanescope::lanes;

using lanescope::bind::Array;
using lanescope::bind::ScratchMemory;
using lanescope::bind::span_of;
using lanescope::bind::to_numpy;

namespace {

using Ints = Array<const int64_t>;

::lanes::Intervals intervals(const Ints& group, const Ints& begin, const Ints& end, bool may_lack_ends) {
    const size_t n = group.size();
    if (begin.size() != n || (end.size() != n && !(may_lack_ends && end.size() == 0))) {
        throw nb::value_error("columns of different lengths");
    }
    return {span_of(group), span_of(begin), span_of(end)};
}

void require_rows(const Ints& order, size_t n) {
    for (size_t i = 0; i < order.size(); ++i) {
        if (static_cast<uint64_t>(order.data()[i]) >= n) throw nb::value_error("no such row");
    }
}

}  // namespace

void lanescope::bind::lanes(nb::module_& m) {
    m.def(
        "lanes_order",
        [](const Ints& group, const Ints& begin, const Ints& end, const Array<int64_t>& out) {
            const auto items = intervals(group, begin, end, true);
            if (out.size() != group.size()) throw nb::value_error("outputs of wrong length");
            nb::gil_scoped_release release;
            std::optional<ScratchMemory<::lanes::Item>> room;
            return ::lanes::order(items, span_of(out), [&](size_t count) {
                room.reset();
                room.emplace(count);
                return std::span(room->get(), count);
            });
        },
        "group"_a.noconvert(), "begin"_a.noconvert(), "end"_a.noconvert(), "out"_a.noconvert(),
        "Fill out with the rows by group, begin, end from the longest, and row; empty ends: without them. Return false, and "
        "nothing, where groups are too far apart.");
    m.def(
        "lanes_covered",
        [](const Ints& group, const Ints& begin, const Ints& end, const Ints& order, const Array<int64_t>& group_out,
           const Array<int64_t>& begin_out, const Array<int64_t>& end_out) {
            const auto items = intervals(group, begin, end, false);
            const size_t n = order.size();
            if (group_out.size() != n || begin_out.size() != n || end_out.size() != n) {
                throw nb::value_error("outputs of wrong length");
            }
            nb::gil_scoped_release release;
            require_rows(order, group.size());
            return ::lanes::covered(items, span_of(order), {span_of(group_out), span_of(begin_out), span_of(end_out)});
        },
        "group"_a.noconvert(), "begin"_a.noconvert(), "end"_a.noconvert(), "order"_a.noconvert(),
        "group_out"_a.noconvert(), "begin_out"_a.noconvert(), "end_out"_a.noconvert(),
        "Fill group, begin and end of the time that intervals cover, disjoint and not touching, and return how many were "
        "filled. They are looked at in an order that sorts them by group and begin.");
    m.def(
        "lanes_leaves",
        [](const Ints& group, const Ints& begin, const Ints& end, const Ints& order, size_t count) {
            const auto items = intervals(group, begin, end, false);
            ::lanes::Leaves found;
            {
                nb::gil_scoped_release release;
                require_rows(order, group.size());
                found = ::lanes::leaves(items, span_of(order), count);
            }
            return nb::make_tuple(to_numpy(std::move(found.group)), to_numpy(std::move(found.begin)),
                                  to_numpy(std::move(found.end)), to_numpy(std::move(found.owner)),
                                  to_numpy(std::move(found.encloses)));
        },
        "group"_a.noconvert(), "begin"_a.noconvert(), "end"_a.noconvert(), "order"_a.noconvert(), "lanes"_a,
        "Return group, begin, end and row of the pieces in which each interval is the innermost, by group and time; and "
        "which rows enclose others. They nest, and are looked at in the order of lanes_order; those of no lane, and empty "
        "ones, are left out.");
    m.def(
        "lanes_clash",
        [](const Ints& group, const Ints& begin, const Ints& end, const Ints& order, const Array<const uint8_t>& promises) {
            const auto items = intervals(group, begin, end, false);
            std::vector<::lanescope::check::Nesting> nestings(promises.size());
            for (size_t i = 0; i < nestings.size(); ++i) {
                if (promises.data()[i] > 2) throw nb::value_error("no such nesting");
                nestings[i] = static_cast<::lanescope::check::Nesting>(promises.data()[i]);
            }
            nb::gil_scoped_release release;
            require_rows(order, group.size());
            return ::lanes::clash(items, span_of(order), nestings);
        },
        "group"_a.noconvert(), "begin"_a.noconvert(), "end"_a.noconvert(), "order"_a.noconvert(),
        "promises"_a.noconvert(),
        "Return whether any slices share time on a lane that promises disjoint ones (1), or cross on a nested lane (2). "
        "The order is that of lanes_order.");
    m.def(
        "lanes_fall",
        [](const Ints& group, const std::vector<Ints>& pieces, const Ints& order) {
            std::vector<std::span<const int64_t>> values;
            size_t count = 0;
            for (const Ints& piece : pieces) {
                if (piece.size() != 0) values.push_back(span_of(piece));
                count += piece.size();
            }
            if (group.size() != count) throw nb::value_error("columns of different lengths");
            nb::gil_scoped_release release;
            require_rows(order, group.size());
            return ::lanes::fall(span_of(group), values, span_of(order));
        },
        "group"_a.noconvert(), "pieces"_a, "order"_a.noconvert(),
        "Return whether a value falls from one row of a group to the next, in an order that keeps groups together. The "
        "values come in pieces that follow one another.");
    m.def(
        "lanes_rise",
        [](const Ints& group, const Ints& begin, size_t count) {
            if (group.size() != begin.size()) throw nb::value_error("columns of different lengths");
            nb::gil_scoped_release release;
            return ::lanes::rise(span_of(group), span_of(begin), count);
        },
        "group"_a.noconvert(), "begin"_a.noconvert(), "lanes"_a,
        "Return whether no row begins before the one before it on its lane.");
    m.def(
        "lanes_together",
        [](const Ints& group, const Ints& begin, const Ints& end, const Ints& order) {
            const auto items = intervals(group, begin, end, false);
            for (size_t i = 0; i < group.size(); ++i) {
                if (group.data()[i] < 0) throw nb::value_error("no such group");
            }
            ::lanes::Together found;
            {
                nb::gil_scoped_release release;
                require_rows(order, group.size());
                found = ::lanes::together(items, span_of(order));
            }
            return nb::make_tuple(to_numpy(std::move(found.unit)), to_numpy(std::move(found.keys)),
                                  to_numpy(std::move(found.time)));
        },
        "group"_a.noconvert(), "begin"_a.noconvert(), "end"_a.noconvert(), "order"_a.noconvert(),
        "Return unit, set of keys and time of what runs at the same time, by unit and set. A group is 64 times its unit, "
        "plus a key, which has a bit in the set; the order is by unit and begin.");
    m.def(
        "lanes_fill",
        [](const Ints& group, const Ints& begin, const Ints& end, const Array<const uint8_t>& state, const Ints& row,
           const Ints& marked_group, const Ints& marked_begin, const Ints& marked_end, uint8_t inside, uint8_t outside,
           size_t lanes, int64_t low, int64_t high) {
            const auto time = intervals(group, begin, end, false);
            const auto marked = intervals(marked_group, marked_begin, marked_end, false);
            if (state.size() != group.size() || row.size() != group.size()) {
                throw nb::value_error("columns of different lengths");
            }
            ::lanes::Filled found;
            {
                nb::gil_scoped_release release;
                found = ::lanes::fill({time, span_of(state), span_of(row), marked, inside, outside}, lanes, low, high);
            }
            return nb::make_tuple(to_numpy(std::move(found.lane)), to_numpy(std::move(found.begin)),
                                  to_numpy(std::move(found.end)), to_numpy(std::move(found.state)),
                                  to_numpy(std::move(found.row)));
        },
        "group"_a.noconvert(), "begin"_a.noconvert(), "end"_a.noconvert(), "state"_a.noconvert(), "row"_a.noconvert(),
        "marked_group"_a.noconvert(), "marked_begin"_a.noconvert(), "marked_end"_a.noconvert(), "inside"_a, "outside"_a,
        "lanes"_a, "low"_a, "high"_a,
        "Return lane, begin, end, state and row of the stretches that fill each lane from low to high: those given, and "
        "the rest, of one state inside what is marked, of another one outside. All come by lane and begin, disjoint.");
    m.def(
        "lanes_hull",
        [](const Ints& begin, const Ints& length, const Array<const uint8_t>& known) {
            const auto fits = [&](size_t size) { return size == 0 || size == begin.size(); };
            if (!fits(length.size()) || !fits(known.size())) throw nb::value_error("columns of different lengths");
            const ::lanes::Hull found = [&] {
                nb::gil_scoped_release release;
                return ::lanes::hull(span_of(begin), span_of(length), span_of(known));
            }();
            return nb::make_tuple(found.closed, found.first, found.last);
        },
        "begin"_a.noconvert(), "length"_a.noconvert(), "known"_a.noconvert(),
        "Return the number of known lengths, and the first and the last of the begins and of the ends that are known. "
        "Empty lengths: none is known; an empty mask: all are.");
    m.def(
        "lanes_known_ends",
        [](const Ints& begin, const Ints& length, const Array<const uint8_t>& is_closed, const Ints& last_seen,
           const Array<const uint8_t>& is_seen, const Array<int64_t>& out) {
            const auto fits = [&](size_t size) { return size == 0 || size == begin.size(); };
            if (!fits(length.size()) || !fits(is_closed.size()) || !fits(last_seen.size()) || !fits(is_seen.size()) ||
                out.size() != begin.size()) {
                throw nb::value_error("columns of different lengths");
            }
            nb::gil_scoped_release release;
            ::lanes::known_ends(span_of(begin), {span_of(length), span_of(is_closed)}, {span_of(last_seen), span_of(is_seen)},
                                span_of(out));
        },
        "begin"_a.noconvert(), "length"_a.noconvert(), "is_closed"_a.noconvert(), "last_seen"_a.noconvert(),
        "is_seen"_a.noconvert(), "out"_a.noconvert(),
        "Fill out with the time up to which each interval is known to last. Empty values: none is known; an empty mask: all "
        "are. None is negative, and none ends beyond 63 bits.");
    m.def(
        "lanes_sums",
        [](const Ints& group, const Ints& value, const Array<int64_t>& out) {
            if (group.size() != value.size()) throw nb::value_error("columns of different lengths");
            nb::gil_scoped_release release;
            if (!::lanes::add_up(span_of(group), span_of(value), span_of(out))) throw nb::value_error("no such group");
        },
        "group"_a.noconvert(), "value"_a.noconvert(), "out"_a.noconvert(), "Add each value to the sum of its group.");
}
