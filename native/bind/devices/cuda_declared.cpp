// Layouts that are data: fields gathered by number, and lanes decoded from columns.
#include <algorithm>

#include "core/devices/cuda/gather.hpp"
#include "core/devices/cuda/lane_decoder_impl.hpp"
#include "bind/devices/cuda_columns.hpp"
#include "bind/module.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace lanescope::bind::cuda_columns;
namespace gather = lanescope::cuda::gather;

namespace {

using Starts = In<int64_t>;

template <typename T>
void gather_to(const In<uint8_t>& data, const gather::Lanes& lanes, const gather::Field& field, const Out<T>& out) {
    const auto total = static_cast<size_t>(lanes.start.back());
    if (out.size() != total) throw nb::value_error("the column has not one place for each record");
    if (field.width > 8 * sizeof(T)) throw nb::value_error("the field is wider than its column");
    nb::gil_scoped_release nogil;
    const size_t wanted = std::max<size_t>(1, std::min(lanescope::bind::parts(total, size_t{1} << 18), lanes.size()));
    lanescope::bind::each_part(wanted, [&](size_t part) {
        gather::gather(view(data), lanes, field, lanes.size() * part / wanted, lanes.size() * (part + 1) / wanted, view(out));
    });
}

// The starts of lanes in columns of `count` records.
void check_starts(std::span<const int64_t> start, size_t count) {
    bool is_sound = start.size() > 0 && start.front() == 0 && start.back() == static_cast<int64_t>(count);
    for (size_t i = 1; i < start.size(); ++i) is_sound = is_sound && start[i] >= start[i - 1];
    if (!is_sound) throw nb::value_error("the lanes do not lie one behind the other");
}

// Records of a lane, read from the columns.
struct ColumnRecords {
    const uint64_t* stamp;
    const uint16_t* event;
    const uint8_t* kind;
    size_t count;
    uint32_t index;  // of the first

    size_t size() const noexcept { return count; }
    cuda::Record operator[](size_t i) const noexcept {
        return {stamp[i], index + static_cast<uint32_t>(i), event[i], static_cast<cuda::Kind>(kind[i])};
    }
};

// What the kinds of each lane need room for.
std::vector<Room> rooms(std::span<const int64_t> start, std::span<const uint8_t> kind, bool spans) {
    std::vector<Room> found(start.size() - 1);
    for (size_t lane = 0; lane < found.size(); ++lane) {
        for (auto i = static_cast<size_t>(start[lane]); i < static_cast<size_t>(start[lane + 1]); ++i) {
            if (kind[i] > static_cast<uint8_t>(cuda::Kind::empty)) throw nb::value_error("unknown kind of record");
            const auto of = static_cast<cuda::Kind>(kind[i]);
            const bool is_region = of == cuda::Kind::begin || (spans && of == cuda::Kind::finalize);
            found[lane].begins += is_region;
            found[lane].others += !is_region && of < cuda::Kind::unreadable;
        }
        found[lane].records = static_cast<size_t>(start[lane + 1] - start[lane]);
    }
    return found;
}

void check_bits(unsigned stamp_bits) {
    if (stamp_bits < 8 || stamp_bits > 62) throw nb::value_error("no such stamp");
}

}  // namespace

void lanescope::bind::cuda_declared(nb::module_& m) {
    m.def(
        "cuda_gather",
        [](const In<uint8_t>& data, const In<int64_t>& base, const In<int64_t>& first, const In<int64_t>& ring,
           const Starts& start, int64_t stride, uint64_t bit, unsigned width, nb::object out) {
            const gather::Lanes lanes{view(base), view(first), view(ring), view(start), stride};
            const gather::Field field{bit / 8, static_cast<unsigned>(bit % 8), width};
            const auto count = base.size();
            if (first.size() != count || ring.size() != count || start.size() != count + 1) {
                throw nb::value_error("columns of different lengths");
            }
            if (width < 1 || width > 64 || field.shift + width > 64) throw nb::value_error("no such field");
            check_starts(lanes.start, static_cast<size_t>(std::max<int64_t>(0, lanes.start.back())));
            if (!gather::is_inside(lanes, field, data.size())) throw nb::value_error("records outside of the buffer");
            if (width <= 8) gather_to(data, lanes, field, nb::cast<Out<uint8_t>>(out, false));
            else if (width <= 16) gather_to(data, lanes, field, nb::cast<Out<uint16_t>>(out, false));
            else if (width <= 32) gather_to(data, lanes, field, nb::cast<Out<uint32_t>>(out, false));
            else gather_to(data, lanes, field, nb::cast<Out<uint64_t>>(out, false));
        },
        "data"_a.noconvert(), "base"_a.noconvert(), "first"_a.noconvert(), "ring"_a.noconvert(), "start"_a.noconvert(),
        "stride"_a, "bit"_a, "width"_a, "out"_a,
        "Gather a field of the records of all lanes; `out` is of the smallest of uint8, 16, 32 and 64 that holds it.");
    m.def(
        "cuda_read_records",
        [](const In<uint8_t>& data, const In<int64_t>& base, const In<int64_t>& first, const In<int64_t>& ring,
           const Starts& start, int64_t stride, const Rows<const int64_t>& fields, const In<uint8_t>& kinds,
           uint64_t empty_value, const In<int64_t>& expected, const Out<uint64_t>& stamp, const Out<uint16_t>& event,
           const Out<uint8_t>& kind) {
            const gather::Lanes lanes{view(base), view(first), view(ring), view(start), stride};
            const auto count = base.size();
            if (first.size() != count || ring.size() != count || start.size() != count + 1 || fields.shape(0) != 5 ||
                fields.shape(1) != 3 || stamp.size() != event.size() || stamp.size() != kind.size()) {
                throw nb::value_error("columns of different lengths");
            }
            check_starts(lanes.start, stamp.size());
            gather::Roles roles;
            gather::WordField* const all[] = {&roles.stamp, &roles.event, &roles.kind, &roles.empty, &roles.agree};
            for (size_t i = 0; i < 5; ++i) {
                const auto byte = fields.data()[3 * i], shift = fields.data()[3 * i + 1], width = fields.data()[3 * i + 2];
                if (byte < 0 || shift < 0 || width < 0 || shift + width > 64 || shift > 63) {
                    throw nb::value_error("no such field");
                }
                const auto mask = width == 0 ? 0 : ~uint64_t{0} >> (64 - width);
                *all[i] = {static_cast<uint64_t>(byte), static_cast<unsigned>(shift), mask};
                if (!gather::is_inside(lanes, all[i]->word(), data.size())) {
                    throw nb::value_error("records outside of the buffer");
                }
            }
            if (kinds.size() <= roles.kind.mask || roles.event.mask > 0xFFFF ||
                (roles.agree.mask != 0 && expected.size() != count)) {
                throw nb::value_error("columns of different lengths");
            }
            for (const auto of : view(kinds)) {
                if (of > static_cast<uint8_t>(cuda::Kind::empty)) throw nb::value_error("unknown kind of record");
            }
            roles.kinds = view(kinds), roles.empty_value = empty_value, roles.expected = view(expected);
            nb::gil_scoped_release nogil;
            const size_t wanted = std::max<size_t>(1, std::min(lanescope::bind::parts(stamp.size(), size_t{1} << 18), count));
            lanescope::bind::each_part(wanted, [&](size_t part) {
                gather::read(view(data), lanes, roles, count * part / wanted, count * (part + 1) / wanted, view(stamp),
                             view(event), view(kind));
            });
        },
        "data"_a.noconvert(), "base"_a.noconvert(), "first"_a.noconvert(), "ring"_a.noconvert(), "start"_a.noconvert(),
        "stride"_a, "fields"_a.noconvert(), "kinds"_a.noconvert(), "empty_value"_a, "expected"_a.noconvert(),
        "stamp"_a.noconvert(), "event"_a.noconvert(), "kind"_a.noconvert(),
        "Read records whose roles are fields: int64 [5, 3] of first byte of a word, shift and width (0: none) for stamp, "
        "event, kind, empty and agree.");
    m.def(
        "cuda_decode_columns",
        [](const In<uint64_t>& stamp, const In<uint16_t>& event, const In<uint8_t>& kind, const Starts& start,
           const In<uint8_t>& overwritten, const In<uint8_t>& full, unsigned stamp_bits, uint64_t step_back, bool split,
           const nb::args& outputs) {
            check_bits(stamp_bits);
            check_starts(view(start), stamp.size());
            const auto lanes = start.size() - 1;
            if (event.size() != stamp.size() || kind.size() != stamp.size() || overwritten.size() != lanes ||
                full.size() != lanes) {
                throw nb::value_error("columns of different lengths");
            }
            const uint64_t mask = (uint64_t{1} << stamp_bits) - 1;
            for (const auto value : view(stamp)) {
                if (value > mask) throw nb::value_error("a stamp is wider than its clock");
            }
            const auto room = rooms(view(start), view(kind), false);
            Columns columns(outputs, lanes);
            size_t longest = 0;
            for (const auto& lane : room) longest = std::max(longest, lane.records);
            return decoded<uint8_t>(
                columns, {stamp_bits, split, step_back}, lanes, [&](size_t lane) { return room[lane]; }, longest, 1, 16,
                [&](size_t from, size_t count, std::span<uint8_t>, cuda::LaneDecoder& decoder) {
                    for (size_t lane = from; lane < from + count; ++lane) {
                        const auto at = start.data()[lane];
                        const ColumnRecords records{stamp.data() + at, event.data() + at, kind.data() + at,
                                                    room[lane].records, overwritten.data()[lane]};
                        decoder.decode(static_cast<uint32_t>(lane), records, full.data()[lane] != 0,
                                       columns.summaries[lane]);
                    }
                });
        },
        "stamp"_a.noconvert(), "event"_a.noconvert(), "kind"_a.noconvert(), "start"_a.noconvert(),
        "overwritten"_a.noconvert(), "full"_a.noconvert(), "stamp_bits"_a, "step_back"_a, "split"_a, "outputs"_a,
        "Decode lanes of begins, ends and instants; results as cuda_tirx_decode.");
    m.def(
        "cuda_decode_spans",
        [](const In<uint64_t>& begin, const In<uint64_t>& end, const In<uint16_t>& event, const In<uint8_t>& kind,
           const Starts& start, const In<uint8_t>& overwritten, const In<uint8_t>& full, unsigned stamp_bits,
           const nb::args& outputs) {
            check_bits(stamp_bits);
            check_starts(view(start), begin.size());
            const auto lanes = start.size() - 1;
            if (event.size() != begin.size() || kind.size() != begin.size() || end.size() != begin.size() ||
                overwritten.size() != lanes || full.size() != lanes) {
                throw nb::value_error("columns of different lengths");
            }
            const auto room = rooms(view(start), view(kind), true);
            Columns columns(outputs, lanes);
            size_t longest = 0;
            for (const auto& lane : room) longest = std::max(longest, lane.records);
            return decoded<cuda::SpanRecord>(
                columns, {stamp_bits, true, 0}, lanes, [&](size_t lane) { return room[lane]; }, longest, longest, 16,
                [&](size_t from, size_t count, std::span<cuda::SpanRecord> records, cuda::LaneDecoder& decoder) {
                    for (size_t lane = from; lane < from + count; ++lane) {
                        const auto at = static_cast<size_t>(start.data()[lane]);
                        for (size_t i = 0; i < room[lane].records; ++i) {
                            records[i] = {begin.data()[at + i], end.data()[at + i],
                                          static_cast<uint32_t>(i) + overwritten.data()[lane], event.data()[at + i],
                                          static_cast<cuda::Kind>(kind.data()[at + i])};
                        }
                        decoder.decode_spans(static_cast<uint32_t>(lane), records.first(room[lane].records),
                                             full.data()[lane] != 0, columns.summaries[lane]);
                    }
                });
        },
        "begin"_a.noconvert(), "end"_a.noconvert(), "event"_a.noconvert(), "kind"_a.noconvert(), "start"_a.noconvert(),
        "overwritten"_a.noconvert(), "full"_a.noconvert(), "stamp_bits"_a, "outputs"_a,
        "Decode lanes whose records are whole regions; kind 3 is one without an end. Results as cuda_tirx_decode.");
}
