// Arrays as functions take them: of one type, in order, in the host's memory; nothing is converted.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <span>

namespace lanescope::bind {

template <class T>
using Array = nanobind::ndarray<T, nanobind::ndim<1>, nanobind::c_contig, nanobind::device::cpu>;
template <class T>
using Rows = nanobind::ndarray<T, nanobind::ndim<2>, nanobind::c_contig, nanobind::device::cpu>;

template <class T>
std::span<T> span_of(const Array<T>& array) {
    return {array.data(), array.size()};
}

}  // namespace lanescope::bind
