// What the readers of all layouts share: the columns that the rules fill, and their scratch memory.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "core/cuda/lanes.hpp"
#include "threads.hpp"

namespace lanescope::bind::cuda_columns {

namespace nb = nanobind;
namespace cuda = lanescope::cuda;

template <typename T>
using In = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <typename T>
using Out = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <typename T>
using Rows = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

template <typename Array>
auto view(const Array& array) {
    return std::span(array.data(), array.size());
}

// The rows of a table of int64 as the structs that they are.
template <typename Struct>
std::span<Struct> structs(const Rows<int64_t>& table, size_t rows) {
    if (table.shape(0) != rows || table.shape(1) != sizeof(Struct) / sizeof(int64_t)) {
        throw nb::value_error("the table has not the shape of its rows");
    }
    return {reinterpret_cast<Struct*>(table.data()), rows};
}

template <typename Struct>
std::span<const Struct> structs(const Rows<const int64_t>& table) {
    if (table.shape(1) != sizeof(Struct) / sizeof(int64_t)) {
        throw nb::value_error("the table has not the shape of its rows");
    }
    return {reinterpret_cast<const Struct*>(table.data()), table.shape(0)};
}

// The arguments that `Outputs.arguments()` gives: sizes of slices, instants and gaps, the summaries, then the columns of
// the three, in the order of the members of their structs.
class Columns {
  public:
    static constexpr size_t count = 4 + 7 + 6 + 6;

    Columns(const nb::args& arguments, size_t lanes) : arguments_(arguments) {
        if (arguments.size() != count) throw nb::value_error("a number of columns that no table has");
        size_t at = 4;
        const auto slices_size = size(0), instants_size = size(1), gaps_size = size(2);
        const auto next = [&]<typename T>(std::span<T>& span, size_t rows) { span = column<T>(at++, rows); };
        next(slices.begin, slices_size), next(slices.dur, slices_size), next(slices.flags, slices_size);
        next(slices.launch, slices_size), next(slices.begin_index, slices_size);
        next(slices.end_index, slices_size), next(slices.event, slices_size);
        next(instants.tick, instants_size), next(instants.flags, instants_size);
        next(instants.launch, instants_size), next(instants.index, instants_size);
        next(instants.event, instants_size), next(instants.is_end, instants_size);
        next(gaps.tick, gaps_size), next(gaps.dur, gaps_size), next(gaps.lane, gaps_size);
        next(gaps.index, gaps_size), next(gaps.missing, gaps_size), next(gaps.bad, gaps_size);
        summaries = structs<cuda::Summary>(nb::cast<Rows<int64_t>>(arguments[3], false), lanes);
    }

    // Refuse columns that are too short for what may come.
    void require(size_t slices_rows, size_t instants_rows, size_t gaps_rows) const {
        if (slices.begin.size() < slices_rows || instants.tick.size() < instants_rows ||
            gaps.tick.size() < gaps_rows) {
            throw nb::value_error("a column is shorter than the rows that may come");
        }
    }

    cuda::Slices slices;
    cuda::Instants instants;
    cuda::Gaps gaps;
    std::span<cuda::Summary> summaries;

  private:
    size_t size(size_t at) const { return nb::cast<size_t>(arguments_[at]); }

    template <typename T>
    std::span<T> column(size_t at, size_t rows) const {
        const auto array = nb::cast<Out<T>>(arguments_[at], false);
        if (array.size() < rows) throw nb::value_error("a column is shorter than the rows that may come");
        return {array.data(), rows};
    }

    const nb::args& arguments_;
};

struct Scratch {
    Scratch(size_t longest, unsigned event_bits)
        : records(new cuda::Record[longest]),
          edges(new cuda::Edge[2 * longest]),
          rows(new int32_t[5 * longest]),
          top(size_t{1} << event_bits, -1),
          size(longest) {
        const auto part = [&](size_t i) { return std::span(rows.get() + i * longest, longest); };
        work = {part(0), part(1), part(2), part(3), part(4), top, {edges.get(), 2 * longest}};
    }

    // Left uninitialised: pages that no record needs are never touched.
    std::unique_ptr<cuda::Record[]> records;
    std::unique_ptr<cuda::Edge[]> edges;
    std::unique_ptr<int32_t[]> rows;
    std::vector<int32_t> top;
    size_t size;
    cuda::Workspace work;
};

// A thread should have so many records to itself.
inline constexpr size_t records_a_thread = size_t{1} << 16;

// Decode lanes that lie one behind the other, several at a time; return what `Outputs.done` takes.
//
//   room     the rows that each lane may give, and its records: a Share whose `from`s are not used
//   decode   is called with the first lane, the number of lanes, scratch records and a decoder, by several threads
template <typename Decode>
nb::tuple decoded(Columns& columns, const cuda::Rules& rules, std::span<const cuda::Share> room,
                  std::span<const size_t> records, unsigned event_bits, Decode decode) {
    struct Part {
        size_t first = 0, last = 0, longest = 0;
        cuda::Share share;
        cuda::Slices slices;
        cuda::Instants instants;
        cuda::Gaps gaps;
        cuda::TickStep tick_step;
    };
    size_t total = 0;
    for (const auto count : records) total += count;
    const size_t wanted = std::max<size_t>(1, std::min(parts(total, records_a_thread), room.size()));
    std::vector<Part> pieces(1);
    size_t done = 0;
    for (size_t lane = 0; lane < room.size(); ++lane) {
        if (done >= total * pieces.size() / wanted && pieces.size() < wanted && pieces.back().last > pieces.back().first) {
            const auto& before = pieces.back();
            Part next;
            next.first = next.last = lane;
            next.share.slices_from = before.share.slices_from + before.share.slices;
            next.share.instants_from = before.share.instants_from + before.share.instants;
            next.share.gaps_from = before.share.gaps_from + before.share.gaps;
            pieces.push_back(next);
        }
        auto& piece = pieces.back();
        piece.last = lane + 1;
        piece.longest = std::max(piece.longest, records[lane]);
        piece.share.slices += room[lane].slices;
        piece.share.instants += room[lane].instants;
        piece.share.gaps += room[lane].gaps;
        done += records[lane];
    }
    const auto& end = pieces.back().share;
    columns.require(end.slices_from + end.slices, end.instants_from + end.instants, end.gaps_from + end.gaps);
    uint64_t step = 0;
    size_t short_slices = 0;
    {
        nb::gil_scoped_release nogil;
        for (auto& piece : pieces) {
            piece.slices = cuda::part(columns.slices, piece.share);
            piece.instants = cuda::part(columns.instants, piece.share);
            piece.gaps = cuda::part(columns.gaps, piece.share);
        }
        std::vector<Scratch> scratch;
        scratch.reserve(pieces.size());
        for (const auto& piece : pieces) scratch.emplace_back(piece.longest, event_bits);
        each_part(pieces.size(), [&](size_t i) {
            auto& piece = pieces[i];
            cuda::LaneDecoder decoder(rules, scratch[i].work, piece.slices, piece.instants, piece.gaps);
            decode(piece.first, piece.last - piece.first, std::span(scratch[i].records.get(), piece.longest), decoder);
            piece.tick_step = decoder.tick_step();
        });
        auto tick_step = pieces[0].tick_step;
        for (size_t i = 0; i < pieces.size(); ++i) {
            cuda::append(columns.slices, pieces[i].slices);
            cuda::append(columns.instants, pieces[i].instants);
            cuda::append(columns.gaps, pieces[i].gaps);
            if (i > 0) tick_step.merge(pieces[i].tick_step, (uint64_t{1} << rules.stamp_bits) - 1);
        }
        if (tick_step.distinct() == cuda::TickStep::enough) {
            step = tick_step.step();
            short_slices = cuda::mark_below_resolution(columns.slices, static_cast<int64_t>(step));
        }
    }
    return nb::make_tuple(columns.slices.size, columns.instants.size, columns.gaps.size, columns.slices.seen,
                          short_slices, step);
}

}  // namespace lanescope::bind::cuda_columns
