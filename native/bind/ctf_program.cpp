// Traces of any producer: a compiled description and the bytes of a stream in, columns out.
#include "core/wire/ctf/program.hpp"

#include <nanobind/nanobind.h>

#include <algorithm>
#include <memory>

#include "arrays.hpp"
#include "ctf_program.hpp"
#include "module.hpp"

namespace nb = nanobind;
using namespace nb::literals;
namespace ctf = lanescope::ctf;

using lanescope::bind::Array;
using lanescope::bind::Rows;

namespace {

ctf::Program program_of(const Rows<const int64_t>& steps, const Rows<const uint64_t>& choices, size_t slots) {
    if (steps.shape(1) != 8 || choices.shape(1) != 3 || slots > size_t{1} << 24) throw nb::value_error("no program");
    ctf::Program made;
    made.slots = slots;
    made.steps.reserve(steps.shape(0));
    for (size_t i = 0; i < steps.shape(0); ++i) {
        const int64_t* row = steps.data() + 8 * i;
        const bool is_choice = row[0] == static_cast<int64_t>(ctf::Op::choice);
        if (row[0] < 0 || row[0] > 9 || row[1] < 0 || row[1] > 15 || row[2] < 0 || row[2] > (is_choice ? 1 << 20 : 64) ||
            row[3] < -1 || row[3] > INT32_MAX || row[4] < -1 || row[4] > 15 || row[5] < -1 || row[5] > INT32_MAX ||
            row[7] < 0 || row[7] > UINT32_MAX) {
            throw nb::value_error("no such step");
        }
        made.steps.push_back({static_cast<ctf::Op>(row[0]), static_cast<uint8_t>(row[1]), static_cast<int8_t>(row[4]),
                              static_cast<uint8_t>(is_choice ? 0 : row[2]), static_cast<int32_t>(row[3]),
                              static_cast<int32_t>(row[5]), static_cast<uint32_t>(row[7]), static_cast<uint64_t>(row[6]),
                              static_cast<uint32_t>(is_choice ? row[2] : 0)});
    }
    for (size_t i = 0; i < choices.shape(0); ++i) {
        const uint64_t* row = choices.data() + 3 * i;
        made.choices.push_back({row[0], row[1], row[2]});
    }
    if (!made.is_sound()) throw nb::value_error("a program leads astray");
    return made;
}

template <class T>
std::vector<uint64_t> flat(const std::vector<T>& rows) {
    const auto* data = reinterpret_cast<const uint64_t*>(rows.data());
    return {data, data + rows.size() * (sizeof(T) / sizeof(uint64_t))};
}

}  // namespace

ctf::Extraction lanescope::bind::extraction_of(const Rows<const int64_t>& steps, const Rows<const uint64_t>& choices,
                                               size_t slots, uint64_t packet, uint64_t event) {
    ctf::Extraction made{program_of(steps, choices, slots), packet, event};
    if (packet >= made.program.steps.size() || event >= made.program.steps.size()) {
        throw nb::value_error("a program leads astray");
    }
    return made;
}

void lanescope::bind::ctf_program(nb::module_& m) {
    nb::class_<ctf::Trace>(m, "CtfTrace", "A description of a CTF trace, compiled.")
        .def(
            "__init__",
            [](ctf::Trace* self, const Rows<const int64_t>& steps, const Rows<const uint64_t>& choices, size_t slots,
               uint64_t header, const Rows<const uint64_t>& streams, const Rows<const uint64_t>& events, nb::bytes uuid,
               nb::bytes magic, size_t carried) {
                ctf::Trace made;
                made.program = program_of(steps, choices, slots);
                made.header = header;
                if (streams.shape(1) != 5 || events.shape(1) != 2) throw nb::value_error("a table has other columns");
                for (size_t i = 0; i < streams.shape(0); ++i) {
                    const uint64_t* row = streams.data() + 5 * i;
                    made.streams.push_back({row[0], row[1], row[2], row[3], row[4]});
                }
                for (size_t i = 0; i < events.shape(0); ++i) {
                    made.events.push_back({events.data()[2 * i], events.data()[2 * i + 1]});
                }
                made.uuid.assign(uuid.c_str(), uuid.c_str() + uuid.size());
                made.magic.assign(magic.c_str(), magic.c_str() + magic.size());
                if (carried > 64) throw nb::value_error("too many columns");
                made.carried = carried;
                if (!made.is_sound()) throw nb::value_error("a program leads astray");
                new (self) ctf::Trace(std::move(made));
            },
            "steps"_a.noconvert(), "choices"_a.noconvert(), "slots"_a, "header"_a, "streams"_a.noconvert(),
            "events"_a.noconvert(), "uuid"_a, "magic"_a, "carried"_a = 0)
        .def(
            "walk",
            [](const ctf::Trace& self, const Array<const uint8_t>& data, uint64_t begin, uint64_t clock, uint64_t most) {
                ctf::Window window{begin, clock, most};
                ctf::Walked walked = [&] {
                    nb::gil_scoped_release nogil;
                    return walk_trace({data.data(), data.size()}, self, window);
                }();
                auto packets = to_table(flat(walked.packets), sizeof(ctf::TracePacket) / sizeof(uint64_t));
                auto losses = to_table(flat(walked.losses), 2);
                return nb::make_tuple(packets, losses, to_numpy(walked.kinds), to_numpy(walked.times),
                                      to_numpy(walked.places), to_numpy(walked.contexts),
                                      to_table(std::move(walked.carried), std::max<size_t>(self.carried, 1)), walked.decoded, walked.padding, walked.lost, window.begin, window.clock);
            },
            "data"_a.noconvert(), "begin"_a = 0, "clock"_a = 0, "most"_a = UINT64_MAX,
            "Read packets from byte `begin` on: tables of packets and lost ranges, columns of events, bytes, where to go on.");
    m.def(
        "ctf_counts",
        [](const Array<const uint32_t>& kinds, size_t size) {
            std::vector<uint64_t> counts(size);
            {
                nb::gil_scoped_release nogil;
                for (const uint32_t kind : span_of(kinds)) {
                    if (kind < size) ++counts[kind];
                }
            }
            return to_numpy(std::move(counts));
        },
        "kinds"_a.noconvert(), "size"_a, "Count how many of each number below `size` there are.");
    m.def(
        "ctf_lookup",
        [](const Array<const int32_t>& table, const Array<const uint32_t>& rows) {
            Growing<int32_t> found;
            bool is_inside = true;
            {
                nb::gil_scoped_release nogil;
                const auto values = span_of(table);
                if (rows.size() != 0) found.grow(rows.size());
                for (const uint32_t row : span_of(rows)) {
                    const bool is_row = row < values.size();
                    is_inside = is_inside && is_row;
                    found.push_within(is_row ? values[row] : 0);
                }
            }
            if (!is_inside) throw nb::index_error("no such row");
            return to_numpy(found);
        },
        "table"_a.noconvert(), "rows"_a.noconvert(), "Return the value of each row of a table.");
    m.def(
        "ctf_leaves",
        [](const Array<const uint8_t>& data, const Rows<const int64_t>& steps, const Rows<const uint64_t>& choices,
           size_t slots, uint64_t packet, uint64_t event, const Array<const uint64_t>& places,
           const Array<const uint64_t>& begins, const Rows<uint64_t>& columns) {
            const ctf::Extraction wanted = extraction_of(steps, choices, slots, packet, event);
            if (columns.shape(0) % 2 != 0 || columns.shape(1) != places.size() || begins.size() != places.size()) {
                throw nb::value_error("columns of different lengths");
            }
            nb::gil_scoped_release nogil;
            return leaf_columns({data.data(), data.size()}, wanted, {places.data(), places.size()},
                                {begins.data(), begins.size()}, columns.shape(0) / 2, {columns.data(), columns.size()});
        },
        "data"_a.noconvert(), "steps"_a.noconvert(), "choices"_a.noconvert(), "slots"_a, "packet"_a, "event"_a,
        "places"_a.noconvert(), "begins"_a.noconvert(), "columns"_a.noconvert(),
        "Take fields of events of one kind out, two columns each: value and extent; an extent of 0 means no such field.");
}
