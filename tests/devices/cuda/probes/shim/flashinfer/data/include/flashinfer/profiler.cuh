// A stand-in for FlashInfer's header: the names that kernels use, and words of layout flashinfer-v2.
#pragma once

#include <lanescope/probe.cuh>

namespace flashinfer {

__device__ __forceinline__ unsigned block_of_grid() {
    return (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
}
__device__ __forceinline__ unsigned blocks_of_grid() { return gridDim.x * gridDim.y * gridDim.z; }

struct Writer {
    uint64_t* next;
    unsigned stride, tag;
    bool writes;

    __device__ __forceinline__ void init(uint64_t* buffer, unsigned group, unsigned groups, bool is_writer) {
        const unsigned block = block_of_grid();
        if (block == 0 && threadIdx.x == 0) *buffer = uint64_t{groups} << 32 | blocks_of_grid();
        stride = blocks_of_grid() * groups;
        next = buffer + 1 + block * groups + group;
        tag = lanescope::machine::sm() << 24 | block << 12;
        writes = is_writer;
    }
    __device__ __forceinline__ void store(unsigned event, unsigned type) {
        if (!writes) return;
        *next = static_cast<uint64_t>(lanescope::machine::globaltimer()) << 32 | tag | event << 2 | type;
        next += stride;
    }
};

}  // namespace flashinfer

#define PROFILER_PARAMS_DECL uint64_t* profiler_buffer;
#define PROFILER_CLOSURE_PARAMS_DECL flashinfer::Writer writer;
#define PROFILER_INIT(params, storage, closure, group, groups, writes) \
    (closure).writer.init((params).profiler_buffer, group, groups, writes)
#define PROFILER_EVENT_START(closure, event) (closure).writer.store(event, 0)
#define PROFILER_EVENT_END(closure, event) (closure).writer.store(event, 1)
