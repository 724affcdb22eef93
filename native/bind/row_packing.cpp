// Drawing rows: numpy arrays in, numpy arrays out.
#include "core/trace/row_packing/pack.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "module.hpp"
#include "threads.hpp"

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
        const std::string what = "interval " + std::to_string(outcome.where);
        if (outcome.status == layout::Status::bad_track) throw nb::value_error((what + " lies on no known track").c_str());
        throw std::overflow_error(what + " ends before it begins, or after the last time that there is");
    }
    return to_numpy(std::move(row_start));
}

// A thread should have so many intervals to itself.
constexpr size_t kIntervalsAThread = size_t{1} << 17;

// Intervals as they come: of one lane, then of another. Gives up where a lane comes again.
bool runs_of(std::span<const int64_t> track, std::vector<int64_t>& lane, std::vector<int64_t>& count) {
    for (size_t i = 0; i < track.size();) {
        if (!lane.empty() && track[i] <= lane.back()) return false;
        size_t to = i + 1;
        while (to < track.size() && track[to] == track[i]) ++to;
        lane.push_back(track[i]);
        count.push_back(static_cast<int64_t>(to - i));
        i = to;
    }
    return true;
}

// Some of the runs, which are placed on a thread of their own.
struct Share {
    size_t first_run = 0, last_run = 0;
    size_t from = 0, to = 0;  // intervals
    std::vector<int64_t> row_start;
    layout::InTurn found = layout::InTurn::no;
};

std::vector<Share> shares_of(const layout::Runs& runs, size_t count) {
    std::vector<Share> shares(1);
    const size_t wanted = lanescope::bind::parts(count, kIntervalsAThread);
    for (size_t run = 0; run < runs.lane.size(); ++run) {
        if (shares.size() < wanted && shares.back().to >= count * shares.size() / wanted) {
            shares.push_back({run, run, shares.back().to, shares.back().to, {}});
        }
        shares.back().last_run = run + 1;
        shares.back().to += static_cast<size_t>(runs.count[run]);
    }
    return shares;
}

// `order` is left as it is where it would count up.
layout::InTurn place_shares(const layout::Intervals& items, const layout::Runs& runs, std::span<const uint8_t> nested,
                            std::span<int32_t> rows, std::span<int64_t> order, std::vector<int64_t>& row_start) {
    using layout::InTurn;
    const size_t count = items.begin.size();
    std::fill(rows.begin(), rows.end(), 0);
    int64_t least = 0;  // so that shares have different lanes
    for (size_t run = 0; run < runs.lane.size(); ++run) {
        if (runs.count[run] == 0) continue;
        if (runs.lane[run] < least) return InTurn::no;
        least = runs.lane[run] + 1;
    }
    std::vector<Share> shares = shares_of(runs, count);
    lanescope::bind::each_part(shares.size(), [&](size_t i) {
        Share& share = shares[i];
        const size_t size = share.to - share.from, of_runs = share.last_run - share.first_run;
        const layout::Intervals some{{}, items.begin.subspan(share.from, size), items.length.subspan(share.from, size), {}};
        const layout::Runs its{runs.lane.subspan(share.first_run, of_runs), runs.count.subspan(share.first_run, of_runs)};
        share.found = layout::lane_after_lane(some, its, static_cast<int64_t>(share.from), nested, rows,
                                              order.subspan(share.from, size), share.row_start);
    });
    const auto are = [&](InTurn found) {
        return std::any_of(shares.begin(), shares.end(), [&](const Share& share) { return share.found == found; });
    };
    if (are(InTurn::no)) return InTurn::no;
    row_start.assign(1, 0);
    for (const Share& share : shares) row_start.insert(row_start.end(), share.row_start.begin(), share.row_start.end());
    if (!are(InTurn::moved)) return InTurn::as_they_are;
    for (const Share& share : shares) {
        if (share.found == InTurn::moved) continue;
        const auto its = order.subspan(share.from, share.to - share.from);
        std::iota(its.begin(), its.end(), static_cast<int64_t>(share.from));
    }
    return InTurn::moved;
}

std::optional<std::pair<NumpyInt64, NumpyInt64>> lane_after_lane(
    const Array<const int64_t>& track, const Array<const int64_t>& begin, const Array<const int64_t>& length,
    const Array<const uint8_t>& known, const Array<const uint8_t>& nested, const Array<int32_t>& rows,
    const Array<const int64_t>& counts) {
    const size_t n = begin.size();
    const bool has_runs = counts.size() != 0;
    if (length.size() != n || (known.size() != 0 && known.size() != n) || track.size() != (has_runs ? counts.size() : n)) {
        throw nb::value_error("columns of different lengths");
    }
    if (rows.size() != nested.size()) throw nb::value_error("outputs of wrong length");
    uint64_t covered = 0;
    for (const int64_t count : span_of(counts)) {
        if (count < 0 || static_cast<uint64_t>(count) > n - covered) throw nb::value_error("runs do not match the intervals");
        covered += static_cast<uint64_t>(count);
    }
    if (has_runs && covered != n) throw nb::value_error("runs do not match the intervals");
    const layout::Intervals items{{}, span_of(begin), span_of(length), {}};
    std::vector<int64_t> row_start;
    // Not touched unless it is needed.
    auto memory = std::make_unique<lanescope::LargeMemory>(n * sizeof(int64_t));
    auto* const order = static_cast<int64_t*>(memory->data());
    auto found = layout::InTurn::no;
    {
        nb::gil_scoped_release release;
        std::vector<int64_t> lane, count;
        layout::Runs runs{span_of(track), span_of(counts)};
        bool is_so = known.size() == 0;
        if (is_so && !has_runs) {
            is_so = runs_of(span_of(track), lane, count);
            runs = {lane, count};
        }
        if (is_so) found = place_shares(items, runs, span_of(nested), span_of(rows), {order, n}, row_start);
    }
    if (found == layout::InTurn::no) return std::nullopt;
    if (found == layout::InTurn::as_they_are) return std::pair(to_numpy(std::vector<int64_t>()), to_numpy(std::move(row_start)));
    return std::pair(NumpyInt64(order, {n}, lanescope::bind::owner_of(std::move(memory))), to_numpy(std::move(row_start)));
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
          "in order, int64 [rows + 1]. Raises OverflowError for an interval that ends before it begins, or later than 64 bits "
          "count.");
    m.def("layout_lane_after_lane", lane_after_lane, "track"_a.noconvert(), "begin"_a.noconvert(), "length"_a.noconvert(),
          "known"_a.noconvert(), "nested"_a.noconvert(), "rows"_a.noconvert(), "counts"_a.noconvert(),
          "Fill rows (by lane); return order (empty: it counts up) and where each row begins in it, where the intervals come "
          "lane after lane and each lane needs but one row; else None. `track` is that of each interval or, where there are "
          "`counts`, of each run of so many intervals; runs of one track only, in rising order.");
    m.def("layout_depths", depths, "begins"_a.noconvert(), "ends"_a.noconvert(), "order"_a.noconvert(),
          "row_start"_a.noconvert(), "depth"_a.noconvert(),
          "Fill depth, the number of intervals that are open around each on its row.");
}
