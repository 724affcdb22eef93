#include "core/devices/ascend/task_texts.hpp"

#include <array>
#include <charconv>

namespace lanescope::ascend {

std::string_view task_name(uint64_t id, std::span<char, 32> room) {
    char* at = room.data();
    char* const end = at + room.size();
    if (const uint64_t ring = id >> 32 & 0xFF; ring != 0) {
        *at++ = 'r';
        at = std::to_chars(at, end, ring).ptr;
    }
    *at++ = 't';
    at = std::to_chars(at, end, id & 0xFFFFFFFF).ptr;
    return {room.data(), static_cast<size_t>(at - room.data())};
}

EncodedNames encoded_names(std::span<const uint64_t> ids) {
    EncodedNames found;
    found.bytes.reserve(ids.size() * 8);
    found.first.reserve(ids.size() + 1);
    std::array<char, 32> room;
    for (const uint64_t id : ids) {
        found.first.push_back(static_cast<int64_t>(found.bytes.size()));
        const std::string_view name = task_name(id, room);
        found.bytes.insert(found.bytes.end(), name.begin(), name.end());
    }
    found.first.push_back(static_cast<int64_t>(found.bytes.size()));
    return found;
}

void append_list(const Lists& lists, size_t task, std::span<const std::string_view> texts, std::string& out) {
    const auto first = static_cast<size_t>(lists.first[task]), last = static_cast<size_t>(lists.first[task + 1]);
    char number[24];
    out.append(number, std::to_chars(number, number + sizeof number, last - first).ptr);
    out += ": [";
    for (size_t i = first; i < last; ++i) {
        if (i != first) out += ", ";
        out += texts[static_cast<size_t>(lists.item[i])];
    }
    out += ']';
}

}  // namespace lanescope::ascend
