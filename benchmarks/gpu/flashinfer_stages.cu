// A kernel with FlashInfer's own probes, for `make gpu`: each group of 32 threads loads and scales its tiles.
#ifndef LANESCOPE_MACHINE  // where this is compiled for a GPU, there need be no header that names these
using uint32_t = unsigned int;
using uint64_t = unsigned long long;
#endif
#ifndef FLASHINFER_ENABLE_PROFILER
#define FLASHINFER_ENABLE_PROFILER
#endif
#include <flashinfer/profiler.cuh>

using namespace flashinfer;

enum Part { LOAD, SCALE };

struct Parameters {
    PROFILER_PARAMS_DECL
};
struct Probes {
    PROFILER_CLOSURE_PARAMS_DECL
};

extern "C" __global__ void flashinfer_stages(
    const float* source, float* target, int tiles, int groups, uint64_t* buffer) {
    Parameters params{buffer};
    Probes probes;
    const unsigned group = threadIdx.x / 32;
    PROFILER_INIT(params, 0, probes, group, groups, threadIdx.x % 32 == 0);
#pragma unroll 1
    for (int tile = 0; tile < tiles; ++tile) {
        const unsigned at = (blockIdx.x * tiles + tile) * blockDim.x + threadIdx.x;
        PROFILER_EVENT_START(probes, LOAD);
        const float value = source[at];
        PROFILER_EVENT_END(probes, LOAD);
        PROFILER_EVENT_START(probes, SCALE);
        target[at] = 2 * value;
        PROFILER_EVENT_END(probes, SCALE);
    }
}
