// Columns as lines of text: templates with places for numbers and texts.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
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

// Bytes that are written over again and again: what a string would clear first, and give back to the system.
class Buffer {
public:
    // Room for so many bytes; what was there is lost where there was less.
    char* room(size_t size) {
        if (size > capacity_) {
            data_ = std::make_unique_for_overwrite<char[]>(size);
            capacity_ = size;
        }
        return data_.get();
    }
    void set_end(const char* end) { size_ = static_cast<size_t>(end - data_.get()); }
    std::string_view view() const { return {data_.get(), size_}; }

private:
    std::unique_ptr<char[]> data_;
    size_t capacity_ = 0;
    size_t size_ = 0;
};

class RowWriter {
public:
    RowWriter(std::vector<Line> lines, std::vector<std::string> texts);
    size_t lines() const { return lines_.size(); }
    size_t columns() const { return columns_; }

    // Writes row r as lines[which[r]] with the values at [column * rows + r], `separator` between rows. Stops at an
    // index beyond the texts, and at a real that JSON cannot write.
    Status write(std::span<const uint32_t> which, std::span<const uint64_t> values, const std::string& separator,
                 Buffer& out) const;

private:
    std::vector<Line> lines_;
    std::vector<std::string> texts_;
    std::vector<size_t> fixed_;  // the largest size of each line without its texts
    size_t columns_ = 0;
};

}  // namespace lanescope::json
