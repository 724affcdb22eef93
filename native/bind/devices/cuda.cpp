// Readers of in-kernel probe buffers. The caller allocates all columns; a size that is too small is refused up front.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <tuple>
#include <vector>

#include "core/devices/cuda/tirx.hpp"
#include "core/trace/columns.hpp"
#include "bind/devices/cuda_columns.hpp"
#include "bind/module.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace lanescope::bind::cuda_columns;
namespace tirx = lanescope::cuda::tirx;

namespace {

// A thread should have so many words to itself.
constexpr size_t words_a_thread = size_t{1} << 17;

// The table of counts as the structs that it is.
std::span<tirx::LaneCount> lane_counts(const Rows<uint32_t>& table) {
    static_assert(sizeof(tirx::LaneCount) == 2 * sizeof(uint32_t));
    if (table.shape(1) != 2) throw nb::value_error("counts must have two columns");
    return {reinterpret_cast<tirx::LaneCount*>(table.data()), table.shape(0)};
}

std::tuple<uint64_t, uint64_t, uint64_t, uint64_t> scan(const In<uint64_t>& words, uint64_t first, uint64_t stride,
                                                        const Rows<uint32_t>& counts) {
    const auto data = view(words);
    const auto lanes = lane_counts(counts);
    if (stride == 0 || stride < lanes.size()) throw nb::value_error("no such stride");
    nb::gil_scoped_release nogil;
    // Each thread takes some rows; counting lanes beside that must not cost more than the rows do.
    const size_t rows = (data.size() + stride - 1) / stride;
    const size_t worth = std::max<size_t>(words_a_thread, 4 * lanes.size());
    const size_t pieces = std::clamp<size_t>(rows, 1, lanescope::bind::parts(data.size(), worth));
    std::vector<std::vector<tirx::LaneCount>> others(pieces - 1, std::vector<tirx::LaneCount>(lanes.size()));
    std::vector<tirx::Scan> found(pieces);
    lanescope::bind::each_part(pieces, [&](size_t i) {
        const auto from = std::min<size_t>(rows * i / pieces * stride, data.size());
        const auto to = std::min<size_t>(rows * (i + 1) / pieces * stride, data.size());
        found[i] = tirx::scan(data.subspan(from, to - from), first + from, stride,
                              i == 0 ? lanes : std::span(others[i - 1]));
    });
    for (size_t i = 1; i < pieces; ++i) {
        found[0].merge(found[i]);
        for (size_t lane = 0; lane < lanes.size(); ++lane) {
            lanes[lane].used += others[i - 1][lane].used;
            lanes[lane].begins += others[i - 1][lane].begins;
        }
    }
    return {found[0].used, found[0].misplaced, found[0].first_misplaced, found[0].last_used};
}

uint64_t stride_divisor(const In<uint64_t>& words) {
    const auto data = view(words);
    nb::gil_scoped_release nogil;
    return tirx::stride_divisor(data);
}

}  // namespace

void lanescope::bind::cuda(nb::module_& m) {
    m.attr("CUDA_SUMMARY_COLUMNS") = sizeof(cuda::Summary) / sizeof(int64_t);
    nb::dict flags;
    flags["UNFINISHED"] = uint32_t{cuda::unfinished};
    flags["TRUNCATED"] = uint32_t{cuda::truncated};
    flags["PARTIAL_OVERLAP"] = uint32_t{cuda::crosses};
    flags["BELOW_RESOLUTION"] = uint32_t{cuda::below_resolution};
    flags["CLOCK_SUSPECT"] = uint32_t{cuda::clock_suspect};
    flags["WRAP_AMBIGUOUS"] = uint32_t{cuda::wrap_ambiguous};
    flags["INFERRED_IDENTITY"] = uint32_t{cuda::inferred_identity};
    flags["NEGATIVE_DURATION"] = uint32_t{cuda::negative};
    flags["AFTER_GAP"] = uint32_t{cuda::after_gap};
    m.attr("CUDA_FLAGS") = flags;  // a test compares them with lanescope.trace.Flag

    m.def(
        "cuda_common_step",
        [](const nb::list& parts, unsigned stamp_bits) {
            if (stamp_bits < 1 || stamp_bits > 63) throw nb::value_error("no such stamp");
            cuda::TickStep all;
            for (const auto& part : parts) {
                const auto [step, seen] = nb::cast<std::pair<uint64_t, std::vector<uint64_t>>>(part);
                const auto one = cuda::TickStep::of(seen, step);
                if (all.distinct() == 0) all = one;
                else all.merge(one, (uint64_t{1} << stamp_bits) - 1);
            }
            return all.distinct() == cuda::TickStep::enough ? all.step() : 0;
        },
        "parts"_a, "stamp_bits"_a,
        "The step of the stamps of several parts, 0: too few of them; a part is the last item of a decoder's results.");
    m.def(
        "cuda_spread",
        [](const In<int64_t>& values, const In<int64_t>& counts, const Out<int64_t>& out) {
            const auto from = view(values), times = view(counts);
            if (from.size() != times.size()) throw nb::value_error("columns of different lengths");
            auto rest = view(out);
            for (size_t i = 0; i < from.size(); ++i) {
                const auto count = static_cast<size_t>(std::max<int64_t>(0, times[i]));
                if (count > rest.size()) throw nb::value_error("more rows than there are");
                std::fill_n(rest.begin(), count, from[i]);
                rest = rest.subspan(count);
            }
            if (!rest.empty()) throw nb::value_error("fewer rows than there are");
        },
        "values"_a.noconvert(), "counts"_a.noconvert(), "out"_a.noconvert(),
        "Fill out with values[i], counts[i] times each, one after the other.");
    m.def(
        "cuda_look_up",
        [](const In<uint16_t>& events, const In<int32_t>& table, const Out<int32_t>& out) {
            const auto from = view(events);
            const auto to = view(out);
            if (table.size() != size_t{1} << 16 || to.size() != from.size()) {
                throw nb::value_error("columns of different lengths");
            }
            nb::gil_scoped_release nogil;
            const auto pieces = lanescope::bind::parts(to.size(), words_a_thread);
            lanescope::bind::each_part(pieces, [&](size_t part) {
                const auto first = to.size() * part / pieces, last = to.size() * (part + 1) / pieces;
                lanescope::provide(to.data() + first, last - first);
                lanescope::columns::look_up(from.subspan(first, last - first), table.data(), to.subspan(first, last - first));
            });
        },
        "events"_a.noconvert(), "table"_a.noconvert(), "out"_a.noconvert(),
        "Fill out with table[event] for each event; `table` has 65536 places.");

    m.def(
        "cuda_flagged",
        [](const In<uint32_t>& flags, uint32_t wanted) {
            const auto rows = view(flags);
            nb::gil_scoped_release nogil;
            const auto count = lanescope::columns::count_with(rows, wanted);
            size_t first = 0;
            if (count > 0) while ((rows[first] & wanted) == 0) ++first;
            return std::tuple(count, first);
        },
        "flags"_a.noconvert(), "wanted"_a, "Return how many rows have any of these flags, and the first of them.");

    m.def("cuda_tirx_scan", scan, "words"_a.noconvert(), "first"_a, "stride"_a, "counts"_a.noconvert(),
          "Compare each word with its slot, the first one being a record of lane 0 in slot `first`: (used, misplaced, "
          "slot of the first misplaced, slot of the last used). `counts`, uint32 [lanes, 2], takes the words of each "
          "lane that are used and those of them that are begins.");
    m.def("cuda_tirx_stride_divisor", stride_divisor, "words"_a.noconvert(),
          "The greatest common divisor of all distances from the first slots; 0: no lane has a second record.");
}
