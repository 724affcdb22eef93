// The fields of one record of a Level Zero text: `{ name: value, name: { ... }, name: [ ... ] }`, read as a shape declares.
//
// A payload is taken only where nothing about it is in doubt: ASCII, no escapes, lists of plain items. All others are left
// to the reference reader, which knows the whole grammar; so what is taken here is a part of what it takes, read alike.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace lanescope::levelzero {

// Text by its code; the codes are the caller's.
class TextCodes {
public:
    void add(std::string_view text, uint64_t code) { codes_.insert_or_assign(std::string(text), code); }
    const uint64_t* find(std::string_view text) const {
        const auto found = codes_.find(text);
        return found == codes_.end() ? nullptr : &found->second;
    }

private:
    struct Hash {
        using is_transparent = void;
        size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
    };
    std::unordered_map<std::string, uint64_t, Hash, std::equal_to<>> codes_;
};

enum class CellKind : uint8_t {
    integer,      // 0 to 2^64 - 1, decimal or hexadecimal
    small,        // 0 to 2^63 - 1
    flag,         // 0, 1, `true` or `false`
    text,         // a known text: its code
    maybe_text,   // the same; an empty one counts as missing
    integers,     // a list of integers, or one: how many; the numbers go to `Values::list`
    refused,      // payloads that hold this field are left to the reference
    nanoseconds,  // milliseconds, a single-precision number: whole nanoseconds
    count,        // 0 to 2^32 - 1
};

// A field that is read: of the record itself, or of the structure `group` in it.
struct Cell {
    std::string group, name;
    CellKind kind;
    bool is_required;  // cells of a group: unless it is missing or empty
    uint32_t texts;    // which texts it may be
};

class Shape {
public:
    static constexpr size_t kMaxCells = 32;
    static constexpr size_t kMaxGroups = 7;

    Shape() = default;
    explicit Shape(std::vector<Cell> cells);
    size_t size() const { return cells_.size(); }
    // Differs for shapes that differ.
    uint64_t id() const { return id_; }

private:
    friend class PayloadReader;
    friend class PayloadColumns;
    uint64_t id_ = 0;
    std::vector<Cell> cells_;
    std::vector<uint8_t> group_of_;       // of each cell; 0: the record
    std::vector<std::string> groups_{""};
    std::array<uint32_t, kMaxGroups + 1> required_{};
};

struct Values {
    std::array<uint64_t, Shape::kMaxCells> cells;
    uint32_t present;  // bit by cell
    std::vector<uint64_t> list;
};

// Reads a payload, from brace to brace. Returns false where it is left to the reference.
bool read_payload(std::string_view payload, const Shape& shape, const std::vector<TextCodes>& texts, Values* values);

// Reads a number of 0 to 2^64 - 1, of 20 characters at most.
bool read_integer(std::string_view text, uint64_t* value);

// Reads milliseconds as a single-precision number of whole nanoseconds.
bool read_nanoseconds(std::string_view text, uint64_t* value);

}  // namespace lanescope::levelzero
