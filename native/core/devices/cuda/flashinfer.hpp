// FlashInfer's second layout: the slots of TIRx v1, but a tag that names the block and the SM and forgets the group.
#pragma once
#include <cstdint>
#include <span>

namespace lanescope::cuda::flashinfer {

constexpr uint64_t block_mask = 0xFFF;
constexpr int16_t no_sm = -1;
constexpr int16_t several_sms = -2;

// Rewrite words as TIRx v1 would have stored them: the lane comes from the slot. A word whose block is not the one of its
// slot names a lane that is not that of its slot. `words` begin with slot `first`; slot 0 is the header. `sm`, one for each
// lane, takes in the lane's SM: it is no_sm before the first words of a buffer; several_sms where they differ; blocks whose
// number does not fit their field spoil it and have none. `out` is as long as `words`, and may be the same. Return how many
// words name the block of their slot.
uint64_t to_tirx(std::span<const uint64_t> words, uint64_t first, uint64_t groups, std::span<uint64_t> out,
                 std::span<int16_t> sm) noexcept;

}  // namespace lanescope::cuda::flashinfer
