// Columns as lines of text: numpy arrays in, bytes out.
#include "core/io/json/row_writer.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <memory>

#include "arrays.hpp"
#include "module.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace lanescope::json;

using lanescope::bind::Array;
using lanescope::bind::Rows;
using lanescope::bind::span_of;

namespace {

using LineRow = std::tuple<std::vector<std::string>, std::vector<uint32_t>, std::string>;

Kind kind_of(char name) {
    switch (name) {
        case 'u': return Kind::unsigned_integer;
        case 'i': return Kind::signed_integer;
        case 'f': return Kind::real;
        case 't': return Kind::text;
        default: throw nb::value_error("unknown kind of value");
    }
}

std::vector<Line> lines_of(const std::vector<LineRow>& rows) {
    std::vector<Line> lines;
    for (const auto& [texts, columns, kinds] : rows) {
        if (texts.size() != columns.size() + 1 || kinds.size() != columns.size()) {
            throw nb::value_error("a line needs one text more than values");
        }
        Line line{texts, columns, {}};
        for (const char kind : kinds) line.kinds.push_back(kind_of(kind));
        lines.push_back(std::move(line));
    }
    return lines;
}

nb::bytes format(const RowWriter& self, const Array<const uint32_t>& which, const Rows<const uint64_t>& values,
                 const std::string& separator) {
    if (values.shape(0) < self.columns() || values.shape(1) != which.size()) {
        throw nb::value_error("sizes of rows and columns do not fit");
    }
    for (const uint32_t line : span_of(which)) {
        if (line >= self.lines()) throw nb::value_error("a row asks for a line that is not there");
    }
    const std::span<const uint64_t> bits{values.data(), values.size()};
    size_t bound = 0;
    const Status status = self.measure(span_of(which), bits, separator, &bound);
    if (status == Status::bad_text) throw nb::value_error("a row asks for a text that is not there");
    if (status == Status::bad_number) throw nb::value_error("JSON has no number for a value");
    // The stable ABI cannot cut bytes to the size that they got; callers ask for some thousand rows at a time.
    const auto text = std::make_unique_for_overwrite<char[]>(bound);
    const char* const end = self.write(span_of(which), bits, separator, text.get());
    return nb::bytes(text.get(), static_cast<size_t>(end - text.get()));
}

}  // namespace

void lanescope::bind::rows(nb::module_& m) {
    nb::class_<RowWriter>(m, "RowWriter", "Writes columns as lines of text.")
        .def(
            "__init__",
            [](RowWriter* self, const std::vector<LineRow>& lines, std::vector<std::string> texts) {
                new (self) RowWriter(lines_of(lines), std::move(texts));
            },
            "lines"_a, "texts"_a,
            "Lines are (texts, columns, kinds): a kind is u, i (64-bit integers), f (bits of a float64), t (index of a "
            "text).")
        .def("format", &format, "which"_a.noconvert(), "values"_a.noconvert(), "separator"_a,
             "Return rows, each as one of the lines, with the values of its column.");
}
