// The kernels of other profilers that `make gpu` runs, for a driver that is none: FlashInfer's with a header that stores
// what the layout says, and in place of Proton's a function that stores what Proton's compiler has the kernel store.
// TIRX names a file with the source that TVM makes, if there is one.
#pragma once

#define FLASHINFER_ENABLE_PROFILER
#include <flashinfer/profiler.cuh>

namespace with_flashinfer {
#include "flashinfer_stages.cu"
}

#ifdef TIRX
namespace tirx {
inline std::uint32_t read_timer() { return static_cast<std::uint32_t>(lanescope::machine::globaltimer()); }
#include TIRX
}  // namespace tirx
#define TIRX_ROW {TIRX_NAME, &Caller<tirx::TIRX_KERNEL>::run},
#else
#define TIRX_ROW
#endif

namespace proton {

enum Scope : unsigned { WHOLE, TILE, LOAD, SCALE };
constexpr unsigned TILES = 4, WIDTH = 256, WARPS = 4, ENTRIES = 32;
constexpr unsigned HEAD = 10 + WARPS, SCRATCH = 1152 / 4;

// The writer of one warp.
struct Warp {
    std::uint32_t* index;
    std::uint32_t* room;

    void store(unsigned tag) {
        const std::uint64_t cycles = lanescope::machine::clock();
        std::uint32_t* const entry = room + *index % (2 * ENTRIES);
        entry[0] = tag | static_cast<unsigned>(cycles >> 32 & 0x7FF);
        entry[1] = static_cast<unsigned>(cycles);
        *index += 2;
    }
    void begin(Scope scope) { store(scope << 23 | (scope == WHOLE ? 1U << 22 : 0)); }
    void end(Scope scope) { store(1U << 31 | scope << 23 | (scope == WHOLE ? 1U << 22 : 0)); }
};

inline void store_time(std::uint32_t* words) {
    const std::uint64_t now = lanescope::machine::globaltimer();
    words[0] = static_cast<unsigned>(now);
    words[1] = static_cast<unsigned>(now >> 32);
}

extern "C" void proton_stages(const float* source, float* target, void*, std::uint32_t* scratch) {
    std::uint32_t* const area = scratch + blockIdx.x * SCRATCH;
    const unsigned warp = threadIdx.x / 32;
    if (threadIdx.x == 0) {
        area[0] = 0xDEADBEEF;
        area[1] = blockIdx.x;
        area[2] = blockIdx.x % on_host::sms;
        area[3] = WARPS * ENTRIES * 8;
        store_time(area + 4);
    }
    Warp probes{area + 10 + warp, area + HEAD + warp * 2 * ENTRIES};
    const bool leads = threadIdx.x % 32 == 0;
    for (unsigned tile = 0; tile < TILES; ++tile) {
        if (leads) probes.begin(TILE), probes.begin(WHOLE), probes.begin(LOAD), probes.end(LOAD), probes.begin(SCALE);
        for (unsigned at = threadIdx.x; at < WIDTH; at += 32 * WARPS) {
            const unsigned place = (blockIdx.x * TILES + tile) * WIDTH + at;
            target[place] = 2 * source[place];
        }
        if (leads) probes.end(SCALE), probes.end(WHOLE), probes.end(TILE);
    }
    if (threadIdx.x + 1 == blockDim.x) {  // threads run one after the other: this is the last one
        store_time(area + 6);
        store_time(area + 8);
    }
}

}  // namespace proton

#define MORE_KERNELS \
    TIRX_ROW {"flashinfer_stages", &Caller<with_flashinfer::flashinfer_stages>::run}, {"proton_stages", &Caller<proton::proton_stages>::run},
