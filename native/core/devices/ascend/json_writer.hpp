// The scanner's inverse: columns back to the lines of a JSON list.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace lanescope::ascend {

// A line is text, number, text, number, ..., text: texts.size() == columns.size() + 1.
struct Line {
    std::vector<std::string> texts;
    std::vector<uint32_t> columns;
    std::vector<bool> is_signed;  // two's complement
    size_t max_size() const;
};

// Writes row r as lines[which[r]] with the numbers values[column * rows + r], `separator` between rows. `out` holds
// rows * (largest max_size + separator). Returns the bytes written.
size_t format_lines(std::span<const Line> lines, std::span<const uint32_t> which, std::span<const uint64_t> values,
                    const std::string& separator, std::span<char> out);

}  // namespace lanescope::ascend
