// Fields of events that another form holds as columns -> the payloads of a Level Zero text, one an event.
//
// The readers of texts know what records mean. What THAPI writes as CTF has the same records, so it is given to them in
// the form that they know.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace lanescope::levelzero {

enum class Form : uint8_t {
    number,         // the value
    signed_number,  // the value, in two's complement
    text,           // bytes of the data from `value` on, in quotes
    words32,        // little-endian numbers in the data, from bit `value` on: a list
    words64,
    structure,      // bytes of the data, from bit `value` on: its members
    written,        // text of `written`, as it is, from `value` on
};

// A number of a structure: little-endian, of 4 or 8 bytes.
struct Member {
    std::string name;
    uint64_t offset;
    uint64_t size;
};

// A field of all events: value and extent of each. An extent of 0 means that the event lacks it; else it is 1, or the
// count of bytes or elements, plus 1.
struct Field {
    std::string name;
    Form form;
    std::span<const uint64_t> values, extents;
    std::unordered_map<uint64_t, std::string> labels{};  // of numbers
    std::vector<Member> members{};  // of structures; those behind the end of one are left out
    std::string_view written{};
};

// Writes the payload of one event behind a text; all fields have a value for it. Returns false where an extent reaches
// beyond the data.
bool write_payload(std::span<const Field> fields, std::span<const uint8_t> data, size_t row, std::string* text);

// The bytes of `count` elements of `size` bytes from `begin` on; false where they reach beyond the data.
bool within(std::span<const uint8_t> data, uint64_t begin, uint64_t count, size_t size, std::span<const uint8_t>* part);

}  // namespace lanescope::levelzero
