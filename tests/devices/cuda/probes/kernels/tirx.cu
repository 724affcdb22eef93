// The verbs that TIRx's layout has.
#include <lanescope/probe.cuh>

extern "C" __global__ void tirx(const float* in, float* out, int n, void* probes, unsigned long long slots) {
    auto lane = lanescope::init_tirx(probes, slots, 4, threadIdx.x / 32, threadIdx.x % 32 == 0);
    float sum = 0;
#pragma unroll 1
    for (int k = 0; k < n; ++k) {
        lane.begin(1);
        sum += in[k * blockDim.x + threadIdx.x];
        lane.consume(sum);
        lane.end(1);
        lane.instant(2);
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
    lane.finalize();
}
