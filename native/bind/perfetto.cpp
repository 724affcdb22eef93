// The TrackEvent encoder: numpy arrays in, blocks of whole packets out.
#include "core/perfetto/encoder.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <deque>
#include <optional>
#include <string>

#include "module.hpp"

namespace nb = nanobind;
using namespace nb::literals;
namespace pf = lanescope::perfetto;

namespace {

template <class T>
using Input = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Any = nb::ndarray<nb::ro, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <class T>
std::span<const T> span_of(const Input<T>& array) {
    return {array.data(), array.size()};
}

void require(bool holds, const char* what) {
    if (!holds) throw nb::value_error(what);
}

// Texts end to end, as the Arrow buffers of a large-utf8 column.
struct TextArrays {
    Input<uint8_t> bytes;
    Input<int64_t> offsets;

    pf::Texts texts() const {
        const std::span<const int64_t> at = span_of(offsets);
        for (size_t i = 0; i + 1 < at.size(); ++i) require(at[i] <= at[i + 1], "text offsets fall");
        require(at.empty() || (at[0] >= 0 && static_cast<size_t>(at.back()) <= bytes.size()), "text offsets outside");
        return {span_of(bytes), at};
    }
};

struct ArgumentArrays {
    std::string name;
    std::string type;
    Any values;
    Input<uint8_t> known;
    TextArrays texts;
    int64_t base;
    int64_t count;
    Input<int64_t> first;
    Input<int64_t> row;

    pf::Argument argument() const {
        static constexpr const char* kTypes[] = {"int64",  "int32", "uint64",  "uint32", "uint16",
                                                 "uint8", "float64", "bool", "text",   "utf8"};
        static constexpr size_t kSizes[] = {8, 4, 8, 4, 2, 1, 8, 1, 4, 0};
        size_t type_index = 0;
        while (type_index < std::size(kTypes) && type != kTypes[type_index]) ++type_index;
        require(type_index < std::size(kTypes), "unknown type of an argument");
        pf::Argument out;
        out.name = {reinterpret_cast<const uint8_t*>(name.data()), name.size()};
        out.type = static_cast<pf::ValueType>(type_index);
        out.texts = texts.texts();
        if (out.type == pf::ValueType::utf8) {
            out.rows = out.texts.size();
        } else {
            require(values.itemsize() == kSizes[type_index], "values are not of the declared type");
            out.values = values.data();
            out.rows = values.size();
        }
        out.known = span_of(known);
        out.base = base;
        out.count = count;
        out.first = span_of(first);
        out.row = span_of(row);
        require(out.known.empty() || out.known.size() == out.rows, "known is not as long as the values");
        require(count >= 0 && (out.first.empty() ? static_cast<size_t>(count) <= out.rows
                                                 : out.first.size() == static_cast<size_t>(count) + 1),
                "rows of an argument do not match its events");
        return out;
    }
};

struct EventArrays {
    Input<int64_t> begin;
    Input<int64_t> length;
    Input<uint8_t> known;
    Input<int32_t> name;
    Input<int32_t> category;
    Input<int64_t> order;
    Input<int64_t> flow_first;
    Input<uint64_t> flow_id;
    Input<uint8_t> flow_end;
    std::deque<ArgumentArrays> arguments;  // names stay where they are

    pf::Events events(bool with_length) const {
        const size_t n = begin.size();
        require(length.size() == (with_length ? n : 0) && (known.size() == 0 || known.size() == n) && name.size() == n &&
                    (category.size() == 0 || category.size() == n) && (flow_first.size() == 0 || flow_first.size() == n + 1) &&
                    flow_id.size() == flow_end.size(),
                "event columns of different lengths");
        pf::Events out{span_of(begin),    span_of(length),     span_of(known),   span_of(name),     span_of(category),
                       span_of(order),    span_of(flow_first), span_of(flow_id), span_of(flow_end), {}};
        for (const ArgumentArrays& argument : arguments) out.arguments.push_back(argument.argument());
        return out;
    }
};

using Ranges = nb::ndarray<const int64_t, nb::shape<-1, 6>, nb::c_contig, nb::device::cpu>;

// Keeps the arrays alive for as long as the encoder reads them.
struct Writer {
    EventArrays slices;
    EventArrays instants;
    Input<int64_t> sample_ts;
    Input<double> sample_value;
    Input<int64_t> sample_order;
    TextArrays names;
    TextArrays categories;
    std::optional<pf::Encoder> encoder;

    void start(const Input<uint64_t>& uuids, const Ranges& ranges) {
        require(uuids.size() == ranges.shape(0), "lanes of different number");
        require(sample_ts.size() == sample_value.size(), "sample columns of different lengths");
        std::vector<pf::Lane> lanes(uuids.size());
        for (size_t i = 0; i < lanes.size(); ++i) {
            const int64_t* r = ranges.data() + 6 * i;
            lanes[i] = {uuids.data()[i], r[0], r[1], r[2], r[3], r[4], r[5]};
        }
        encoder.emplace(slices.events(true), instants.events(false),
                        pf::Samples{span_of(sample_ts), span_of(sample_value), span_of(sample_order)}, names.texts(),
                        categories.texts(), std::move(lanes));
    }

    nb::object fill(size_t target) {
        require(encoder.has_value(), "start() comes first");
        std::span<const uint8_t> block;
        {
            nb::gil_scoped_release release;
            block = encoder->fill(target);
        }
        switch (encoder->status()) {
            case pf::Status::ok: break;
            case pf::Status::bad_index: throw nb::value_error("an index or code lies outside its table");
            case pf::Status::bad_nesting: throw nb::value_error("slices of a row cross or go back in time");
            case pf::Status::bad_time: throw nb::value_error("a time lies before the epoch");
        }
        auto* bytes = const_cast<char*>(reinterpret_cast<const char*>(block.data()));
        static char none;
        return nb::steal(PyMemoryView_FromMemory(block.empty() ? &none : bytes, static_cast<Py_ssize_t>(block.size()), PyBUF_READ));
    }
};

}  // namespace

void lanescope::bind::perfetto(nb::module_& m) {
    nb::class_<TextArrays>(m, "PerfettoTexts", "Texts end to end: UTF-8 bytes and offsets, int64 [n + 1].")
        .def(nb::init<Input<uint8_t>, Input<int64_t>>(), "bytes"_a.noconvert(), "offsets"_a.noconvert());

    nb::class_<EventArrays>(m, "PerfettoEvents", "Slices, or instants where `length` is empty.")
        .def(
            "__init__",
            [](EventArrays* self, Input<int64_t> begin, Input<int64_t> length, Input<uint8_t> known, Input<int32_t> name,
               Input<int32_t> category, Input<int64_t> order, Input<int64_t> flow_first, Input<uint64_t> flow_id,
               Input<uint8_t> flow_end) {
                new (self) EventArrays{std::move(begin), std::move(length),     std::move(known),
                                       std::move(name),  std::move(category),   std::move(order),
                                       std::move(flow_first), std::move(flow_id), std::move(flow_end), {}};
            },
            "begin"_a.noconvert(), "length"_a.noconvert(), "known"_a.noconvert(), "name"_a.noconvert(),
            "category"_a.noconvert(), "order"_a.noconvert(), "flow_first"_a.noconvert(), "flow_id"_a.noconvert(),
            "flow_end"_a.noconvert())
        .def(
            "argument",
            [](EventArrays& self, std::string name, std::string type, Any values, Input<uint8_t> known, TextArrays texts,
               int64_t base, int64_t count, Input<int64_t> first, Input<int64_t> row) {
                self.arguments.push_back({std::move(name), std::move(type), std::move(values), std::move(known),
                                          std::move(texts), base, count, std::move(first), std::move(row)});
            },
            "name"_a, "type"_a, "values"_a.noconvert(), "known"_a.noconvert(), "texts"_a, "base"_a, "count"_a,
            "first"_a.noconvert(), "row"_a.noconvert(), "Attach a column to the events base .. base + count.");

    nb::class_<Writer>(m, "PerfettoEncoder", "Encodes packets block by block.")
        .def(
            "__init__",
            [](Writer* self, EventArrays slices, EventArrays instants, Input<int64_t> sample_ts, Input<double> sample_value,
               Input<int64_t> sample_order, TextArrays names, TextArrays categories, Input<uint64_t> lane_uuid,
               Ranges lane_ranges) {
                new (self) Writer{std::move(slices),     std::move(instants),     std::move(sample_ts),
                                  std::move(sample_value), std::move(sample_order), std::move(names),
                                  std::move(categories), std::nullopt};
                try {
                    self->start(lane_uuid, lane_ranges);
                } catch (...) {
                    self->~Writer();
                    throw;
                }
            },
            "slices"_a, "instants"_a, "sample_ts"_a.noconvert(), "sample_value"_a.noconvert(), "sample_order"_a.noconvert(),
            "names"_a, "categories"_a, "lane_uuid"_a.noconvert(), "lane_ranges"_a.noconvert(),
            "Lanes are written in the given order; a row of lane_ranges is where its slices, instants and samples begin and "
            "end in their orders.")
        .def("fill", &Writer::fill, "target"_a,
             "Return a view of the next whole packets, about `target` bytes, valid until the next call; empty at the end.");
}
