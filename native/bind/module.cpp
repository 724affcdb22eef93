// The one Python module of the native core. Each file beside this one binds one room of native/core.
#include <nanobind/nanobind.h>

#include "module.hpp"

NB_MODULE(core, m) {
    m.doc() = "lanescope's native core: codecs, writers and Arrow export.";
    lanescope::bind::aie(m);
    lanescope::bind::aie_walk(m);
    lanescope::bind::arrow(m);
    lanescope::bind::ascend(m);
    lanescope::bind::check(m);
    lanescope::bind::chrome(m);
    lanescope::bind::ctf(m);
    lanescope::bind::ctf_program(m);
    lanescope::bind::cuda(m);
    lanescope::bind::cuda_declared(m);
    lanescope::bind::cuda_layouts(m);
    lanescope::bind::layout(m);
    lanescope::bind::levelzero(m);
    lanescope::bind::perfetto(m);
    lanescope::bind::profile(m);
    lanescope::bind::rows(m);
}
