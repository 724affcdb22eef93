// The one Python module of the native core. Each file beside this one binds one room of native/core.
#include <malloc.h>
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "arrays.hpp"
#include "module.hpp"
#include "threads.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using lanescope::LargeMemory;

namespace {

// Of freed memory: the largest block that is kept, and how much at the end of the heap.
constexpr int largest_kept = 32 << 20, most_kept = 128 << 20;

bool keep_freed_memory() {
#ifdef __GLIBC__
    return mallopt(M_MMAP_THRESHOLD, largest_kept) != 0 && mallopt(M_TRIM_THRESHOLD, most_kept) != 0;
#else
    return false;
#endif
}

nb::ndarray<nb::numpy, uint8_t, nb::ndim<1>> large_memory(size_t bytes) {
    auto made = std::make_unique<LargeMemory>(bytes);
    void* const data = made->data();
    return {data, {bytes}, lanescope::bind::owner_of(std::move(made))};
}

}  // namespace

NB_MODULE(core, m) {
    m.doc() = "lanescope's native core: codecs, writers and Arrow export.";
    m.def("keep_freed_memory", &keep_freed_memory,
          "Keep freed blocks of up to 32 MiB for what is allocated next: pages that are given back to the system are "
          "cleared when they are needed again. For processes that end with their work. Return whether that is so now.");
    m.def(
        "allow_threads",
        [](size_t most) {
            const size_t before = lanescope::bind::allowed_threads;
            lanescope::bind::allowed_threads = std::clamp<size_t>(most, 1, lanescope::bind::max_threads);
            return before;
        },
        "most"_a, "Let work for this thread take so many threads, 1 to 4; return how many they were before.");
    m.def(
        "allowed_threads", [] { return lanescope::bind::allowed_threads; },
        "Return how many threads work for this thread may take, see allow_threads.");
    m.def("large_memory", &large_memory, "bytes"_a,
          "Return memory of any content, uint8 [bytes]. What earlier such arrays gave back is used again, up to 48 MiB of "
          "it, as the system takes long to clear pages.");
    lanescope::bind::aie(m);
    lanescope::bind::aie_walk(m);
    lanescope::bind::align(m);
    lanescope::bind::arrow(m);
    lanescope::bind::ascend(m);
    lanescope::bind::check(m);
    lanescope::bind::chrome(m);
    lanescope::bind::critical_path(m);
    lanescope::bind::ctf(m);
    lanescope::bind::ctf_program(m);
    lanescope::bind::cuda(m);
    lanescope::bind::cuda_declared(m);
    lanescope::bind::cuda_layouts(m);
    lanescope::bind::disk_memory(m);
    lanescope::bind::foreign_event_pairs(m);
    lanescope::bind::foreign_lane_nesting(m);
    lanescope::bind::joins(m);
    lanescope::bind::lanes(m);
    lanescope::bind::layout(m);
    lanescope::bind::levelzero(m);
    lanescope::bind::memory_limit(m);
    lanescope::bind::perfetto(m);
    lanescope::bind::perfetto_reader(m);
    lanescope::bind::profile(m);
    lanescope::bind::rows(m);
    lanescope::bind::source(m);
    lanescope::bind::trace_events(m);
}
