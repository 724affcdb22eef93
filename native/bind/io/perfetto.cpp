// The TrackEvent encoder: numpy arrays in, blocks of whole packets out.
#include "core/io/perfetto/encoder.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

#include "bind/events.hpp"
#include "bind/module.hpp"
#include "core/io/perfetto/flows.hpp"
#include "core/trace/columns.hpp"
#include "core/wire/pages.hpp"

namespace nb = nanobind;
using namespace nb::literals;
namespace pf = lanescope::perfetto;

using namespace lanescope::bind;

namespace {

// All that encoders read; the arrays stay for as long as one of them does.
class Drawing {
public:
    Drawing(EventArrays slices, EventArrays instants, SampleArrays samples, TextArrays names, TextArrays categories,
            std::vector<pf::Lane> lanes, int64_t origin, bool is_part, uint64_t flow_base)
        : slices_(std::move(slices)),
          instants_(std::move(instants)),
          samples_(std::move(samples)),
          names_(std::move(names)),
          categories_(std::move(categories)),
          lanes_(std::move(lanes)),
          origin_(origin),
          is_part_(is_part),
          flow_base_(flow_base),
          slice_events_(slices_.events(true)),
          instant_events_(instants_.events(false)) {}

    std::unique_ptr<pf::Encoder> encoder() const {
        return std::make_unique<pf::Encoder>(slice_events_, instant_events_, samples_.samples(), names_.texts(),
                                             categories_.texts(), lanes_, origin_, is_part_, flow_base_);
    }

private:
    EventArrays slices_;
    EventArrays instants_;
    SampleArrays samples_;
    TextArrays names_;
    TextArrays categories_;
    std::vector<pf::Lane> lanes_;
    int64_t origin_;
    bool is_part_;
    uint64_t flow_base_;
    pf::Events slice_events_;
    pf::Events instant_events_;
};

// An encoder that takes memory from its first block to its last.
struct Writer {
    std::shared_ptr<const Drawing> drawing;
    std::optional<pf::Encoder::Part> part{};
    std::unique_ptr<pf::Encoder> encoder{};
    bool is_done = false;

    std::vector<Writer*> parts(size_t events) const {
        std::vector<Writer*> found;
        for (const pf::Encoder::Part& one : drawing->encoder()->parts(events)) found.push_back(new Writer{drawing, one});
        return found;
    }

    nb::object fill(size_t target, bool keeps_last) {
        static char none;
        if (is_done) return nb::steal(PyMemoryView_FromMemory(&none, 0, PyBUF_READ));
        std::span<const uint8_t> block;
        {
            nb::gil_scoped_release release;
            if (!encoder) {
                encoder = drawing->encoder();
                if (part) encoder->restrict_to(*part);
            }
            block = encoder->fill(target, keeps_last);
        }
        switch (encoder->status()) {
            case pf::Status::ok: break;
            case pf::Status::bad_index: throw nb::value_error("an index or code lies outside its table");
            case pf::Status::bad_nesting: throw nb::value_error("slices of a row cross or go back in time");
            case pf::Status::bad_time: throw std::overflow_error("a time lies before the epoch");
        }
        auto* bytes = const_cast<char*>(reinterpret_cast<const char*>(block.data()));
        if (block.empty()) {
            is_done = true;
            if (!keeps_last) encoder.reset();
        }
        return nb::steal(PyMemoryView_FromMemory(block.empty() ? &none : bytes, static_cast<Py_ssize_t>(block.size()), PyBUF_READ));
    }
};

using NumpyInt64 = nb::ndarray<nb::numpy, int64_t, nb::ndim<1>>;

NumpyInt64 running_flows(const Input<int64_t>& source, const Input<int64_t>& destination, const Input<int64_t>& left,
                         const Input<int64_t>& arrived, const Input<int64_t>& slice_ts) {
    const size_t n = source.size();
    require(destination.size() == n && arrived.size() == n && (left.size() == 0 || left.size() == n),
            "flow columns of different lengths");
    std::vector<int64_t> found;
    bool is_inside;
    {
        nb::gil_scoped_release release;
        is_inside = pf::running_flows(span_of(source), span_of(destination), span_of(left), span_of(arrived), span_of(slice_ts), found);
    }
    require(is_inside, "a flow lies outside the slices");
    return to_numpy(std::move(found));
}

int64_t flow_states(const Input<int64_t>& source, const Input<int64_t>& destination, const Input<int64_t>& span_begin,
                    const Input<int64_t>& span_length, const Input<uint8_t>& span_known, const Input<int64_t>& point_ts,
                    const Array<uint8_t>& state) {
    const size_t n = source.size();
    const size_t spans = span_begin.size();
    require(destination.size() == n && state.size() == n && span_length.size() == spans &&
                (span_known.size() == 0 || span_known.size() == spans),
            "flow columns of different lengths");
    int64_t tied;
    {
        nb::gil_scoped_release release;
        const pf::FlowEvents events{span_of(span_begin), span_of(span_length), span_of(span_known), span_of(point_ts)};
        tied = pf::flow_states(events, span_of(source), span_of(destination), span_of(state));
    }
    require(tied >= 0, "a flow lies outside the events");
    return tied;
}

nb::tuple number_flows(const Input<int64_t>& source, const Input<int64_t>& destination, const Input<int64_t>& left,
                       const Input<int64_t>& arrived, const Input<int64_t>& span_begin, const Input<int64_t>& span_length,
                       const Input<uint8_t>& span_known, const Input<int64_t>& point_ts, const Input<int32_t>& kind,
                       uint32_t kinds) {
    const size_t n = source.size();
    const size_t spans = span_begin.size();
    require(destination.size() == n && left.size() == n && arrived.size() == n && (kind.size() == n || kinds == 1) &&
                span_length.size() == spans && (span_known.size() == 0 || span_known.size() == spans),
            "flow columns of different lengths");
    require(n < uint64_t{1} << 31 && kinds < uint32_t{1} << 28, "more flows or kinds than 32 bits number");
    std::vector<int64_t> sizes(size_t{kinds} * pf::flow_places * pf::flow_places);
    std::vector<uint32_t> number;
    bool is_inside;
    {
        nb::gil_scoped_release release;
        std::vector<uint32_t> group(n);
        if (kinds > 1) std::copy_n(kind.data(), n, group.begin());
        const pf::FlowEvents events{span_of(span_begin), span_of(span_length), span_of(span_known), span_of(point_ts)};
        is_inside = std::ranges::all_of(group, [kinds](uint32_t each) { return each < kinds; }) &&
                    pf::split_by_place(events, span_of(source), span_of(destination), span_of(left), span_of(arrived), group);
        if (is_inside) number = pf::number_by_group(group, sizes);
    }
    require(is_inside, "a flow lies outside the events, or is of no kind");
    return nb::make_tuple(to_numpy(std::move(sizes)), to_numpy(std::move(number)));
}

nb::tuple flows_by_event(const Input<int64_t>& source, const Input<int64_t>& destination, const Input<uint8_t>& state,
                         const Input<uint32_t>& number, uint64_t first, uint64_t count) {
    const size_t n = source.size();
    require(destination.size() == n && state.size() == n && (number.size() == 0 || number.size() == n),
            "flow columns of different lengths");
    require(n < uint64_t{1} << 31, "more flows than 32 bits number");
    pf::FlowsByEvent found;
    {
        nb::gil_scoped_release release;
        found = pf::flows_by_event(span_of(source), span_of(destination), span_of(state), span_of(number), first, count);
    }
    return nb::make_tuple(to_numpy(std::move(found.start)), to_numpy(std::move(found.id)), to_numpy(std::move(found.end)));
}

std::vector<uint32_t> distinct_bits(const Input<uint32_t>& bits, const Array<int32_t>& codes, const Array<uint8_t>& known) {
    require(codes.size() == bits.size() && known.size() == bits.size(), "columns of different lengths");
    nb::gil_scoped_release release;
    lanescope::provide(codes.data(), codes.size());
    return lanescope::columns::distinct(span_of(bits), span_of(codes), span_of(known));
}

}  // namespace

void lanescope::bind::perfetto(nb::module_& m) {
    m.def("flows_running", running_flows, "source"_a.noconvert(), "destination"_a.noconvert(), "left"_a.noconvert(),
          "arrived"_a.noconvert(), "slice_ts"_a.noconvert(),
          "Return the flows whose destination was running when their source began, and began no later than they arrive.");
    m.def("flows_states", flow_states, "source"_a.noconvert(), "destination"_a.noconvert(), "span_begin"_a.noconvert(),
          "span_length"_a.noconvert(), "span_known"_a.noconvert(), "point_ts"_a.noconvert(), "state"_a.noconvert(),
          "Fill how each flow is drawn: 0 not, 1 to the begin, 2 to the end, 3 the order of the file decides; return how "
          "many are of the last kind.");
    m.def("flows_numbered", number_flows, "source"_a.noconvert(), "destination"_a.noconvert(), "left"_a.noconvert(),
          "arrived"_a.noconvert(), "span_begin"_a.noconvert(), "span_length"_a.noconvert(), "span_known"_a.noconvert(),
          "point_ts"_a.noconvert(), "kind"_a.noconvert(), "kinds"_a,
          "Number flows by kind, then by where source and destination lie: at the begin of a slice or on a point, at its "
          "end, elsewhere. Return how many are of each, int64 [kinds * 9], and their numbers from 1, uint32 [flows]. "
          "`kind` is not read where there is one kind.");
    m.def("flows_by_event", flows_by_event, "source"_a.noconvert(), "destination"_a.noconvert(), "state"_a.noconvert(),
          "number"_a.noconvert(), "first"_a, "count"_a,
          "Return what drawn flows do at the events first .. first + count: where each begins, uint32 [count + 1], their "
          "numbers, uint32, and what they do, uint8; all are empty if no flow meets these events. `number` is that of "
          "each flow; empty: they are numbered from 1.");

    m.def("distinct_bits", distinct_bits, "bits"_a.noconvert(), "codes"_a.noconvert(), "known"_a.noconvert(),
          "Return the distinct values, in order of first sight; fill which of them each row has, and whether it is not 0.");

    nb::class_<TextArrays>(m, "PerfettoTexts", "Texts end to end: UTF-8 bytes and offsets, int64 [n + 1].")
        .def(nb::init<Input<uint8_t>, Input<int64_t>>(), "bytes"_a.noconvert(), "offsets"_a.noconvert());

    nb::class_<EventArrays>(m, "PerfettoEvents",
                            "Slices, or instants where `end` is empty. Times lie along the order, which counts up where it is empty, all "
                            "else by index; so does `end` where it is the length.")
        .def(
            "__init__",
            [](EventArrays* self, Input<int64_t> order, Input<int64_t> begin, Input<int64_t> end, Input<int32_t> name,
               Input<int32_t> category, Input<uint32_t> flow_first, Input<uint32_t> flow_id, Input<uint8_t> flow_end,
               bool end_is_length) {
                new (self) EventArrays{std::move(order),    std::move(begin),      std::move(end),     std::move(name),
                                       std::move(category), std::move(flow_first), std::move(flow_id), std::move(flow_end),
                                       end_is_length,    {}};
            },
            "order"_a.noconvert(), "begin"_a.noconvert(), "end"_a.noconvert(), "name"_a.noconvert(),
            "category"_a.noconvert(), "flow_first"_a.noconvert(), "flow_id"_a.noconvert(), "flow_end"_a.noconvert(),
            "end_is_length"_a = false)
        .def(
            "argument",
            [](EventArrays& self, std::string name, std::string type, Any values, Input<uint8_t> known, TextArrays texts,
               int64_t base, int64_t count, Input<int64_t> first, Input<int64_t> row) {
                self.arguments.push_back({std::move(name), std::move(type), std::move(values), std::move(known),
                                          std::move(texts), base, count, std::move(first), std::move(row)});
            },
            "name"_a, "type"_a, "values"_a.noconvert(), "known"_a.noconvert(), "texts"_a, "base"_a, "count"_a,
            "first"_a.noconvert(), "row"_a.noconvert(), "Attach a column to the events base .. base + count.");

    nb::class_<SampleArrays>(m, "PerfettoSamples", "Counter samples; times along the order, values by index.")
        .def(nb::init<Input<int64_t>, Input<int64_t>, Input<double>>(), "order"_a.noconvert(), "ts"_a.noconvert(),
             "value"_a.noconvert());

    nb::class_<Writer>(m, "PerfettoEncoder", "Encodes packets block by block.")
        .def(
            "__init__",
            [](Writer* self, EventArrays slices, EventArrays instants, SampleArrays samples, TextArrays names,
               TextArrays categories, Input<uint64_t> lane_uuid, Ranges lane_ranges, int64_t origin, bool is_part,
               uint64_t flow_base) {
                require(lane_uuid.size() == lane_ranges.shape(0), "lanes of different number");
                std::vector<pf::Lane> lanes(lane_uuid.size());
                for (size_t i = 0; i < lanes.size(); ++i) {
                    const int64_t* r = lane_ranges.data() + 6 * i;
                    lanes[i] = {lane_uuid.data()[i], r[0], r[1], r[2], r[3], r[4], r[5]};
                }
                new (self) Writer{std::make_shared<const Drawing>(std::move(slices), std::move(instants), std::move(samples),
                                                                  std::move(names), std::move(categories), std::move(lanes),
                                                                  origin, is_part, flow_base)};
            },
            "slices"_a, "instants"_a, "samples"_a, "names"_a, "categories"_a, "lane_uuid"_a.noconvert(),
            "lane_ranges"_a.noconvert(), "origin"_a = 0, "is_part"_a = false, "flow_base"_a = 0,
            "Lanes are written in the given order; a row of lane_ranges is where its slices, instants and samples begin and "
            "end in their orders. `flow_base` is added to the ids of flows.")
        .def_ro_static("SEQUENCE", &pf::Encoder::kSequence)
        .def_ro_static("CLOCK", &pf::Encoder::kClock)
        .def("parts", &Writer::parts, "events"_a, nb::rv_policy::take_ownership,
             "Return encoders that together write the same packets, one after the other, each of at least about so many "
             "events; they may work at the same time.")
        .def_prop_ro("events", [](const Writer& self) { return self.part ? self.part->events : 0; }, "Events of a part.")
        .def_prop_ro("is_at_end", [](const Writer& self) { return self.is_done || (self.encoder && self.encoder->is_at_end()); },
                     "Whether the block that came last ends all.")
        .def("fill", &Writer::fill, "target"_a, "keeps_last"_a = false,
             nb::sig("def fill(self, target: int, keeps_last: bool = False) -> memoryview"),
             "Return a view of the next whole packets, about `target` bytes; empty at the end. It is valid until the next call; where "
             "that `keeps_last`, until the one after it. Raises OverflowError for a time before the epoch.");
}
