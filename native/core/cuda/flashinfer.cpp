#include "core/cuda/flashinfer.hpp"

#include <algorithm>

namespace lanescope::cuda::flashinfer {

uint64_t to_tirx(std::span<const uint64_t> words, uint64_t lanes, uint64_t groups, std::span<uint64_t> out,
                 std::span<int16_t> sm) noexcept {
    constexpr uint64_t tag = uint64_t{0xFFFFF} << 12;
    std::fill(sm.begin(), sm.end(), no_sm);
    if (words.empty()) return 0;
    out[0] = words[0];
    uint64_t agree = 0;
    uint64_t lane = 0, block = 0, group = 0;
    for (size_t slot = 1; slot < words.size(); ++slot) {
        const auto word = words[slot];
        auto made = word;
        if (word != 0) {
            const bool fits = (word >> 12 & block_mask) == (block & block_mask);
            agree += fits;
            made = (word & ~tag) | (fits ? lane : lane ^ 1) << 12;
            if (fits && block <= block_mask) {
                const auto seen = static_cast<int16_t>(word >> 24 & 0xFF);
                auto& known = sm[lane];
                if (known == no_sm) known = seen;
                else if (known != seen) known = several_sms;
            }
        }
        out[slot] = made;
        if (++group == groups) {
            group = 0;
            ++block;
        }
        if (++lane == lanes) lane = block = group = 0;
    }
    return agree;
}

}  // namespace lanescope::cuda::flashinfer
