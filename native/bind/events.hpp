// Events of a drawing as numpy arrays, and as the spans that the writers read.
#pragma once
#include "core/io/perfetto/encoder.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "arrays.hpp"

namespace lanescope::bind {

namespace nb = nanobind;
namespace pf = lanescope::perfetto;

template <class T>
using Input = Array<const T>;
using Any = nb::ndarray<nb::ro, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

inline void require(bool holds, const char* what) {
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

// As pf::Events has them.
struct EventArrays {
    Input<int64_t> order;
    Input<int64_t> begin;
    Input<int64_t> end;
    Input<int32_t> name;
    Input<int32_t> category;
    Input<uint32_t> flow_first;
    Input<uint32_t> flow_id;
    Input<uint8_t> flow_end;
    bool end_is_length = false;
    std::deque<ArgumentArrays> arguments;  // names stay where they are

    pf::Events events(bool with_end) const {
        const size_t n = begin.size();
        require((order.size() == n || order.size() == 0) && end.size() == (with_end ? n : 0) && name.size() == n &&
                    (category.size() <= 1 || category.size() == n) &&
                    (flow_first.size() == 0 || flow_first.size() == n + 1) && flow_id.size() == flow_end.size(),
                "event columns of different lengths");
        pf::Events out{span_of(order),    span_of(begin),      span_of(end),     end_is_length, span_of(name),
                       span_of(category), span_of(flow_first), span_of(flow_id), span_of(flow_end), {}};
        for (const ArgumentArrays& argument : arguments) out.arguments.push_back(argument.argument());
        return out;
    }
};

// Counter samples; times along the order.
struct SampleArrays {
    Input<int64_t> order;
    Input<int64_t> ts;
    Input<double> value;

    pf::Samples samples() const {
        require(ts.size() == order.size() && value.size() == order.size(), "sample columns of different lengths");
        return {span_of(order), span_of(ts), span_of(value)};
    }
};

// Where slices, instants and samples of each row begin and end in their orders.
using Ranges = nb::ndarray<const int64_t, nb::shape<-1, 6>, nb::c_contig, nb::device::cpu>;

}  // namespace lanescope::bind
