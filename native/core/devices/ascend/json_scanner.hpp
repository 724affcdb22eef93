// A strict JSON scanner that is told what to look for: lists of integer rows or of flat objects go straight into
// columns that the caller owns, everything else is checked and stepped over.
//
// Anything that is not JSON stops it with a fault and an offset. Valid JSON of an unexpected shape (a row with a text in
// it, a number beyond its limit) is stepped over as one unit and tallied, so that no byte is unaccounted for.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lanescope::ascend {

enum class Kind : uint8_t {
    number,  // 0 .. limit
    integer,  // -limit .. limit, stored in two's complement
    token,  // 64-bit id: a number or a text of digits; negative numbers mean their two's complement
    boolean,  // 0 or 1
    text,  // code of the text, see Scanner::texts
    words,  // list of texts: bit i for word i, bit `words.size()` for any other
    micros,  // microseconds with at most three decimals, 0 .. limit ns: stored as ns
    span,  // anything, stepped over: two columns, where it begins and ends
};

struct Cell {
    std::string key;  // empty in rows
    Kind kind = Kind::number;
    uint32_t count = 1;  // more than one: a list of exactly so many; takes as many columns (a span has two)
    uint64_t limit = 0;
    bool is_required = true;
    std::vector<std::string> words;
};

// What an element of a list looks like. A row is an array of the cells in order, of which the last ones may be missing;
// an object has them by key, in any order, among others that are stepped over. `null` is the same as missing.
class Shape {
public:
    static constexpr size_t kMaxCells = 31;
    // Columns before those of the cells: where the element begins and ends, the index of the inner list that it stood
    // in, bit i set when cell i was there.
    enum Column : size_t { kBegin, kEnd, kGroup, kPresent, kFirstCell };

    Shape(bool is_object, std::vector<Cell> cells);
    size_t columns() const { return columns_; }

private:
    friend class Scanner;
    bool is_object_;
    uint32_t required_ = 0;
    size_t columns_ = kFirstCell;
    std::vector<Cell> cells_;
    std::vector<size_t> column_of_;
};

enum class ParseError : uint8_t { none, truncated, syntax, depth };

struct Span {
    size_t begin = 0;
    size_t end = 0;
};

// A key of objects whose values were stepped over, as no cell has it.
struct OtherKey {
    Span name;  // without its quotes; empty: of any further keys
    uint64_t count = 0;  // elements that have it
};

// What became of the elements of the last list.
struct Tally {
    uint64_t good_bytes = 0;
    uint64_t bad_bytes = 0;
    uint64_t bad_count = 0;
    uint64_t bad_first = 0;  // offset
    uint64_t groups = 0;  // inner lists
};

class Scanner {
public:
    static constexpr size_t kMaxDepth = 1024;
    // Distinct texts of one list that get a code; the code of a further one is kMaxTexts + the offset of its quote.
    static constexpr size_t kMaxTexts = 256;
    // Distinct keys of one list that no cell has and that are counted each on its own.
    static constexpr size_t kMaxOthers = 64;

    // `text` ends with a NUL that is not part of the content: the loops stop there without counting.
    explicit Scanner(std::span<const char> text);

    // Steps into the object that comes next: the one that the content must be, or one inside of it. The functions
    // below return false at a fault.
    bool open();
    // The next key of the innermost open object, without its quotes; false also at its end, which steps out of it.
    // Behind the outermost one only white space may follow.
    bool key(Span* out);
    // Steps into the list that comes next; `item` then goes to its next element, false at its end, which steps out.
    bool open_list();
    bool item();
    // First character of the next value.
    char peek();
    bool skip(Span* out);
    // Elements of the list that comes next, at nesting `depth` (1 or 2), column c of row r in out[c * capacity + r].
    // Returns how many; call again until `done`.
    size_t take(const Shape& shape, uint32_t depth, std::span<uint64_t> out, size_t capacity, bool* done);

    const Tally& tally() const { return tally_; }
    // The texts behind the codes of the last list, without their quotes, escapes as they stand.
    std::span<const Span> texts() const { return {texts_.data(), text_count_}; }
    // The keys of the last list that no cell has, of elements that were read, by where each was seen first.
    std::vector<OtherKey> others() const;
    ParseError fault() const { return fault_; }
    // Behind a fault in `take`: where the element begins that it stands in; before it every element was tallied.
    size_t torn() const { return static_cast<size_t>(torn_ - begin_); }
    size_t offset() const { return static_cast<size_t>(at_ - begin_); }

private:
    // Writers keep one order of keys, and one way to write what stands between two values. So the objects of a list are
    // compared with those before them: what stands before each value, and values that are stepped over. Bytes that were
    // once found to be JSON are JSON again.
    struct Field {
        std::string_view lead;  // from the end of the value before to the begin of the value; of the first, from its brace
        std::string_view before;  // the last value, if it is a text, words or stepped over, with a mark at its end
        uint64_t value = 0;  // of those that are read
        size_t cell = 0;
        Span key;
        uint64_t stepped_over = 0;  // elements whose value was stepped over, as no cell has this key
        // From the lead to the brace at the end, of the last element in which no cell had a key from here on; the bits of
        // those fields.
        std::string_view rest;
        uint64_t rest_fields = 0;
    };

    bool fail(ParseError fault);
    bool unexpected() { return fail(at_ == end_ ? ParseError::truncated : ParseError::syntax); }
    void space();
    bool skip_string();
    bool skip_number();
    bool skip_word(std::string_view word);
    bool skip_key();
    bool skip_value();
    // The readers below return false, and leave the place open, when the value is of another shape: the caller steps
    // back and lets skip_value judge it.
    bool read_integer(uint64_t* magnitude, bool* is_negative);
    bool read_text(std::string_view* out);
    bool read_micros(uint64_t limit, uint64_t* out);
    bool read_scalar(const Cell& cell, uint64_t* out);
    bool read_cell(const Cell& cell, uint64_t* out, size_t stride);
    bool read_row(const Shape& shape, uint64_t* out, size_t stride);
    bool read_plain_row(const Shape& shape, uint64_t* out, size_t stride);
    bool read_plain_cell(const Cell& cell, uint64_t* out, size_t stride);
    bool read_object(const Shape& shape, uint64_t* out, size_t stride);
    bool read_key(const Shape& shape, bool is_first, size_t* place);
    bool read_field(const Shape& shape, size_t place, uint64_t* out, size_t stride, uint32_t* present);
    bool is_again(const Field& field);
    bool step_over_rest(size_t place);
    void keep_rests();
    void count_others(std::vector<OtherKey>& others, const Field& field) const;
    uint64_t code(std::string_view text);

    const char* begin_;
    const char* end_;
    const char* at_;
    const char* torn_;
    ParseError fault_ = ParseError::none;
    bool is_fresh_ = true;  // the innermost container was just opened: no comma yet
    size_t open_ = 0;  // containers stepped into
    bool in_list_ = false;
    uint32_t level_ = 0;
    bool is_fresh_list_ = false;
    Tally tally_;
    static constexpr size_t kMostFields = 48;
    std::vector<Field> fields_;
    uint64_t stepped_over_ = 0;  // bit i: so far, the element that is read has the key of field i, and no cell has it
    std::vector<OtherKey> others_;  // of fields that were given up
    struct Start {
        size_t place;
        const char* lead;
    };
    std::vector<Start> unused_;  // the fields at the end of the element that is read, as far as no cell has their keys
    size_t text_count_ = 0;
    std::array<Span, kMaxTexts> texts_{};
    std::array<uint16_t, 64> recent_{};  // by a hash of the text: code + 1
};

}  // namespace lanescope::ascend
