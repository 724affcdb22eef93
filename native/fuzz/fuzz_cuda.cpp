// Any words, in a grid that the first byte chooses: no output is overrun, and every used word is a record or unreadable.
#include <cstring>

#include "cuda_lanes.hpp"
#include "record_mutator.hpp"

LANESCOPE_FUZZ_RECORDS(1, 8)

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace lanescope::cuda;
    if (size < 17) return 0;
    const uint64_t lanes = 1 + data[0] % 5, stride = lanes + data[0] / 5 % 3;
    std::vector<uint64_t> words((size - 1) / 8);
    std::memcpy(words.data(), data + 1, words.size() * 8);
    // Most words should reach the rules: their lane is made that of their slot.
    for (size_t slot = 1; slot < words.size(); ++slot) {
        if (words[slot] % 7 != 0) words[slot] = (words[slot] & ~(uint64_t{0xFFFFF} << 12)) | (slot - 1) % stride << 12;
    }
    tirx::stride_divisor(words);
    // Any position may be called the first of an earlier launch; the rows of all are asked for.
    std::vector<int64_t> cuts;
    if (data[1] % 4 == 0) {
        const auto depth = 1 + data[1] % 3u;
        for (uint64_t lane = 0; lane < lanes; ++lane) {
            for (unsigned i = 0; i < depth; ++i) {
                cuts.push_back((i > 0 ? cuts.back() : 0) + data[(2 + lane + i) % size] % 32);
            }
        }
    }
    decode_tirx(words, lanes, stride, data[0] < 128, data[0] % 16 == 15, cuts);
    return 0;
}
