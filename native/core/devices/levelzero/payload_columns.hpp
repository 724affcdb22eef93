// The fields of events, of columns or of a stream of CTF, read as a shape declares.
//
// What is read is what `read_payload` reads of the text that `write_payload` makes of them, without that text. Events about
// which that cannot be said are left to it.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/devices/levelzero/payload.hpp"
#include "core/devices/levelzero/payload_writer.hpp"
#include "core/wire/ctf/program.hpp"

namespace lanescope::levelzero {

// Names that the readers of entries look for wherever they stand.
enum class Mark : uint8_t { signal, list };

// Where events lie in a stream, and what takes their leaves out.
struct EventPlaces {
    ctf::LeafReader leaves;
    std::span<const uint64_t> places;        // by event: bit at which it begins
    std::span<const uint64_t> packets;       // by packet: its first byte
    std::span<const uint64_t> first_events;  // by packet: its first event
    size_t packet = 0;                       // of the event before

    bool read(size_t row);
};

// The events of one kind. What it remembers from event to event is of the texts that it is read with: `forget` it when
// those change.
class PayloadColumns {
public:
    PayloadColumns(std::vector<Field> fields, std::span<const uint8_t> data, size_t count);
    // Events of any kinds are counted; those that are read are of the kind that the leaves are of. Fields are by leaf: their
    // values and extents are taken out of the stream when an event is read.
    PayloadColumns(std::vector<Field> fields, const std::vector<size_t>& leaves, std::span<const uint8_t> data,
                   EventPlaces events);

    size_t size() const { return count_; }
    void forget();

    // Reads an event; false: its text is to be read instead.
    bool read(size_t row, const Shape& shape, const std::vector<TextCodes>& texts, Values* values);
    // Whether the payload of an event has any field.
    bool has_fields(size_t row);
    // Whether its text contains a name and a colon.
    bool mentions(size_t row, Mark mark);
    // Writes it behind a text. Returns false where a field reaches beyond the data.
    bool write(size_t row, std::string* text) { return write_payload(fields_, data_, loaded(row), text); }

private:
    static constexpr size_t kNoRow = ~size_t{0};
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
        bool is_direct = false;  // a number that goes into the cell as it is, unless it is above `most`
        bool is_named = false;   // a number whose text's code goes into the cell
        uint64_t most = 0;
        std::vector<Part> parts{};
        std::array<Kept, kKept> kept{};  // codes of numbers that were looked up

        Kept& kept_of(uint64_t value) { return kept[(value ^ value >> 28) % kKept]; }
    };
    struct Plan {
        uint64_t shape;
        bool is_clear;           // whether events can be read by it
        std::vector<Step> steps;
    };

    void prepare();
    // Where the fields of an event are in their columns.
    size_t loaded(size_t row);
    Plan& plan_of(const Shape& shape);
    Plan made(const Shape& shape) const;
    static void make_direct(Step& step, const Cell& cell);
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
    std::unique_ptr<EventPlaces> events_;  // none: columns have a row for each event
    size_t loaded_ = kNoRow;
    bool has_plain_names_ = true;         // no two fields have one name, and there are not too many
    // By mark: the fields that have its name, and others whose values may contain it.
    std::array<std::vector<const Field*>, 2> marked_, searched_;
    std::vector<Plan> plans_;
};

}  // namespace lanescope::levelzero
