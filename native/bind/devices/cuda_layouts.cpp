// Readers of the layouts of in-kernel probes beside TIRx's.
#include <algorithm>

#include "core/devices/cuda/flashinfer.hpp"
#include "core/devices/cuda/async_pairing.hpp"
#include "core/devices/cuda/ls2.hpp"
#include "core/devices/cuda/proton.hpp"
#include "core/devices/cuda/region_pairing.hpp"
#include "bind/devices/cuda_columns.hpp"
#include "bind/module.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace lanescope::bind::cuda_columns;
namespace flashinfer = lanescope::cuda::flashinfer;
namespace ls2 = lanescope::cuda::ls2;
namespace proton = lanescope::cuda::proton;

namespace {

ls2::Layout ls2_layout(uint64_t lanes, uint64_t capacity, uint64_t record_words, bool ring, bool cycles) {
    const bool is_power = capacity != 0 && (capacity & (capacity - 1)) == 0;
    if (!is_power || capacity >> 31 != 0 || record_words - 1 > 1) throw nb::value_error("no such layout");
    return {lanes, capacity, record_words, ring, cycles};
}

void check_rings(std::span<const proton::Ring> rings, size_t words) {
    for (const auto& ring : rings) {
        const auto limit = static_cast<int64_t>(words);
        const bool inside = ring.start >= 0 && ring.entries >= 0 && ring.entries <= limit / 2 &&
                            ring.start <= limit - 2 * ring.entries && ring.stored >= 0 &&
                            ring.stored <= ring.entries && ring.first >= 0 &&
                            (ring.first < ring.entries || ring.stored == 0);
        if (!inside) throw nb::value_error("a ring lies outside of the buffer");
    }
}

// The most records of a block and the most lanes between its first and its last; refuses tables that are none.
std::pair<size_t, size_t> largest_block(std::span<const int64_t> start, std::span<const uint32_t> lane) {
    if (start.empty() || start.front() != 0 || start.back() != static_cast<int64_t>(lane.size())) {
        throw nb::value_error("the blocks do not lie one behind the other");
    }
    size_t records = 0, lanes = 0;
    for (size_t block = 0; block + 1 < start.size(); ++block) {
        if (start[block + 1] <= start[block]) throw nb::value_error("the blocks do not lie one behind the other");
        const auto first = static_cast<size_t>(start[block]), last = static_cast<size_t>(start[block + 1]) - 1;
        if (!std::is_sorted(lane.begin() + start[block], lane.begin() + start[block + 1])) {
            throw nb::value_error("the lanes do not lie one behind the other");
        }
        records = std::max(records, last - first + 1);
        lanes = std::max<size_t>(lanes, lane[last] - lane[first] + size_t{1});
    }
    // Places are 32 bits wide, and no grid has so many lanes.
    if (records >= UINT32_MAX || lanes > (size_t{1} << 28)) throw nb::value_error("a block is too large");
    return {records, lanes};
}

}  // namespace

void lanescope::bind::cuda_layouts(nb::module_& m) {
    m.def(
        "cuda_flashinfer_to_tirx",
        [](const In<uint64_t>& words, uint64_t first, uint64_t groups, const Out<uint64_t>& out,
           const Out<int16_t>& sm) {
            if (groups == 0 || sm.size() == 0 || sm.size() % groups != 0 || out.size() != words.size()) {
                throw nb::value_error("no such grid");
            }
            nb::gil_scoped_release nogil;
            return flashinfer::to_tirx(view(words), first, groups, view(out), view(sm));
        },
        "words"_a.noconvert(), "first"_a, "groups"_a, "out"_a.noconvert(), "sm"_a.noconvert(),
        "Rewrite words of FlashInfer's second layout, the first of them of slot `first`, as TIRx v1 words; take in the SM "
        "of each lane (-1 none, -2 several); return how many words name the block of their slot.");

    m.attr("CUDA_LS2_COLUMNS") = sizeof(ls2::Lane) / sizeof(int64_t);
    m.def(
        "cuda_ls2_scan",
        [](const In<uint64_t>& words, uint64_t capacity, uint64_t record_words, bool ring, bool cycles,
           const Rows<int64_t>& lanes) {
            const auto layout = ls2_layout(lanes.shape(0), capacity, record_words, ring, cycles);
            const auto rows = structs<ls2::Lane>(lanes, lanes.shape(0));
            nb::gil_scoped_release nogil;
            ls2::scan(view(words), layout, rows);
        },
        "words"_a.noconvert(), "capacity"_a, "record_words"_a, "ring"_a, "cycles"_a, "lanes"_a.noconvert(),
        "Say for each lane what it holds, int64 [lanes, CUDA_LS2_COLUMNS].");
    m.def(
        "cuda_ls2_decode",
        [](const In<uint64_t>& words, uint64_t capacity, uint64_t record_words, bool ring, bool cycles,
           const Rows<const int64_t>& lanes, uint64_t step_back, const nb::args& outputs) {
            const auto layout = ls2_layout(lanes.shape(0), capacity, record_words, ring, cycles);
            const auto given = structs<ls2::Lane>(lanes);
            // What was scanned is counted again: the caller's table may be of other words.
            std::vector<ls2::Lane> rows(given.size());
            ls2::scan(view(words), layout, rows);
            Columns columns(outputs, rows.size());
            size_t longest = 0;
            for (const auto& row : rows) longest = std::max(longest, static_cast<size_t>(row.present));
            const auto room_of = [&](size_t lane) {
                const auto& row = rows[lane];
                return Room{static_cast<size_t>(row.present), static_cast<size_t>(row.begins),
                            static_cast<size_t>(row.marks)};
            };
            return decoded<cuda::Record>(columns, {32, true, step_back}, rows.size(), room_of, longest, longest,
                           ls2::event_bits,
                           [&](size_t first, size_t count, std::span<cuda::Record> scratch, cuda::LaneDecoder& decoder) {
                               ls2::decode(view(words), layout, first, std::span(rows).subspan(first, count), scratch,
                                           columns.summaries.subspan(first, count), decoder);
                           });
        },
        "words"_a.noconvert(), "capacity"_a, "record_words"_a, "ring"_a, "cycles"_a, "lanes"_a.noconvert(),
        "step_back"_a, "outputs"_a, "Decode all lanes into the columns; results as cuda_decode_records.");

    m.def(
        "cuda_proton_count",
        [](const In<uint32_t>& words, const Rows<const int64_t>& rings) {
            const auto rows = structs<proton::Ring>(rings);
            check_rings(rows, words.size());
            const auto found = proton::count(view(words), rows);
            return nb::make_tuple(found.begins, found.marks, found.async, found.values, found.reserved,
                                  found.wide, found.orphans);
        },
        "words"_a.noconvert(), "rings"_a.noconvert(),
        "Count the entries of rings, int64 [n, 5]: (begins, other readable ones, asynchronous ones among those, values "
        "among those, entries with reserved bits, whether any stamp is wider than 32 bits, values whose record was "
        "overwritten).");
    m.def(
        "cuda_proton_decode",
        [](const In<uint32_t>& words, const Rows<const int64_t>& rings, unsigned stamp_bits, uint64_t step_back,
           const nb::args& outputs) {
            const auto rows = structs<proton::Ring>(rings);
            check_rings(rows, words.size());
            if (stamp_bits < 32 || stamp_bits > 43) throw nb::value_error("no such stamp");
            Columns columns(outputs, rows.size());
            std::vector<Room> room(rows.size());
            size_t longest = 0;
            for (size_t i = 0; i < rows.size(); ++i) {
                const auto counts = proton::count(view(words), rows.subspan(i, 1));
                room[i] = {static_cast<size_t>(rows[i].stored), counts.begins, counts.marks};
                longest = std::max(longest, room[i].records);
            }
            const auto room_of = [&](size_t lane) { return room[lane]; };
            return decoded<cuda::Record>(columns, {stamp_bits, true, step_back}, rows.size(), room_of, longest, longest,
                           proton::event_bits,
                           [&](size_t first, size_t count, std::span<cuda::Record> scratch, cuda::LaneDecoder& decoder) {
                               proton::decode(view(words), first, rows.subspan(first, count), scratch,
                                              columns.summaries.subspan(first, count), decoder);
                           });
        },
        "words"_a.noconvert(), "rings"_a.noconvert(), "stamp_bits"_a, "step_back"_a, "outputs"_a,
        "Decode all rings into the columns; results as cuda_decode_records.");

    m.def(
        "cuda_enclosing",
        [](const In<int64_t>& lane_start, const In<uint32_t>& begin, const In<uint32_t>& end,
           const In<uint32_t>& lane, const In<uint32_t>& index, const Out<int64_t>& out) {
            const auto starts = view(lane_start);
            size_t longest = 0;
            for (size_t i = 0; i < starts.size(); ++i) {
                const auto before = i == 0 ? 0 : starts[i - 1];
                if (starts[i] < before || starts[i] > static_cast<int64_t>(begin.size())) {
                    throw nb::value_error("the lanes do not lie one behind the other");
                }
                longest = std::max(longest, static_cast<size_t>(starts[i] - before));
            }
            if (end.size() != begin.size() || lane.size() != index.size() || out.size() != index.size()) {
                throw nb::value_error("columns of different lengths");
            }
            nb::gil_scoped_release nogil;
            std::vector<int64_t> stack(longest);
            cuda::enclosing({starts, view(begin), view(end), view(lane), view(index)}, view(out), stack);
        },
        "lane_start"_a.noconvert(), "begin"_a.noconvert(), "end"_a.noconvert(), "lane"_a.noconvert(),
        "index"_a.noconvert(), "out"_a.noconvert(),
        "Find the innermost region around each record, -1 for none; all of them lane after lane, in write order.");
    m.def(
        "cuda_causes",
        [](const In<int64_t>& start, const In<uint64_t>& key, const In<int64_t>& ts, const In<uint8_t>& is_effect,
           const Out<int64_t>& out) {
            const auto starts = view(start);
            const auto count = static_cast<int64_t>(key.size());
            int64_t longest = 0;
            for (size_t i = 0; i + 1 < starts.size(); ++i) {
                if (starts[i] < 0 || starts[i + 1] < starts[i] || starts[i + 1] > count) {
                    throw nb::value_error("the groups do not lie one behind the other");
                }
                longest = std::max(longest, starts[i + 1] - starts[i]);
            }
            if (ts.size() != key.size() || is_effect.size() != key.size() || out.size() != key.size() ||
                longest > int64_t{UINT32_MAX} || starts.size() < 2 || starts.front() != 0 || starts.back() != count) {
                throw nb::value_error("columns of different lengths");
            }
            nb::gil_scoped_release nogil;
            std::vector<cuda::Event> scratch(static_cast<size_t>(longest));
            cuda::causes(starts, view(key), view(ts), view(is_effect), view(out), scratch);
        },
        "start"_a.noconvert(), "key"_a.noconvert(), "ts"_a.noconvert(), "is_effect"_a.noconvert(),
        "out"_a.noconvert(), "Find the latest cause of each effect within its group, -1 for none.");
    m.def(
        "cuda_pair_regions",
        [](const In<int64_t>& start, const In<uint64_t>& key, const In<int64_t>& ts, const In<uint32_t>& lane,
           const In<uint32_t>& launch, const In<uint8_t>& is_end, const In<uint8_t>& across, bool is_open_once,
           bool starts_first, const Out<int64_t>& partner, const Out<uint8_t>& is_ambiguous) {
            const auto count = key.size();
            for (const auto size : {ts.size(), lane.size(), launch.size(), is_end.size(), across.size(), partner.size(),
                                    is_ambiguous.size()}) {
                if (size != count) throw nb::value_error("columns of different lengths");
            }
            const auto [records, lanes] = largest_block(view(start), view(lane));
            nb::gil_scoped_release nogil;
            std::vector<cuda::RegionEvent> events(records);
            std::vector<uint32_t> first(lanes), last(lanes);
            cuda::pair_regions(
                {view(start), view(key), view(ts), view(lane), view(launch), view(is_end), view(across)},
                {is_open_once, starts_first}, view(partner), view(is_ambiguous), events, first, last);
        },
        "start"_a.noconvert(), "key"_a.noconvert(), "ts"_a.noconvert(), "lane"_a.noconvert(), "launch"_a.noconvert(),
        "is_end"_a.noconvert(), "across"_a.noconvert(), "is_open_once"_a, "starts_first"_a, "partner"_a.noconvert(),
        "is_ambiguous"_a.noconvert(),
        "Pair starts and ends of asynchronous regions: the number of the other record, -1 for none, -2 for a start of what "
        "its lane has open; and 1 for starts with an ambiguous end.");
}
