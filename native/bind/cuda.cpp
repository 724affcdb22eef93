// Readers of in-kernel probe buffers. The caller allocates all columns; a size that is too small is refused up front.
#include "core/cuda/tirx.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/tuple.h>

#include <memory>
#include <tuple>
#include <vector>

#include "module.hpp"
#include "threads.hpp"

namespace nb = nanobind;
using namespace nb::literals;
namespace cuda = lanescope::cuda;
namespace tirx = lanescope::cuda::tirx;

namespace {

template <typename T>
using In = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <typename T>
using Out = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

constexpr size_t summary_columns = sizeof(cuda::Summary) / sizeof(int64_t);
using Summaries = nb::ndarray<int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

template <typename T>
std::span<const T> view(const In<T>& array) {
    return {array.data(), array.size()};
}

template <typename T>
std::span<T> column(const Out<T>& array, size_t rows) {
    if (array.size() < rows) throw nb::value_error("a column is shorter than the rows that may come");
    return {array.data(), array.size()};
}

struct Scratch {
    explicit Scratch(size_t longest)
        : records(new cuda::Record[longest]),
          edges(new cuda::Edge[2 * longest]),
          rows(new int32_t[5 * longest]),
          top(size_t{1} << tirx::event_bits, -1) {
        const auto part = [&](size_t i) { return std::span(rows.get() + i * longest, longest); };
        work = {part(0), part(1), part(2), part(3), part(4), top, {edges.get(), 2 * longest}};
    }

    // Left uninitialised: pages that no record needs are never touched.
    std::unique_ptr<cuda::Record[]> records;
    std::unique_ptr<cuda::Edge[]> edges;
    std::unique_ptr<int32_t[]> rows;
    std::vector<int32_t> top;
    cuda::Workspace work;
};

std::tuple<uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t> scan(const In<uint64_t>& words, uint64_t lanes,
                                                                            uint64_t stride) {
    const auto data = view(words);
    nb::gil_scoped_release nogil;
    const auto found = tirx::scan(data, lanes, stride);
    return {found.used,      found.kinds[0],        found.kinds[1] + found.kinds[2],
            found.misplaced, found.first_misplaced, found.last_used};
}

uint64_t stride_divisor(const In<uint64_t>& words) {
    const auto data = view(words);
    nb::gil_scoped_release nogil;
    return tirx::stride_divisor(data);
}

// A thread should have so many words to itself.
constexpr size_t words_a_thread = size_t{1} << 16;

// Decode all lanes. Each thread takes some that follow each other, so that the rows are the same for any number of them.
cuda::TickStep decode(std::span<const uint64_t> words, const tirx::Placement& placement, const cuda::Rules& rules,
                      size_t longest, std::span<cuda::Summary> summaries, cuda::Slices& slices,
                      cuda::Instants& instants, cuda::Gaps& gaps) {
    struct Part {
        cuda::Slices slices;
        cuda::Instants instants;
        cuda::Gaps gaps;
        Scratch scratch;
        cuda::TickStep tick_step;
    };
    const size_t count = std::min<size_t>(lanescope::bind::parts(words.size(), words_a_thread), placement.lanes);
    std::vector<uint64_t> lane(count + 1);
    for (size_t i = 0; i <= count; ++i) lane[i] = placement.lanes * i / count;
    std::vector<cuda::Share> shares(1);
    if (count == 1) {
        shares[0] = {0, slices.begin.size(), 0, instants.tick.size(), 0, gaps.tick.size()};
    } else {
        shares = tirx::shares(words, placement, lane);
    }
    std::vector<Part> parts;
    for (const cuda::Share& share : shares) {
        parts.push_back({cuda::part(slices, share), cuda::part(instants, share), cuda::part(gaps, share), Scratch(longest), {}});
    }
    lanescope::bind::each_part(count, [&](size_t i) {
        Part& part = parts[i];
        cuda::LaneDecoder decoder(rules, part.scratch.work, part.slices, part.instants, part.gaps);
        tirx::decode(words, placement, lane[i], lane[i + 1], {part.scratch.records.get(), longest}, summaries, decoder);
        part.tick_step = decoder.tick_step();
    });
    cuda::TickStep tick_step = parts[0].tick_step;
    for (size_t i = 0; i < count; ++i) {
        append(slices, parts[i].slices);
        append(instants, parts[i].instants);
        append(gaps, parts[i].gaps);
        if (i > 0) tick_step.merge(parts[i].tick_step, (uint64_t{1} << rules.stamp_bits) - 1);
    }
    return tick_step;
}

}  // namespace

void lanescope::bind::cuda(nb::module_& m) {
    m.attr("CUDA_SUMMARY_COLUMNS") = summary_columns;
    nb::dict flags;
    flags["OPEN_END"] = uint32_t{cuda::open_end};
    flags["TRUNCATED"] = uint32_t{cuda::truncated};
    flags["CROSSES"] = uint32_t{cuda::crosses};
    flags["BELOW_RESOLUTION"] = uint32_t{cuda::below_resolution};
    flags["CLOCK_SUSPECT"] = uint32_t{cuda::clock_suspect};
    flags["EPOCH_AMBIGUOUS"] = uint32_t{cuda::epoch_ambiguous};
    flags["INFERRED_IDENTITY"] = uint32_t{cuda::inferred_identity};
    flags["NEGATIVE"] = uint32_t{cuda::negative};
    flags["AFTER_GAP"] = uint32_t{cuda::after_gap};
    m.attr("CUDA_FLAGS") = flags;  // a test compares them with lanescope.trace.Flag

    m.def(
        "cuda_used",
        [](const In<uint16_t>& events, const Out<uint8_t>& used) {
            const auto marks = column(used, size_t{1} << 16);
            for (const auto event : view(events)) marks[event] = 1;
        },
        "events"_a.noconvert(), "used"_a.noconvert(), "Set used[event] to 1 for each event; `used` has 65536 places.");

    m.def("cuda_tirx_scan", scan, "words"_a.noconvert(), "lanes"_a, "stride"_a,
          "Compare each word with its slot: (used, begins, ends and instants, misplaced, slot of the first misplaced, "
          "slot of the last used).");
    m.def("cuda_tirx_stride_divisor", stride_divisor, "words"_a.noconvert(),
          "The greatest common divisor of all distances from the first slots; 0: no lane has a second record.");

    m.def(
        "cuda_tirx_decode",
        [](const In<uint64_t>& words, uint64_t lanes, uint64_t stride, const In<int64_t>& slots,
           const In<int64_t>& starts, size_t longest, bool split, uint64_t step_back, size_t max_slices,
           size_t max_instants, size_t max_gaps, const Summaries& summaries,
           // slices
           const Out<int64_t>& begin, const Out<int64_t>& dur, const Out<uint32_t>& flags, const Out<uint32_t>& launch,
           const Out<uint32_t>& begin_index, const Out<uint32_t>& end_index,
           const Out<uint16_t>& event,
           // instants
           const Out<int64_t>& mark_tick, const Out<uint32_t>& mark_flags, const Out<uint32_t>& mark_launch,
           const Out<uint32_t>& mark_index, const Out<uint16_t>& mark_event,
           const Out<uint8_t>& mark_is_end,
           // gaps
           const Out<int64_t>& gap_tick, const Out<int64_t>& gap_dur, const Out<uint32_t>& gap_lane,
           const Out<uint32_t>& gap_index, const Out<uint32_t>& gap_missing, const Out<uint32_t>& gap_bad) {
            if (summaries.shape(0) != lanes || summaries.shape(1) != summary_columns) {
                throw nb::value_error("summaries must have a row for each lane");
            }
            if (stride == 0 && starts.size() != lanes + 1) throw nb::value_error("starts must close every lane");
            cuda::Slices slices{column(begin, max_slices),       column(dur, max_slices),
                                column(flags, max_slices),       column(launch, max_slices),
                                column(begin_index, max_slices), column(end_index, max_slices),
                                column(event, max_slices)};
            cuda::Instants instants{column(mark_tick, max_instants),   column(mark_flags, max_instants),
                                    column(mark_launch, max_instants), column(mark_index, max_instants),
                                    column(mark_event, max_instants),  column(mark_is_end, max_instants)};
            cuda::Gaps gaps{column(gap_tick, max_gaps),  column(gap_dur, max_gaps),     column(gap_lane, max_gaps),
                            column(gap_index, max_gaps), column(gap_missing, max_gaps), column(gap_bad, max_gaps)};
            const std::span rows(reinterpret_cast<cuda::Summary*>(summaries.data()), lanes);
            const tirx::Placement placement{lanes, stride, view(slots), view(starts)};
            const auto data = view(words);
            uint64_t step = 0;
            size_t short_slices = 0;
            {
                nb::gil_scoped_release nogil;
                const auto tick_step =
                    decode(data, placement, {32, split, step_back}, longest, rows, slices, instants, gaps);
                if (tick_step.distinct() == cuda::TickStep::enough) {
                    step = tick_step.step();
                    short_slices = cuda::mark_below_resolution(slices, static_cast<int64_t>(step));
                }
            }
            return nb::make_tuple(slices.size, instants.size, gaps.size, slices.seen, short_slices, step);
        },
        "words"_a.noconvert(), "lanes"_a, "stride"_a, "slots"_a.noconvert(), "starts"_a.noconvert(), "longest"_a,
        "split"_a, "step_back"_a, "max_slices"_a, "max_instants"_a, "max_gaps"_a, "summaries"_a.noconvert(),
        "begin"_a.noconvert(), "dur"_a.noconvert(), "flags"_a.noconvert(), "launch"_a.noconvert(),
        "begin_index"_a.noconvert(), "end_index"_a.noconvert(), "event"_a.noconvert(),
        "mark_tick"_a.noconvert(), "mark_flags"_a.noconvert(), "mark_launch"_a.noconvert(),
        "mark_index"_a.noconvert(), "mark_event"_a.noconvert(),
        "mark_is_end"_a.noconvert(), "gap_tick"_a.noconvert(), "gap_dur"_a.noconvert(), "gap_lane"_a.noconvert(),
        "gap_index"_a.noconvert(), "gap_missing"_a.noconvert(), "gap_bad"_a.noconvert(),
        "Decode all lanes into the columns: (slices, instants, gaps, flags of any slice, slices below the resolution, tick step or 0). stride 0: the "
        "words of lane i are those in slots[starts[i]:starts[i + 1]]. No lane may be longer than `longest`.");
}
