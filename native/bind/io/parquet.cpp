// Pages of Parquet files: numpy arrays in, a caller-allocated numpy array out.
#include "core/io/parquet/encodings.hpp"

#include <nanobind/nanobind.h>

#include "bind/arrays.hpp"
#include "bind/module.hpp"

namespace nb = nanobind;
using namespace nb::literals;
namespace encodings = lanescope::parquet;

using lanescope::bind::Array;
using lanescope::bind::span_of;

namespace {

template <class T>
size_t deltas(const Array<const T>& values, const Array<uint8_t>& out) {
    if (out.size() < encodings::delta_room(values.size(), sizeof(T))) throw nb::value_error("output too short");
    nb::gil_scoped_release release;
    return encodings::encode_deltas(span_of(values), out.data());
}

size_t codes(const Array<const uint32_t>& values, unsigned width, const Array<uint8_t>& out) {
    if (width < 1 || width > 32) throw nb::value_error("a code has 1 to 32 bits");
    if (out.size() < encodings::codes_room(values.size())) throw nb::value_error("output too short");
    nb::gil_scoped_release release;
    const auto listed = span_of(values);
    uint32_t bits = 0;
    for (const uint32_t value : listed) bits |= value;
    if (width < 32 && bits >> width != 0) throw nb::value_error("a code has more bits");
    return encodings::encode_codes(listed, width, out.data());
}

}  // namespace

void lanescope::bind::parquet(nb::module_& m) {
    m.def("parquet_delta_room", &encodings::delta_room, "count"_a, "value_bytes"_a,
          "Return the bytes that an output for so many values needs.");
    m.def("parquet_codes_room", &encodings::codes_room, "count"_a, "Return the bytes that an output for so many codes needs.");
    constexpr auto text = "Encode integers, uint64 or uint32 [n], as DELTA_BINARY_PACKED; return the bytes written.";
    m.def("parquet_deltas", &deltas<uint64_t>, "values"_a.noconvert(), "out"_a.noconvert(), text);
    m.def("parquet_deltas", &deltas<uint32_t>, "values"_a.noconvert(), "out"_a.noconvert(), text);
    m.def("parquet_codes", &codes, "values"_a.noconvert(), "width"_a, "out"_a.noconvert(),
          "Encode indices into a dictionary, uint32 [n], of so many bits each; return the bytes written.");
}
