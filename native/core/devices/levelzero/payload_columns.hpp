// The fields of events that columns hold, read as a shape declares.
//
// What is read is what `read_payload` reads of the text that `write_payload` makes of them, without that text. Events about
// which that cannot be said are left to it.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/devices/levelzero/payload.hpp"
#include "core/devices/levelzero/payload_writer.hpp"

namespace lanescope::levelzero {

// Names that the readers of entries look for wherever they stand.
enum class Mark : uint8_t { signal, list };

// The events of one kind. What it remembers from event to event is of the texts that it is read with: `forget` it when
// those change.
class PayloadColumns {
public:
    PayloadColumns(std::vector<Field> fields, std::span<const uint8_t> data, size_t count);

    size_t size() const { return count_; }
    void forget();

    // Reads an event; false: its text is to be read instead.
    bool read(size_t row, const Shape& shape, const std::vector<TextCodes>& texts, Values* values);
    // Whether the payload of an event has any field.
    bool has_fields(size_t row) const;
    // Whether its text contains a name and a colon.
    bool mentions(size_t row, Mark mark);
    // Writes it behind a text. Returns false where a field reaches beyond the data.
    bool write(size_t row, std::string* text) const { return write_payload(fields_, data_, row, text); }

private:
    static constexpr int kNone = -1;
    static constexpr size_t kKept = 8;

    struct Kept {
        uint64_t value, code;
        bool is_known;
    };
    // A member of a structure that is read.
    struct Part {
        uint64_t offset, size;
        int cell;
    };
    // A field that a shape reads, or may not see.
    struct Step {
        const Field* field;
        int cell;                // kNone: a structure, or nothing that can be read here
        int group = kNone;       // of a structure
        std::vector<Part> parts{};
        std::array<Kept, kKept> kept{};  // codes of numbers that were looked up
    };
    struct Plan {
        uint64_t shape;
        bool is_clear;           // whether events can be read by it
        std::vector<Step> steps;
    };

    Plan& plan_of(const Shape& shape);
    Plan made(const Shape& shape) const;
    bool take(Step& step, size_t row, const Shape& shape, const std::vector<TextCodes>& texts, Values* values) const;
    bool take_number(Step& step, uint64_t value, const Cell& cell, const std::vector<TextCodes>& texts, Values* values) const;
    bool take_text(const Step& step, std::string_view text, const Cell& cell, const std::vector<TextCodes>& texts,
                   Values* values) const;
    bool take_structure(const Step& step, size_t row, const Shape& shape, Values* values) const;
    template <class T>
    bool take_words(const Step& step, size_t row, const Cell& cell, Values* values) const;

    std::vector<Field> fields_;
    std::span<const uint8_t> data_;
    size_t count_;
    bool has_plain_names_ = true;         // no two fields have one name, and there are not too many
    bool has_texts_ = false;              // whether a field may contain any text
    std::array<std::vector<const Field*>, 2> marked_;
    std::vector<Plan> plans_;
    std::string scratch_;
};

}  // namespace lanescope::levelzero
