// Arrays as functions take them: of one type, in order, in the host's memory; nothing is converted.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "core/wire/growing.hpp"
#include "core/wire/large_memory.hpp"

namespace lanescope::bind {

template <class T>
using Array = nanobind::ndarray<T, nanobind::ndim<1>, nanobind::c_contig, nanobind::device::cpu>;
template <class T>
using Rows = nanobind::ndarray<T, nanobind::ndim<2>, nanobind::c_contig, nanobind::device::cpu>;

template <class T>
std::span<T> span_of(const Array<T>& array) {
    return {array.data(), array.size()};
}

// A table that numpy owns, row by row: of as many rows as the values fill.
template <class T>
nanobind::ndarray<nanobind::numpy, T, nanobind::ndim<2>> to_table(std::vector<T> values, size_t columns) {
    auto kept = std::make_unique<std::vector<T>>(std::move(values));
    T* data = kept->data();
    const size_t rows = kept->size() / columns;
    nanobind::capsule owner(kept.get(), [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    kept.release();
    return {data, {rows, columns}, owner};
}

// An array that numpy owns.
template <class T, class Allocator>
nanobind::ndarray<nanobind::numpy, T, nanobind::ndim<1>> to_numpy(std::vector<T, Allocator> values) {
    using Vector = std::vector<T, Allocator>;
    auto kept = std::make_unique<Vector>(std::move(values));
    T* data = kept->data();
    const size_t size = kept->size();
    nanobind::capsule owner(kept.get(), [](void* p) noexcept { delete static_cast<Vector*>(p); });
    kept.release();
    return {data, {size}, owner};
}

// What frees memory when numpy no longer needs it.
inline nanobind::capsule owner_of(Memory memory) {
    auto kept = std::make_unique<Memory>(memory);
    nanobind::capsule owner(kept.get(), [](void* p) noexcept {
        const std::unique_ptr<Memory> memory(static_cast<Memory*>(p));
        memory->free();
    });
    kept.release();
    return owner;
}

inline nanobind::capsule owner_of(std::unique_ptr<LargeMemory> memory) {
    nanobind::capsule owner(memory.get(), [](void* p) noexcept { delete static_cast<LargeMemory*>(p); });
    memory.release();
    return owner;
}

// The same of an array that grew: its memory moves out.
template <class T>
nanobind::ndarray<nanobind::numpy, T, nanobind::ndim<1>> to_numpy(Growing<T>& values) {
    const auto [memory, size] = values.release();
    return {static_cast<T*>(memory.data), {size}, owner_of(memory)};
}

}  // namespace lanescope::bind
