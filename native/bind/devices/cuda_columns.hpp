// What the readers of all layouts share: the columns that the rules fill, and their scratch memory.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "core/devices/cuda/lane_decoder.hpp"
#include "core/wire/pages.hpp"
#include "bind/disk_memory.hpp"
#include "bind/threads.hpp"

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

// The arguments that `Outputs.arguments()` gives: sizes of slices, instants and gaps, the summaries, a mark for each event
// of a slice, then the columns of the three, in the order of the members of their structs.
class Columns {
  public:
    static constexpr size_t count = 5 + 7 + 6 + 6;

    Columns(const nb::args& arguments, size_t lanes) : arguments_(arguments) {
        if (arguments.size() != count) throw nb::value_error("a number of columns that no table has");
        size_t at = 5;
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
        used = column<uint8_t>(4, size_t{1} << 16);
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
    std::span<uint8_t> used;

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

template <typename Element>
struct Scratch {
    Scratch(size_t longest, size_t elements, unsigned event_bits)
        : records(elements),
          edges(2 * longest),
          rows(5 * longest),
          top(size_t{1} << event_bits, -1),
          used(size_t{1} << event_bits, 0) {
        const auto part = [&](size_t i) { return std::span(rows.get() + i * longest, longest); };
        work = {part(0), part(1), part(2), part(3), part(4), top, used, {edges.get(), 2 * longest}};
    }

    // Left uninitialised: pages that no record needs are never touched.
    ScratchMemory<Element> records;
    ScratchMemory<cuda::SliceEdge> edges;
    ScratchMemory<int32_t> rows;
    std::vector<int32_t> top;
    std::vector<uint8_t> used;
    cuda::Workspace work;
};

// A thread should have so many records to itself.
inline constexpr size_t records_a_thread = size_t{1} << 16;

// The most that a lane may give: records, begins among them, and others that are readable.
struct Room {
    size_t records = 0;
    size_t begins = 0;
    size_t others = 0;
};

// The columns that every slice fills.
inline void provide_columns(const cuda::Slices& slices) noexcept {
    const auto whole = [](auto column) { provide(column.data(), column.size()); };
    whole(slices.begin), whole(slices.dur), whole(slices.begin_index), whole(slices.end_index), whole(slices.event);
}

// Flag closed slices that are shorter than two steps of the clock; return how many. Looks at no row where none can be.
inline size_t mark_below_resolution(cuda::Slices& slices, int64_t step, bool is_on_disk) {
    if (slices.shortest >= 2 * step) return 0;
    const size_t rows = slices.size;
    const size_t pieces = parts(rows, records_a_thread);
    std::vector<size_t> found(pieces);
    each_part(pieces, [&](size_t i) {
        const auto from = rows * i / pieces, to = rows * (i + 1) / pieces;
        if (!is_on_disk) provide(slices.flags.data() + from, to - from);
        found[i] = cuda::mark_below_resolution(slices, from, to, step);
    });
    size_t count = 0;
    for (const auto some : found) count += some;
    if (count > 0) slices.seen |= cuda::below_resolution;
    return count;
}

// Decode lanes that lie one behind the other, several at a time; return what `Outputs.done` takes.
//
//   room_of  gives the Room of a lane
//   longest  the most records of a lane
//   scratch_size  how many elements of scratch memory the reader needs
//   decode   is called with the first lane, the number of lanes, that memory and a decoder, by several threads
template <typename Element, typename RoomOf, typename Decode>
nb::tuple decoded(Columns& columns, const cuda::LaneRules& rules, size_t lanes, const RoomOf& room_of, size_t longest,
                  size_t scratch_size, unsigned event_bits, const Decode& decode) {
    struct Part {
        size_t first = 0, last = 0;
        cuda::OutputSpan share;
        cuda::Slices slices;
        cuda::Instants instants;
        cuda::Gaps gaps;
        cuda::TickStep resolution_ticks;
        bool is_whole = false;
    };
    size_t total = 0;
    for (size_t lane = 0; lane < lanes; ++lane) total += room_of(lane).records;
    const size_t wanted = std::max<size_t>(1, std::min(parts(total, records_a_thread), lanes));
    std::vector<Part> pieces(1);
    size_t done = 0;
    for (size_t lane = 0; lane < lanes; ++lane) {
        if (done >= total * pieces.size() / wanted && pieces.size() < wanted && pieces.back().last > pieces.back().first) {
            const auto& before = pieces.back();
            Part next;
            next.first = next.last = lane;
            next.share.slices_from = before.share.slices_from + before.share.slices;
            next.share.instants_from = before.share.instants_from + before.share.instants;
            next.share.gaps_from = before.share.gaps_from + before.share.gaps;
            pieces.push_back(next);
        }
        const Room room = room_of(lane);
        auto& piece = pieces.back();
        piece.last = lane + 1;
        piece.share.slices += room.begins;
        piece.share.instants += room.others;
        piece.share.gaps += room.records + 1;
        done += room.records;
    }
    const auto& end = pieces.back().share;
    columns.require(end.slices_from + end.slices, end.instants_from + end.instants, end.gaps_from + end.gaps);
    uint64_t step = 0;
    cuda::TickStep resolution_ticks;
    size_t short_slices = 0;
    bool is_whole = true;
    // Pages of files are not to be resident all at once.
    const bool is_on_disk = folder_of_arrays() != nullptr && longest * sizeof(int64_t) > least_on_disk();
    {
        nb::gil_scoped_release nogil;
        std::vector<Scratch<Element>> scratch;
        scratch.reserve(pieces.size());
        for (auto& piece : pieces) {
            piece.slices = cuda::part(columns.slices, piece.share);
            piece.instants = cuda::part(columns.instants, piece.share);
            piece.gaps = cuda::part(columns.gaps, piece.share);
            scratch.emplace_back(longest, scratch_size, event_bits);
        }
        each_part(pieces.size(), [&](size_t i) {
            auto& piece = pieces[i];
            if (piece.share.slices > 0 && !is_on_disk) provide_columns(piece.slices);
            cuda::LaneDecoder decoder(rules, scratch[i].work, piece.slices, piece.instants, piece.gaps);
            decode(piece.first, piece.last - piece.first, std::span(scratch[i].records.get(), scratch_size), decoder);
            piece.is_whole = decoder.is_whole();
            piece.resolution_ticks = decoder.resolution_ticks();
        });
        resolution_ticks = pieces[0].resolution_ticks;
        for (size_t i = 0; i < pieces.size(); ++i) {
            cuda::append(columns.slices, pieces[i].slices);
            cuda::append(columns.instants, pieces[i].instants);
            cuda::append(columns.gaps, pieces[i].gaps);
            if (i > 0) resolution_ticks.merge(pieces[i].resolution_ticks, (uint64_t{1} << rules.stamp_bits) - 1);
            for (size_t event = 0; event < scratch[i].used.size(); ++event) columns.used[event] |= scratch[i].used[event];
            is_whole = is_whole && pieces[i].is_whole;
        }
        if (resolution_ticks.distinct() == cuda::TickStep::enough) {
            step = resolution_ticks.step();
            short_slices = mark_below_resolution(columns.slices, static_cast<int64_t>(step), is_on_disk);
        }
    }
    if (!is_whole) throw nb::value_error("more rows came than were counted");
    nb::list stamps;
    for (const auto stamp : resolution_ticks.seen()) stamps.append(stamp);
    return nb::make_tuple(columns.slices.size, columns.instants.size, columns.gaps.size, columns.slices.seen,
                          short_slices, step, nb::make_tuple(resolution_ticks.step(), stamps));
}

}  // namespace lanescope::bind::cuda_columns
