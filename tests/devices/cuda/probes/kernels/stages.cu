// Load, compute, store: one lane a block.
#include <lanescope/probe.cuh>

enum Event { LOAD, COMPUTE, STORE };

struct Chosen : lanescope::Options {
#ifdef NO_FENCE
    enum : unsigned { fence = lanescope::Fence::none };
#endif
};

#ifndef VALUE
#define VALUE float
#endif
#ifndef INPUT
#define INPUT const VALUE*
#endif

extern "C" __global__ void stages(INPUT in, VALUE* out, int n, void* probes) {
    auto lane = lanescope::init<Chosen>(probes);
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    lane.begin(LOAD);
    VALUE x = in[i];
#ifdef CONSUME
    lane.consume(x);
#endif
    lane.end(LOAD);
    lane.begin(COMPUTE);
#ifndef NO_COMPUTE
    for (int k = 0; k < n; ++k) x = x * x + VALUE(0.5);
#endif
    lane.end(COMPUTE);
    lane.begin(STORE);
    out[i] = x;
    lane.end(STORE);
    lane.finalize();
}
