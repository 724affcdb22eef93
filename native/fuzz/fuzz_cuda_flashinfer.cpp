// Any words in a grid that the first byte chooses: what names the block of its slot gets the lane of its slot, and what
// comes out is decoded as the layout that it is rewritten to.
#include <cstring>

#include "core/devices/cuda/flashinfer.hpp"
#include "cuda_lanes.hpp"
#include "record_mutator.hpp"

LANESCOPE_FUZZ_RECORDS(1, 8)

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    namespace flashinfer = lanescope::cuda::flashinfer;
    if (size < 17) return 0;
    const uint64_t groups = 1 + data[0] % 4, lanes = groups * (1 + data[0] / 4 % 8);
    std::vector<uint64_t> words((size - 1) / 8);
    std::memcpy(words.data(), data + 1, words.size() * 8);
    // Most words should name the block of their slot.
    for (size_t slot = 1; slot < words.size(); ++slot) {
        if (words[slot] % 7 != 0) words[slot] = (words[slot] & ~(uint64_t{0xFFF} << 12)) | (slot - 1) % lanes / groups << 12;
    }
    std::vector<uint64_t> out(words.size());
    std::vector<int16_t> sm(lanes, flashinfer::no_sm), same(lanes, flashinfer::no_sm);
    const auto agree = flashinfer::to_tirx(words, 0, groups, out, sm);
    // The same in two pieces, cut anywhere.
    const size_t cut = data[size - 1] % (words.size() + 1);
    std::vector<uint64_t> again(words.size());
    const auto all = std::span(again);
    const auto first = flashinfer::to_tirx(std::span(words).first(cut), 0, groups, all.first(cut), same);
    const auto second = flashinfer::to_tirx(std::span(words).subspan(cut), cut, groups, all.subspan(cut), same);
    if (first + second != agree || again != out || same != sm) std::abort();
    uint64_t placed = 0;
    for (size_t slot = 1; slot < words.size(); ++slot) {
        const auto lane = (slot - 1) % lanes;
        const bool fits = words[slot] != 0 && (words[slot] >> 12 & 0xFFF) == lane / groups % 4096;
        placed += fits;
        if (words[slot] != 0 && fits != ((out[slot] >> 12 & 0xFFFFF) == lane)) std::abort();
        if ((words[slot] ^ out[slot]) & ~(uint64_t{0xFFFFF} << 12)) std::abort();
    }
    if (agree != placed) std::abort();
    lanescope::cuda::decode_tirx(out, lanes, lanes, false, false);
    return 0;
}
