// Texts of tasks: their names, and lists of them.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lanescope::ascend {

// `t5` in ring 0, else `r2t5`: the ring stands in the upper half of an id, of which the lowest byte counts.
std::string_view task_name(uint64_t id, std::span<char, 32> room);

// The names of tasks end to end, and where each begins, then where the last one ends.
struct EncodedNames {
    std::vector<uint8_t> bytes;
    std::vector<int64_t> first;
};
EncodedNames encoded_names(std::span<const uint64_t> ids);

// The items of one task: [first[i], first[i + 1]) of `item`, which are indices of texts.
struct Lists {
    std::span<const int64_t> first;
    std::span<const int64_t> item;
};

// Appends a list as `2: [a, b]`.
void append_list(const Lists& lists, size_t task, std::span<const std::string_view> texts, std::string& out);

}  // namespace lanescope::ascend
