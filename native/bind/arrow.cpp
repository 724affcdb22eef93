// Python arrays -> Arrow C stream capsule (the Arrow PyCapsule interface).
#include "core/trace/arrow/stream.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "module.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using lanescope::arrow::Column;

namespace {

using Buffer = nb::ndarray<nb::ro, nb::device::cpu, nb::c_contig>;

// Readers may drop the last reference from any thread, with or without the GIL.
std::shared_ptr<void> keep_alive(std::vector<std::optional<Buffer>> buffers) {
    auto* kept = new std::vector<std::optional<Buffer>>(std::move(buffers));
    return {static_cast<void*>(kept), [](void* p) {
                nb::gil_scoped_acquire gil;
                delete static_cast<std::vector<std::optional<Buffer>>*>(p);
            }};
}

void release_capsule(PyObject* capsule) noexcept {
    auto* stream = static_cast<ArrowArrayStream*>(PyCapsule_GetPointer(capsule, "arrow_array_stream"));
    if (stream->release != nullptr) stream->release(stream);
    delete stream;
}

}  // namespace

void lanescope::bind::arrow(nb::module_& m) {
    nb::class_<Column>(m, "ArrowColumn", "One column's buffers as Arrow wants them: validity bitmap, then data.")
        .def(
            "__init__",
            [](Column* self, std::string name, std::string format, bool nullable, int64_t length, int64_t null_count,
               std::vector<std::optional<Buffer>> buffers, std::optional<Column> dictionary) {
                new (self) Column{std::move(name), std::move(format), nullable, length, null_count, {}, nullptr, nullptr};
                for (const auto& buffer : buffers) self->buffers.push_back(buffer ? buffer->data() : nullptr);
                self->owner = keep_alive(std::move(buffers));
                if (dictionary) self->dictionary = std::make_shared<Column>(*std::move(dictionary));
            },
            "name"_a, "format"_a, "nullable"_a, "length"_a, "null_count"_a, "buffers"_a, "dictionary"_a.none());

    m.def(
        "arrow_stream",
        [](std::vector<Column> columns, int64_t length) {
            auto* stream = new ArrowArrayStream{};
            lanescope::arrow::make_stream(std::move(columns), length, stream);
            return nb::steal<nb::object>(PyCapsule_New(stream, "arrow_array_stream", release_capsule));
        },
        "columns"_a, "length"_a, "Return an Arrow C stream capsule that yields the columns in batches.");
}
