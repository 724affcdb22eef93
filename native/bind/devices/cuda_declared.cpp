// Layouts that are data: fields gathered by number, and lanes decoded from columns.
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <bit>
#include <tuple>

#include "core/devices/cuda/declared_lanes.hpp"
#include "core/devices/cuda/gather.hpp"
#include "core/devices/cuda/lane_decoder_impl.hpp"
#include "bind/devices/cuda_columns.hpp"
#include "bind/module.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace lanescope::bind::cuda_columns;
namespace declared = lanescope::cuda::declared;
namespace gather = lanescope::cuda::gather;

namespace {

using Starts = In<int64_t>;

// Call work(from, to) for some of the lanes, on several threads where they have enough records.
template <typename Work>
void each_share(const gather::Lanes& lanes, const Work& work) {
    const auto records = static_cast<size_t>(lanes.start.back());
    const size_t wanted = std::max<size_t>(1, std::min(lanescope::bind::parts(records, size_t{1} << 18), lanes.size()));
    lanescope::bind::each_part(wanted, [&](size_t part) {
        work(lanes.size() * part / wanted, lanes.size() * (part + 1) / wanted);
    });
}

template <typename T>
void gather_to(const In<uint8_t>& data, const gather::Lanes& lanes, const gather::Field& field, const Out<T>& out) {
    const auto total = static_cast<size_t>(lanes.start.back());
    if (out.size() != total) throw nb::value_error("the column has not one place for each record");
    if (field.width > 8 * sizeof(T)) throw nb::value_error("the field is wider than its column");
    nb::gil_scoped_release nogil;
    each_share(lanes, [&](size_t from, size_t to) { gather::gather(view(data), lanes, field, from, to, view(out)); });
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

// Base, first position, ring and start of lanes, and the stride of their records.
using Places = std::tuple<In<int64_t>, In<int64_t>, In<int64_t>, Starts, int64_t>;
// Fields, kinds, empty value, expected values, origin of wide stamps, and bits that they may need from there.
using RoleColumns = std::tuple<Rows<const int64_t>, In<uint8_t>, uint64_t, In<int64_t>, uint64_t, unsigned>;

// What is known of each lane: whether its position 0 represents overwritten records, whether it is full, its cut; and
// whether what is behind the cuts is decoded.
using LaneColumns = std::tuple<In<uint8_t>, In<uint8_t>, In<int64_t>, bool>;

gather::Lanes lanes_of(const Places& places) {
    const auto& [base, first, ring, start, stride] = places;
    const auto count = base.size();
    if (first.size() != count || ring.size() != count || start.size() != count + 1) {
        throw nb::value_error("columns of different lengths");
    }
    check_starts(view(start), static_cast<size_t>(std::max<int64_t>(0, start.data()[count])));
    return {view(base), view(first), view(ring), view(start), stride};
}

// Fields and what their values mean, wherever the records are.
declared::Roles fields_of(const RoleColumns& of) {
    const auto& [fields, kinds, empty_value, expected, origin, wide_bits] = of;
    declared::Roles roles;
    if (fields.shape(0) != std::size(roles.all()) || fields.shape(1) != 3) throw nb::value_error("no such fields");
    for (size_t i = 0; i < std::size(roles.all()); ++i) {
        const auto byte = fields.data()[3 * i], shift = fields.data()[3 * i + 1], width = fields.data()[3 * i + 2];
        if (byte < 0 || shift < 0 || width < 0 || shift > 63 || width > 64 - shift) throw nb::value_error("no such field");
        const auto mask = width == 0 ? 0 : ~uint64_t{0} >> (64 - width);
        *roles.all()[i] = {static_cast<uint64_t>(byte), static_cast<unsigned>(shift), mask};
    }
    if (kinds.size() <= roles.kind.mask || roles.event.mask > 0xFFFF || roles.sm.mask >> 62 != 0 || wide_bits > 63) {
        throw nb::value_error("columns of different lengths");
    }
    for (const auto kind : view(kinds)) {
        if (kind > static_cast<uint8_t>(cuda::Kind::empty)) throw nb::value_error("unknown kind of record");
    }
    roles.kinds = view(kinds), roles.empty_value = empty_value, roles.expected = view(expected);
    roles.is_wide = wide_bits > 0, roles.origin = origin, roles.far_bits = wide_bits;
    return roles;
}

// Refuses roles that are outside of the data.
declared::Roles roles_of(const RoleColumns& of, const gather::Lanes& lanes, size_t size) {
    auto roles = fields_of(of);
    for (const auto* field : roles.all()) {
        if (!gather::is_inside(lanes, field->word(), size)) throw nb::value_error("records outside of the buffer");
    }
    if (roles.agree.mask != 0 && roles.expected.size() != lanes.size()) {
        throw nb::value_error("columns of different lengths");
    }
    return roles;
}

}  // namespace

void lanescope::bind::cuda_declared(nb::module_& m) {
    m.attr("CUDA_LANE_COUNTS") = sizeof(declared::LaneCount) / sizeof(int64_t);
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
        "cuda_count_records",
        [](const In<uint8_t>& data, const Places& places, const RoleColumns& of, const Rows<int64_t>& counts) {
            const auto lanes = lanes_of(places);
            const auto roles = roles_of(of, lanes, data.size());
            const auto found = structs<declared::LaneCount>(counts, lanes.size());
            nb::gil_scoped_release nogil;
            each_share(lanes, [&](size_t from, size_t to) { declared::count(view(data), lanes, roles, from, to, found); });
        },
        "data"_a.noconvert(), "places"_a, "roles"_a, "counts"_a.noconvert(),
        "Count the records of lanes into int64 [lanes, 6]: begins, other readable records, unreadable ones, the position of "
        "the first of those or -1, the SM or -1 for none and -2 for several, the earliest wide stamp. `places`: base, "
        "first, ring, start, stride. `roles`: int64 [6, 3] of first byte of a word, shift and width (0: none) for stamp, event, "
        "kind, empty, agree and SM; kinds by value; the empty value; the expected value of each lane; the origin of wide "
        "stamps and the bits they may need from there, 0 where stamps are not wide.");
    m.def(
        "cuda_words_as_tirx",
        [](const In<uint8_t>& data, const RoleColumns& of, size_t lane, const Out<uint64_t>& out) {
            auto roles = fields_of(of);
            const auto lanes = roles.expected.size();
            for (const auto* field : roles.all()) {
                if (field->byte != 0) throw nb::value_error("a field that is not in the word");
            }
            if (lane >= lanes || lanes > size_t{1} << 20 || data.size() != 8 * out.size()) {
                throw nb::value_error("columns of different lengths");
            }
            nb::gil_scoped_release nogil;
            const auto words = view(out);
            const auto wanted = lanescope::bind::parts(words.size(), size_t{1} << 18);
            lanescope::bind::each_part(wanted, [&](size_t part) {
                const auto from = words.size() * part / wanted, to = words.size() * (part + 1) / wanted;
                declared::to_tirx(view(data).subspan(8 * from), roles, (lane + from) % lanes, words.subspan(from, to - from));
            });
        },
        "data"_a.noconvert(), "roles"_a, "lane"_a, "out"_a.noconvert(),
        "Rewrite records of 8 bytes, one of each lane in turn and the first of `lane`, as words of TIRx v1; those that are "
        "no record of their lane name another one. Roles as cuda_count_records has them, with fields in byte 0.");
    m.def(
        "cuda_decode_records",
        [](const In<uint8_t>& data, const Places& places, const RoleColumns& of, const Rows<const int64_t>& counts,
           const LaneColumns& known, unsigned stamp_bits, uint64_t step_back, bool split, const nb::args& outputs) {
            check_bits(stamp_bits);
            const auto& [overwritten, full, cuts, keeps_earlier] = known;
            const auto lanes = lanes_of(places);
            const auto roles = roles_of(of, lanes, data.size());
            const auto found = structs<declared::LaneCount>(counts);
            if (found.size() != lanes.size() || overwritten.size() != lanes.size() || full.size() != lanes.size() ||
                (cuts.size() != 0 && (lanes.size() == 0 || cuts.size() % lanes.size() != 0))) {
                throw nb::value_error("columns of different lengths");
            }
            const auto depth = cuts.size() == 0 ? 1 : cuts.size() / lanes.size();
            for (size_t i = 0; i < cuts.size(); ++i) {
                const bool falls = i % depth != 0 && cuts.data()[i] < cuts.data()[i - 1];
                if (cuts.data()[i] < 0 || falls) throw nb::value_error("no such cuts");
            }
            const declared::LaneFacts facts{view(overwritten), view(full), view(cuts), keeps_earlier};
            const bool is_narrow = roles.stamp.mask >> stamp_bits == 0;
            if (roles.is_wide ? roles.far_bits > stamp_bits : !is_narrow) throw nb::value_error("a stamp is wider than its clock");
            Columns columns(outputs, lanes.size());
            size_t longest = 0;
            const auto length = [&](size_t lane) { return static_cast<size_t>(lanes.start[lane + 1] - lanes.start[lane]); };
            for (size_t lane = 0; lane < lanes.size(); ++lane) longest = std::max(longest, length(lane));
            const auto room_of = [&](size_t lane) {
                const auto at_most = [&](int64_t count) { return std::min(length(lane), static_cast<size_t>(std::max<int64_t>(0, count))); };
                const auto begins = at_most(found[lane].begins), others = at_most(found[lane].others);
                return Room{begins + others, begins, others};
            };
            const auto scratch = declared::is_copied(lanes, roles) ? declared::side_by_side * longest : 0;
            const auto event_bits = static_cast<unsigned>(std::bit_width(roles.event.mask));
            return decoded<uint64_t>(columns, {stamp_bits, split, step_back}, lanes.size(), room_of, longest, scratch,
                                     event_bits,
                                     [&](size_t from, size_t count, std::span<uint64_t> room, cuda::LaneDecoder& decoder) {
                                         declared::decode(view(data), lanes, roles, from, from + count, facts, room,
                                                          columns.summaries, decoder);
                                     });
        },
        "data"_a.noconvert(), "places"_a, "roles"_a, "counts"_a.noconvert(), "known"_a, "stamp_bits"_a,
        "step_back"_a, "split"_a, "outputs"_a,
        "Decode lanes straight from the bytes into the columns: (slices, instants, gaps, flags of any slice, slices below "
        "the resolution, tick step or 0). Places, roles and counts as cuda_count_records has them, or larger counts. "
        "`known` of the lanes: whether position 0 represents overwritten records, whether more may have been dropped than is "
        "counted, the first positions that earlier launches left (as many for each lane and not falling; empty: there are "
        "none), and whether those are decoded.");
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
        "Decode lanes of begins, ends and instants; results as cuda_decode_records.");
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
        "Decode lanes whose records are whole regions; kind 3 is one without an end. Results as cuda_decode_records.");
}
