// The kernels of `make gpu`. Their results are known, and so is what their markers have to say.
#include <lanescope/probe.cuh>

using lanescope::Word;

#ifdef LANESCOPE_MACHINE  // compiled for something that is no GPU
#include "barriers.hpp"
#else
namespace barrier {

__device__ __forceinline__ unsigned address(const Word* barrier) {
    return static_cast<unsigned>(__cvta_generic_to_shared(barrier));
}
__device__ __forceinline__ void init(Word* barrier, unsigned count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address(barrier)), "r"(count) : "memory");
}
__device__ __forceinline__ void arrive(Word* barrier) {
    asm volatile("{\n\t.reg .b64 state;\n\tmbarrier.arrive.shared::cta.b64 state, [%0];\n\t}" ::"r"(address(barrier))
                 : "memory");
}
// Wait for the end of the phase of this parity.
__device__ __forceinline__ void wait(Word* barrier, unsigned parity) {
    unsigned done;
    do {
        asm volatile(
            "{\n\t.reg .pred done;\n\tmbarrier.test_wait.parity.shared::cta.b64 done, [%1], %2;\n\t"
            "selp.u32 %0, 1, 0, done;\n\t}"
            : "=r"(done)
            : "r"(address(barrier)), "r"(parity)
            : "memory");
    } while (!done);
}

}  // namespace barrier
#endif

// --- the variants that are compared -----------------------------------------------------------------------------------

struct Ls2 : lanescope::Options {};
struct Off : lanescope::Options {
    enum : unsigned { enabled = 0 };
};
struct NoFence : lanescope::Options {
    enum : unsigned { fence = lanescope::Fence::none };
};
struct Payload : lanescope::Options {
    enum : unsigned { record_words = 2 };
};
struct Cycles : lanescope::Options {
    enum : unsigned { clock = lanescope::Clock::clock64 };
};
struct Tirx : lanescope::Options {};

template <class Options>
__device__ __forceinline__ auto open(void* probes, Word, const Options*) {
    return lanescope::init<Options>(probes);
}
__device__ __forceinline__ auto open(void* probes, Word slots, const Tirx*) {
    return lanescope::init_tirx(probes, slots);
}

// --- load, compute, store ---------------------------------------------------------------------------------------------

enum Stage { LOAD, COMPUTE, STORE };

template <class Options, bool consumes>
__device__ __forceinline__ void stages(const float* in, float* out, int tiles, int work, void* probes, Word slots) {
    auto lane = open(probes, slots, static_cast<const Options*>(nullptr));
#pragma unroll 1
    for (int tile = 0; tile < tiles; ++tile) {
        const unsigned at = (tile * gridDim.x + blockIdx.x) * blockDim.x + threadIdx.x;
        lane.begin(LOAD);
        float x = in[at];
        if (consumes) lane.consume(x);
        lane.end(LOAD);
        lane.begin(COMPUTE);
#pragma unroll 1
        for (int step = 0; step < work; ++step) x = x * 0.5f + 1.0f;
        lane.consume(x);
        lane.end(COMPUTE);
        lane.begin(STORE);
        out[at] = x;
        lane.end(STORE);
    }
    lane.finalize();
}

#define STAGES(name, Options, consumes)                                                                            \
    extern "C" __global__ void stages_##name(                                                                      \
        const float* in, float* out, int tiles, int work, void* probes, Word slots) {                              \
        stages<Options, consumes>(in, out, tiles, work, probes, slots);                                            \
    }
STAGES(off, Off, true)
STAGES(ls2, Ls2, true)
STAGES(ls2_no_fence, NoFence, true)
STAGES(ls2_payload, Payload, true)
STAGES(ls2_clock64, Cycles, true)
STAGES(tirx, Tirx, true)
STAGES(ls2_no_consume, Ls2, false)

// --- a pipeline of one loading and two computing warps ---------------------------------------------------------------

enum Step { WAIT_EMPTY, FILL, WAIT_FULL, SUM, FULL, EMPTY, SLOT };
enum : unsigned { DEPTH = 2, WIDTH = 256, WARPS = 3, CONSUMERS = 2 };

template <class Options>
__device__ __forceinline__ void pipeline(const float* in, float* out, int tiles, int work, void* probes) {
    __shared__ float tile[DEPTH][WIDTH];
    __shared__ Word full[DEPTH], empty[DEPTH];
    const unsigned warp = threadIdx.x / 32, thread = threadIdx.x % 32;
    if (threadIdx.x == 0) {
        for (unsigned slot = 0; slot < DEPTH; ++slot) {
            barrier::init(&full[slot], 32);
            barrier::init(&empty[slot], 32 * CONSUMERS);
        }
    }
    __syncthreads();
    auto lane = lanescope::init<Options>(probes, warp, thread == 0);
    if (warp == 0) {
#pragma unroll 1
        for (int k = 0; k < tiles; ++k) {
            const unsigned slot = k % DEPTH, parity = k / DEPTH % 2;
            lane.begin(WAIT_EMPTY);
            barrier::wait(&empty[slot], parity ^ 1);
            if (k >= static_cast<int>(DEPTH)) lane.flow_in(EMPTY, k - DEPTH);
            lane.end(WAIT_EMPTY);
            lane.begin(FILL);
            lane.value(SLOT, slot);
            float x[WIDTH / 32];
            const float* from = in + (static_cast<Word>(k) * gridDim.x + blockIdx.x) * WIDTH + thread;
#pragma unroll
            for (unsigned i = 0; i < WIDTH / 32; ++i) x[i] = from[32 * i];
#pragma unroll
            for (unsigned i = 0; i < WIDTH / 32; ++i) tile[slot][32 * i + thread] = x[i];
            lane.consume(x);
            lane.flow_out(FULL, k);
            lane.end(FILL);
            barrier::arrive(&full[slot]);
        }
    } else {
        float sum = 0;
#pragma unroll 1
        for (int k = 0; k < tiles; ++k) {
            const unsigned slot = k % DEPTH, parity = k / DEPTH % 2;
            lane.begin(WAIT_FULL);
            barrier::wait(&full[slot], parity);
            lane.flow_in(FULL, k);
            lane.end(WAIT_FULL);
            lane.begin(SUM);
            for (unsigned i = 0; i < WIDTH / 32; ++i) {
                float x = tile[slot][32 * i + thread];
#pragma unroll 1
                for (int step = 0; step < work; ++step) x = x * 0.5f + 1.0f;
                sum += warp == 1 ? x : -x;
            }
            lane.consume(sum);
            lane.flow_out(EMPTY, k);
            lane.end(SUM);
            barrier::arrive(&empty[slot]);
        }
        out[(blockIdx.x * CONSUMERS + warp - 1) * 32 + thread] = sum;
    }
    lane.finalize();
}

#define PIPELINE(name, Options)                                                                                    \
    extern "C" __global__ void pipeline_##name(const float* in, float* out, int tiles, int work, void* probes) {    \
        pipeline<Options>(in, out, tiles, work, probes);                                                           \
    }
PIPELINE(off, Off)
PIPELINE(ls2, Ls2)
PIPELINE(ls2_no_fence, NoFence)

// --- what a marker costs, how long a known time is, how the timer steps ----------------------------------------------

template <class Options>
__device__ __forceinline__ void cost(Word* out, int markers, void* probes, Word slots) {
    auto lane = open(probes, slots, static_cast<const Options*>(nullptr));
    const Word first = lanescope::machine::clock();
#pragma unroll 1
    for (int marker = 0; marker < markers; ++marker) {
        lanescope::machine::use(marker);  // so that the loop is there without markers too
        lane.instant(1);
    }
    const Word last = lanescope::machine::clock();
    lane.finalize();
    if (lanescope::thread() == 0) out[blockIdx.x] = last - first;
}

#define COST(name, Options)                                                                                        \
    extern "C" __global__ void cost_##name(Word* out, int markers, void* probes, Word slots) {                     \
        cost<Options>(out, markers, probes, slots);                                                                \
    }
COST(off, Off)
COST(ls2, Ls2)
COST(ls2_no_fence, NoFence)
COST(ls2_payload, Payload)
COST(ls2_clock64, Cycles)
COST(tirx, Tirx)

// Regions that last as long as they are told to, by the timer that stamps them.
extern "C" __global__ void known_regions(const Word* wanted_ns, int regions, void* probes) {
    auto lane = lanescope::init(probes);
#pragma unroll 1
    for (int region = 0; region < regions; ++region) {
        lane.begin(region);
        const Word begin = lanescope::machine::globaltimer();
        while (lanescope::machine::globaltimer() - begin < wanted_ns[region]) {
        }
        lane.end(region);
    }
    lane.finalize();
}

// Each new reading of the timer, with the cycle counter beside it.
extern "C" __global__ void timer(Word* out, int readings, Word most_cycles) {
    const Word begin = lanescope::machine::clock();
    Word last = lanescope::machine::globaltimer();
    for (int reading = 0; reading < readings;) {
        const Word now = lanescope::machine::globaltimer(), cycles = lanescope::machine::clock();
        if (cycles - begin > most_cycles) return;
        if (now == last) continue;
        out[2 * reading] = last = now;
        out[2 * reading + 1] = cycles;
        ++reading;
    }
}
