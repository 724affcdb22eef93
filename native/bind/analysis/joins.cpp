// As-of joins: numpy arrays in, numpy arrays filled.
#include "core/analysis/joins/asof_join.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/vector.h>

#include <vector>

#include "bind/arrays.hpp"
#include "bind/module.hpp"

namespace nb = nanobind;
using namespace nb::literals;
namespace joins = lanescope::joins;

using lanescope::bind::Array;
using lanescope::bind::span_of;

namespace {

using Key = nb::ndarray<nb::ro, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <class T>
std::span<const uint64_t> widened(const Key& key, std::vector<std::vector<uint64_t>>& kept) {
    const auto* data = static_cast<const T*>(key.data());
    if constexpr (sizeof(T) == sizeof(uint64_t)) {
        return {reinterpret_cast<const uint64_t*>(data), key.size()};
    } else {
        kept.emplace_back(data, data + key.size());
        return kept.back();
    }
}

std::span<const uint64_t> words(const Key& key, std::vector<std::vector<uint64_t>>& kept) {
    const nb::dlpack::dtype type = key.dtype();
    if (type == nb::dtype<int64_t>()) return widened<int64_t>(key, kept);
    if (type == nb::dtype<uint64_t>()) return widened<uint64_t>(key, kept);
    if (type == nb::dtype<int32_t>()) return widened<int32_t>(key, kept);
    if (type == nb::dtype<uint32_t>()) return widened<uint32_t>(key, kept);
    if (type == nb::dtype<uint16_t>()) return widened<uint16_t>(key, kept);
    if (type == nb::dtype<uint8_t>() || type == nb::dtype<bool>()) return widened<uint8_t>(key, kept);
    throw nb::type_error("keys are integers");
}

joins::Side side_of(const std::vector<Key>& keys, const Array<const int64_t>& seq, std::vector<std::vector<uint64_t>>& kept) {
    joins::Side made;
    made.seq = span_of(seq);
    for (const Key& key : keys) {
        if (key.size() != seq.size()) throw nb::value_error("columns of different lengths");
        made.keys.push_back(words(key, kept));
    }
    if (seq.size() > joins::most_rows) throw nb::value_error("too many rows");
    return made;
}

}  // namespace

void lanescope::bind::joins(nb::module_& m) {
    m.def(
        "asof_join",
        [](const std::vector<Key>& left, const Array<const int64_t>& left_seq, const std::vector<Key>& right,
           const Array<const int64_t>& right_seq, bool strict, const Array<int64_t>& rows, const Array<int64_t>& at,
           const Array<int64_t>& low, const Array<int64_t>& high) {
            std::vector<std::vector<uint64_t>> kept;
            kept.reserve(left.size() + right.size());
            const ::joins::Side one = side_of(left, left_seq, kept), other = side_of(right, right_seq, kept);
            if (left.size() != right.size()) throw nb::value_error("keys of different numbers of columns");
            const size_t count = left_seq.size();
            if (rows.size() != right_seq.size() || at.size() != count || low.size() != count || high.size() != count) {
                throw nb::value_error("outputs of wrong length");
            }
            nb::gil_scoped_release release;
            ::joins::asof_join(one, other, strict, {span_of(rows), span_of(at), span_of(low), span_of(high)});
        },
        "left"_a, "left_seq"_a.noconvert(), "right"_a, "right_seq"_a.noconvert(), "strict"_a, "rows"_a.noconvert(),
        "at"_a.noconvert(), "low"_a.noconvert(), "high"_a.noconvert(),
        "Join rows of equal integer keys by their order in the stream; fill the right rows, those of a key together, and of "
        "each left row its place among them and the begin and end of its key.");
}
