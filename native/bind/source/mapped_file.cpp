// Files as memory.
#include "core/source/mapped_file.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/shared_ptr.h>

#include <memory>

#include "bind/module.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using lanescope::source::FileWatch;
using lanescope::source::MappedFile;

namespace {

nb::object mapped(int descriptor, size_t size) {
    std::unique_ptr<MappedFile> file = MappedFile::map(descriptor, size);
    if (file == nullptr) return nb::none();
    const std::span<char> text = file->text();
    std::shared_ptr<FileWatch> watch = file->watch();
    nb::capsule owner(file.get(), [](void* p) noexcept { delete static_cast<MappedFile*>(p); });
    file.release();
    nb::ndarray<nb::numpy, uint8_t, nb::ndim<1>> array(text.data(), {text.size()}, owner);
    return nb::make_tuple(nb::cast(array), nb::cast(watch));
}

}  // namespace

void lanescope::bind::source(nb::module_& m) {
    nb::class_<FileWatch>(m, "FileWatch", "What became of a mapped file.")
        .def_prop_ro("is_shorter", [](const FileWatch& self) { return self.is_shorter.load(); },
                     "Whether a page was read that the file no longer had: zeros were read in its place.");
    m.def("map_file", &mapped, "descriptor"_a, "size"_a,
          nb::sig("def map_file(descriptor: int, size: int) -> tuple[numpy.typing.NDArray, FileWatch] | None"),
          "Return the content of a file and a zero behind it, uint8 [size + 1], as pages of the file itself, and what "
          "tells whether it became shorter; None where the system does not map it.");
}
