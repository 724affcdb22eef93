// The few functions of the CUDA runtime that the program in the documentation calls; "device" memory is the host's.
#pragma once

#include <cstdlib>

#include "fibers.hpp"

enum Direction { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost };

template <class Pointer>
int cudaMalloc(Pointer** to, std::size_t size) {
    *to = static_cast<Pointer*>(std::malloc(size));
    std::memset(static_cast<void*>(*to), 0xA5, size);  // nobody cleared it
    return 0;
}
inline int cudaMemset(void* to, int value, std::size_t size) { return std::memset(to, value, size), 0; }
inline int cudaMemcpy(void* to, const void* from, std::size_t size, Direction) { return std::memcpy(to, from, size), 0; }

// What kernel<<<grid, block>>>(arguments...) does, which no host compiler can read.
template <class Kernel, class... Arguments>
void launch(unsigned grid, unsigned block, Kernel kernel, Arguments... arguments) {
    on_host::advance_ns = 3;
    on_host::step_ns = 32;
    gridDim = {grid, 1, 1};
    blockDim = {block, 1, 1};
    for (blockIdx.x = 0; blockIdx.x < grid; ++blockIdx.x)
        if (!on_host::Block(blockDim, [&] { kernel(arguments...); }).run()) std::abort();
}
