// The encoder of Chrome trace events: numpy arrays in, blocks of text out.
#include "core/io/chrome/encoder.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>

#include "bind/events.hpp"
#include "bind/module.hpp"

namespace nb = nanobind;
using namespace nb::literals;
namespace chrome = lanescope::chrome;

using namespace lanescope::bind;

namespace {

// Keeps the arrays alive for as long as the encoder reads them.
struct ChromeWriter {
    EventArrays spans;
    EventArrays points;
    SampleArrays samples;
    Input<int32_t> flow_kind;
    std::optional<chrome::Encoder> encoder;

    nb::object fill(size_t target) {
        std::span<const char> block;
        {
            nb::gil_scoped_release release;
            block = encoder->fill(target);
        }
        switch (encoder->status()) {
            case chrome::Status::ok: break;
            case chrome::Status::bad_time: throw nb::value_error("a time lies before the epoch");
            default: throw nb::value_error("an index or code lies outside its table");
        }
        static char none;
        char* bytes = block.empty() ? &none : const_cast<char*>(block.data());
        return nb::steal(PyMemoryView_FromMemory(bytes, static_cast<Py_ssize_t>(block.size()), PyBUF_READ));
    }
};

}  // namespace

void lanescope::bind::chrome(nb::module_& m) {
    nb::class_<ChromeWriter>(m, "ChromeEncoder", "Encodes trace events block by block, each as `,\\n{...}`.")
        .def(
            "__init__",
            [](ChromeWriter* self, EventArrays spans, EventArrays points, SampleArrays samples, const TextArrays& names, const TextArrays& categories,
               const TextArrays& flow_kinds, Input<int32_t> flow_kind, Input<uint32_t> process, Input<uint32_t> thread,
               std::vector<std::string> counter, const Ranges& ranges, int64_t base, uint64_t flow_base) {
                require(process.size() == ranges.shape(0) && thread.size() == process.size() &&
                            counter.size() == process.size(),
                        "columns of different lengths");
                std::vector<::lanescope::chrome::Row> rows(process.size());
                for (size_t i = 0; i < rows.size(); ++i) {
                    const int64_t* r = ranges.data() + 6 * i;
                    rows[i] = {process.data()[i], thread.data()[i], std::move(counter[i]), r[0], r[1], r[2], r[3],
                               r[4],              r[5]};
                }
                new (self) ChromeWriter{std::move(spans), std::move(points), std::move(samples), std::move(flow_kind),
                                        std::nullopt};
                try {
                    self->encoder.emplace(
                        self->spans.events(true), self->points.events(false), self->samples.samples(), names.texts(), categories.texts(), flow_kinds.texts(), span_of(self->flow_kind), std::move(rows),
                        base, flow_base);
                } catch (...) {
                    self->~ChromeWriter();
                    throw;
                }
            },
            "spans"_a, "points"_a, "samples"_a, "names"_a, "categories"_a, "flow_kinds"_a, "flow_kind"_a.noconvert(), "process"_a.noconvert(),
            "thread"_a.noconvert(), "counter"_a, "ranges"_a.noconvert(), "base"_a, "flow_base"_a = 0,
            "Rows are written in the given order; a row of ranges is where its spans, points and samples begin and end in "
            "their orders. `flow_kind` is the kind of each flow by its id, to which `flow_base` is added.")
        .def("fill", &ChromeWriter::fill, "target"_a,
             "Return a view of the next whole events, about `target` bytes, valid until the next call; empty at the end.");
}
