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

    // Row r is lines[which[r]] with the values at [column * rows + r]; `separator` stands between rows.
    //
    // How many bytes `write` may touch. Refuses an index beyond the texts, and a real that JSON cannot write.
    Status measure(std::span<const uint32_t> which, std::span<const uint64_t> values, const std::string& separator,
                   size_t* bound) const;
    // Writes rows that were measured, and returns where they end.
    char* write(std::span<const uint32_t> which, std::span<const uint64_t> values, const std::string& separator,
                char* at) const;

private:
    // Bytes in `pool_`, behind which others follow: so they are copied in steps of one size, without a call.
    struct Piece {
        size_t at = 0;
        size_t size = 0;
    };
    // The texts of a line; piece i comes before value i.
    struct Places {
        std::vector<Piece> pieces;
        size_t most = 0;  // the largest size of a line without its texts
    };

    Piece keep(const std::string& text);
    char* put(char* at, Piece piece) const;

    std::vector<Line> lines_;
    std::vector<Places> places_;
    std::vector<Piece> texts_;
    std::vector<char> pool_;
    size_t columns_ = 0;
};

}  // namespace lanescope::json
