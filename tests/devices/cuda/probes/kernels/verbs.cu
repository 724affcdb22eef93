// All verbs, in a loop whose length the compiler does not know.
#include <lanescope/probe.cuh>

enum class Event : unsigned { tile, copy, level, ready, mark };

struct Chosen : lanescope::Options {
#ifdef PAYLOAD
    enum : unsigned { record_words = 2 };
#endif
#ifdef CYCLES
    enum : unsigned { clock = lanescope::Clock::clock64 };
#endif
};

extern "C" __global__ void verbs(const float* in, float* out, int n, void* probes) {
    auto lane = lanescope::init<Chosen>(probes, threadIdx.x / 32, threadIdx.x % 32 == 0, lanescope::every(4));
    float sum = 0;
#pragma unroll 1
    for (int k = 0; k < n; ++k) {
        lane.begin(Event::tile);
        lane.async_begin(Event::copy, k);
        float x = in[k * blockDim.x + threadIdx.x];
        lane.consume(x, sum);
        lane.async_end(Event::copy, k);
        lane.flow_out(Event::ready, k);
        lane.flow_in(Event::ready, k);
        sum += x;
        lane.value(Event::level, sum);
        lane.value(Event::level, k);
        lane.value(Event::level, static_cast<long long>(k) * n);
#ifdef PAYLOAD
        lane.instant(Event::mark, k, 0x123456789abcdefull + k);
#else
        lane.instant(Event::mark);
#endif
        lane.end(Event::tile);
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
    lane.finalize();
}
