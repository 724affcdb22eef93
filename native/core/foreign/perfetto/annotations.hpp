// Debug annotations of events as JSON, and single values of them.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/foreign/perfetto/reader.hpp"

namespace lanescope::foreign_perfetto {

// Values below so many others are left out as "...".
inline constexpr int kMostNested = 32;

// Append the annotations of rows of `reader.annotated` as one JSON object, in UTF-8 as far as the file has it; rows below
// 0 are left out. False where a row does not exist.
bool render(const Reader& reader, std::span<const int64_t> rows, std::string& out);

enum class ValueKind : uint8_t { integer, natural, number, text, boolean };

// The values of one annotation: of which rows of `reader.annotated`, and what they are.
struct Picked {
    std::vector<int64_t> row;
    std::vector<uint8_t> kind;   // ValueKind
    std::vector<uint64_t> bits;  // of a text: its place in `texts`
    std::vector<std::string> texts;
};

// Find plain values called `name`, of all rows.
void pick(const Reader& reader, std::string_view name, Picked& found);

}  // namespace lanescope::foreign_perfetto
