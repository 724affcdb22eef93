// The reader of CTF streams: bytes and a description in, columns out.
#include "core/wire/ctf/stream_reader.hpp"

#include <nanobind/nanobind.h>

#include <algorithm>
#include <vector>

#include "arrays.hpp"
#include "module.hpp"

namespace nb = nanobind;
using namespace nb::literals;
namespace ctf = lanescope::ctf;

using lanescope::bind::Array;
using lanescope::bind::Rows;

namespace {

constexpr size_t layout_cells = sizeof(ctf::Layout) / sizeof(uint16_t);

// A description, checked: whatever it says, the scanner stays within its bytes.
struct Description {
    ctf::Layout layout;
    uint8_t uuid[16];
    std::vector<ctf::Field> fields;
    std::vector<uint32_t> first;

    ctf::Classes classes() const { return {fields, first}; }
};

bool lies_within(uint16_t where, size_t size, size_t whole, bool may_lack) {
    return where == ctf::absent ? may_lack : where + size <= whole;
}

std::vector<ctf::Field> fields_of(const Rows<const uint16_t>& rows) {
    std::vector<ctf::Field> made(rows.shape(0));
    if (rows.shape(1) != 3) throw nb::value_error("a field is kind, size and length");
    for (size_t i = 0; i < made.size(); ++i) {
        const uint16_t* row = rows.data() + 3 * i;
        if (row[0] > 3 || (row[0] != 1 && row[1] != 1 && row[1] != 2 && row[1] != 4 && row[1] != 8)) {
            throw nb::value_error("no such field");
        }
        made[i] = {static_cast<ctf::Kind>(row[0]), static_cast<uint8_t>(row[1]), row[2]};
    }
    return made;
}

void check_class(std::span<const ctf::Field> fields) {
    if (fields.size() > ctf::most_fields) throw nb::value_error("an event has too many fields");
    for (size_t i = 0; i < fields.size(); ++i) {
        if (fields[i].kind != ctf::Kind::sequence) continue;
        if (fields[i].length >= i || fields[fields[i].length].kind != ctf::Kind::integer) {
            throw nb::value_error("a sequence has no length");
        }
    }
}

Description described(const Array<const uint16_t>& layout, const Array<const uint8_t>& uuid, const Rows<const uint16_t>& fields,
                      const Array<const uint32_t>& first) {
    Description made{};
    if (layout.size() != layout_cells || uuid.size() != 16 || first.size() == 0) throw nb::value_error("no description");
    std::copy_n(layout.data(), layout_cells, reinterpret_cast<uint16_t*>(&made.layout));
    std::copy_n(uuid.data(), 16, made.uuid);
    const ctf::Layout& l = made.layout;
    bool holds = lies_within(l.magic, 4, l.packet_header, false) && lies_within(l.uuid, 16, l.packet_header, false);
    for (const uint16_t where : {l.begin, l.end, l.content, l.size, l.discarded, l.sequence}) {
        holds = holds && lies_within(where, 8, l.packet_header, true);
    }
    for (const uint16_t where : {l.thread, l.complete}) holds = holds && lies_within(where, 4, l.packet_header, true);
    for (const uint16_t size : {l.id_size, l.time_size}) holds = holds && (size == 1 || size == 2 || size == 4 || size == 8);
    holds = holds && l.id_size <= 2 && lies_within(l.id, l.id_size, l.event_header, false) &&
            lies_within(l.time, l.time_size, l.event_header, false);
    if (!holds) throw nb::value_error("a part lies outside of its header");
    made.fields = fields_of(fields);
    made.first.assign(first.data(), first.data() + first.size());
    for (size_t c = 0; c + 1 < made.first.size(); ++c) {
        if (made.first[c] > made.first[c + 1]) throw nb::value_error("classes out of order");
        if (made.first[c + 1] > made.fields.size()) throw nb::value_error("a class has fields that are not there");
        check_class(std::span(made.fields).subspan(made.first[c], made.first[c + 1] - made.first[c]));
    }
    return made;
}

template <class T>
std::span<T> rows_of(const Rows<uint64_t>& array) {
    if (array.shape(1) * sizeof(uint64_t) != sizeof(T)) throw nb::value_error("a table has other columns");
    return {reinterpret_cast<T*>(array.data()), array.shape(0)};
}

}  // namespace

void lanescope::bind::ctf(nb::module_& m) {
    m.attr("CTF_PACKET_COLUMNS") = sizeof(::lanescope::ctf::Packet) / sizeof(uint64_t);
    m.def(
        "ctf_count",
        [](const Array<const uint8_t>& data, const Array<const uint16_t>& layout, const Array<const uint8_t>& uuid,
           const Rows<const uint16_t>& fields, const Array<const uint32_t>& first) {
            const Description about = described(layout, uuid, fields, first);
            ::lanescope::ctf::Counts counts;
            {
                nb::gil_scoped_release nogil;
                counts = scan({data.data(), data.size()}, about.layout, std::span<const uint8_t, 16>(about.uuid),
                              about.classes(), {});
            }
            return nb::make_tuple(counts.packets, counts.events, counts.losses, counts.decoded, counts.padding, counts.lost);
        },
        "data"_a.noconvert(), "layout"_a.noconvert(), "uuid"_a.noconvert(), "fields"_a.noconvert(), "first"_a.noconvert(),
        "Count packets, events and losses of a stream, and its decoded, padding and lost bytes.");
    m.def(
        "ctf_scan",
        [](const Array<const uint8_t>& data, const Array<const uint16_t>& layout, const Array<const uint8_t>& uuid,
           const Rows<const uint16_t>& fields, const Array<const uint32_t>& first, const Rows<uint64_t>& packets,
           const Rows<uint64_t>& losses, const Array<uint16_t>& classes, const Array<uint64_t>& times,
           const Array<uint64_t>& payloads) {
            const Description about = described(layout, uuid, fields, first);
            if (times.size() != classes.size() || payloads.size() != classes.size()) {
                throw nb::value_error("columns of different lengths");
            }
            const ::lanescope::ctf::Output output{rows_of<::lanescope::ctf::Packet>(packets),
                                                  rows_of<::lanescope::ctf::DiscardedRange>(losses),
                                                  {classes.data(), classes.size()},
                                                  {times.data(), times.size()},
                                                  {payloads.data(), payloads.size()}};
            nb::gil_scoped_release nogil;
            scan({data.data(), data.size()}, about.layout, std::span<const uint8_t, 16>(about.uuid), about.classes(),
                 output);
        },
        "data"_a.noconvert(), "layout"_a.noconvert(), "uuid"_a.noconvert(), "fields"_a.noconvert(), "first"_a.noconvert(),
        "packets"_a.noconvert(), "losses"_a.noconvert(), "classes"_a.noconvert(), "times"_a.noconvert(),
        "payloads"_a.noconvert(), "Fill in what `ctf_count` counted, as far as there is room.");
    m.def(
        "ctf_columns",
        [](const Array<const uint8_t>& data, const Rows<const uint16_t>& fields, const Array<const uint64_t>& payloads,
           const Rows<uint64_t>& columns) {
            const auto about = fields_of(fields);
            check_class(about);
            if (columns.shape(0) != 2 * about.size() || columns.shape(1) != payloads.size()) {
                throw nb::value_error("columns of different lengths");
            }
            nb::gil_scoped_release nogil;
            return ::lanescope::ctf::columns({data.data(), data.size()}, about, {payloads.data(), payloads.size()},
                                             {columns.data(), columns.size()});
        },
        "data"_a.noconvert(), "fields"_a.noconvert(), "payloads"_a.noconvert(), "columns"_a.noconvert(),
        "Take the fields of events of one class out, two columns a field: value, or offset and length.");
}
