// Columns as lines of text: templates with places for numbers and texts.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace lanescope::json {

enum class Kind : uint8_t {
    unsigned_integer,
    signed_integer,  // two's complement
    real,            // the bits of a double: the shortest digits that read back as it, with a point or an exponent
    text,            // index into the writer's texts
};

// A line is text, value, text, value, ..., text: texts.size() == columns.size() + 1 == kinds.size() + 1.
struct Line {
    std::vector<std::string> texts;
    std::vector<uint32_t> columns;
    std::vector<Kind> kinds;
};

enum class Status { ok, bad_text, bad_number };

class RowWriter {
public:
    RowWriter(std::vector<Line> lines, std::vector<std::string> texts);
    size_t lines() const { return lines_.size(); }
    size_t columns() const { return columns_; }

    // Appends row r as lines[which[r]] with the values at [column * rows + r], `separator` between rows. Stops at an
    // index beyond the texts, and at a real that JSON cannot write.
    Status append(std::span<const uint32_t> which, std::span<const uint64_t> values, const std::string& separator,
                  std::string& out) const;

private:
    std::vector<Line> lines_;
    std::vector<std::string> texts_;
    std::vector<size_t> fixed_;  // the largest size of each line without its texts
    size_t columns_ = 0;
};

}  // namespace lanescope::json
