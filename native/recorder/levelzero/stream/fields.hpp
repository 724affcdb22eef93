// How values of each type lie in an event, byte after byte, and what the description of the trace calls their type.
#pragma once

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "api/enums.hpp"

namespace lanescope::levelzero {

// Longest text and most waits that an event keeps.
inline constexpr usize longest_text = 511, most_waits = 1000;

inline usize text_length(Text text) { return text == nullptr ? 0 : strnlen(text, longest_text); }

template <class T>
inline constexpr bool is_number = std::is_integral_v<T> || std::is_enum_v<T>;
template <class T>
inline constexpr bool is_address = std::is_same_v<T, Handle> || std::is_same_v<T, Address>;
// What stands in an entry.
template <class T>
inline constexpr bool is_told = is_number<T> || is_address<T> || std::is_same_v<T, Text>;

template <class T>
usize size_of(const T& value) {
    if constexpr (std::is_same_v<T, Text>) {
        return text_length(value) + 1;
    } else if constexpr (std::is_same_v<T, Waits>) {
        return 2 + 8 * usize{value.count};
    } else {
        return sizeof value;
    }
}

template <class T>
u8* put(u8* at, const T& value) {
    if constexpr (std::is_same_v<T, Text>) {
        const usize length = text_length(value);
        if (length != 0) std::memcpy(at, value, length);
        at[length] = 0;
        return at + length + 1;
    } else if constexpr (std::is_same_v<T, Waits>) {
        at = put(at, value.count);
        if (value.count != 0) std::memcpy(at, value.events, 8 * usize{value.count});
        return at + 8 * usize{value.count};
    } else {
        static_assert(is_number<T> || is_address<T>);
        std::memcpy(at, &value, sizeof value);
        return at + sizeof value;
    }
}

// The name of a type in the description; null where values of it are not written.
template <class T>
constexpr const char* type_name() {
    if constexpr (std::is_same_v<T, Text>) return "string";
    if constexpr (std::is_same_v<T, Waits>) return "handles";
    if constexpr (std::is_same_v<T, Api>) return "api_t";
    if constexpr (std::is_same_v<T, TimestampSource>) return "how_t";
    if constexpr (std::is_same_v<T, Reason>) return "reason_t";
    if constexpr (std::is_same_v<T, Scope>) return "scope_t";
    if constexpr (std::is_same_v<T, Memory>) return "memory_t";
    if constexpr (is_address<T>) return "address_t";
    if constexpr (std::is_integral_v<T>) {
        return sizeof(T) == 1 ? "uint8_t" : sizeof(T) == 2 ? "uint16_t" : sizeof(T) == 4 ? "uint32_t" : "uint64_t";
    }
    return nullptr;
}

}  // namespace lanescope::levelzero
