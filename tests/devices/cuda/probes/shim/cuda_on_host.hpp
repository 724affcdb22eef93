// What device code takes for granted, for a host compiler: the probe header and whole kernels run on a CPU with it.
#pragma once

#include <atomic>
#include <bit>
#include <cstdint>
#include <cstring>

#define __device__
#define __host__
#define __global__
#define __shared__ static
#define __restrict__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)

struct uint3 {
    unsigned x, y, z;
};
struct dim3 {
    unsigned x = 1, y = 1, z = 1;
};

inline uint3 threadIdx, blockIdx;
inline dim3 blockDim, gridDim;

namespace on_host {
inline std::uint64_t now_ns, now_cycles;  // what the two clocks say, until someone sets them
inline std::uint64_t step_ns = 1;         // the timer's step
inline std::uint64_t advance_ns = 0;      // by which each reading moves the clocks on, and two cycles for each of these
inline void pass(std::uint64_t ns) {
    now_ns += ns;
    now_cycles += 2 * ns;
}
inline std::uint64_t fences, uses;        // how often these were called
inline std::uint32_t sms = 4;
}  // namespace on_host

using std::memcpy;
inline long long __double_as_longlong(double value) { return std::bit_cast<long long>(value); }
inline void __threadfence_block() { ++on_host::fences; }
inline unsigned long long atomicAdd(unsigned long long* at, unsigned long long value) {
    const unsigned long long before = *at;
    *at += value;
    return before;
}

inline unsigned long long atomicMax(unsigned long long* at, unsigned long long value) {
    const unsigned long long before = *at;
    if (before < value) *at = value;
    return before;
}

// Run a kernel's body for every thread of a grid, one after the other: for kernels whose threads do not wait.
template <class Body>
void for_each_thread(dim3 grid, dim3 block, Body body) {
    gridDim = grid;
    blockDim = block;
    for (blockIdx.z = 0; blockIdx.z < grid.z; ++blockIdx.z)
        for (blockIdx.y = 0; blockIdx.y < grid.y; ++blockIdx.y)
            for (blockIdx.x = 0; blockIdx.x < grid.x; ++blockIdx.x)
                for (threadIdx.z = 0; threadIdx.z < block.z; ++threadIdx.z)
                    for (threadIdx.y = 0; threadIdx.y < block.y; ++threadIdx.y)
                        for (threadIdx.x = 0; threadIdx.x < block.x; ++threadIdx.x) body();
}
