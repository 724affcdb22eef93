#include "core/devices/cuda/flashinfer.hpp"

namespace lanescope::cuda::flashinfer {

uint64_t to_tirx(std::span<const uint64_t> words, uint64_t first, uint64_t groups, std::span<uint64_t> out,
                 std::span<int16_t> sm) noexcept {
    constexpr uint64_t tag = uint64_t{0xFFFFF} << 12;
    if (words.empty()) return 0;
    const uint64_t lanes = sm.size();
    size_t at = 0;
    if (first == 0) out[at++] = words[0];
    uint64_t agree = 0;
    uint64_t lane = (first + at - 1) % lanes, block = lane / groups, group = lane % groups;
    for (; at < words.size(); ++at) {
        const auto word = words[at];
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
        out[at] = made;
        if (++group == groups) {
            group = 0;
            ++block;
        }
        if (++lane == lanes) lane = block = group = 0;
    }
    return agree;
}

}  // namespace lanescope::cuda::flashinfer
