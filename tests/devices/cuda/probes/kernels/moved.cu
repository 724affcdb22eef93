// A loop that the compiler unrolls, so that it has something to move about.
#include <lanescope/probe.cuh>

enum Event { LOAD, SUM };

struct Chosen : lanescope::Options {
#ifdef NO_FENCE
    enum : unsigned { fence = lanescope::Fence::none };
#endif
};

#ifndef INPUT
#define INPUT const float*
#endif

extern "C" __global__ void moved(INPUT in, float* out, void* probes) {
    auto lane = lanescope::init<Chosen>(probes);
    float sum = 0;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        lane.begin(LOAD);
        const float x = in[k * blockDim.x + threadIdx.x];
#ifdef CONSUME
        lane.consume(x);
#endif
        lane.end(LOAD);
        lane.begin(SUM);
        sum += x * x;
#ifdef CONSUME
        lane.consume(sum);
#endif
        lane.end(SUM);
    }
    out[threadIdx.x] = sum;
    lane.finalize();
}
