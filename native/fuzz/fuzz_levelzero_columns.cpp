// Any fields of events in columns: what is read of them is what is read of the text that they are written as, and no field
// reaches beyond the data.
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "core/devices/levelzero/payload_columns.hpp"
#include "record_mutator.hpp"
#include "require.hpp"

LANESCOPE_FUZZ_RECORDS(8, 10)

using lanescope::fuzz::require;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace lanescope::levelzero;
    if (size < 18) return 0;
    static const Shape shapes[] = {
        Shape({{"", "a", CellKind::integer, true, 0},
               {"", "w", CellKind::integers, false, 0},
               {"g", "x", CellKind::small, true, 0},
               {"", "f", CellKind::flag, false, 0},
               {"", "t", CellKind::text, false, 0},
               {"", "d", CellKind::nanoseconds, false, 0}}),
        Shape({{"", "hCommandList", CellKind::small, false, 0},
               {"", "t", CellKind::maybe_text, true, 0},
               {"", "a", CellKind::refused, false, 0},
               {"g", "y", CellKind::integer, false, 0}}),
    };
    static const std::vector<TextCodes> texts = [] {
        std::vector<TextCodes> made(1);
        made[0].add("OK", 1);
        made[0].add("7", 2);
        made[0].add("NO", 3);
        return made;
    }();
    // Which fields there are, in which forms; six of them at most.
    static const char* const names[] = {"a", "w", "g", "f", "t", "d", "hCommandList", "x", "zhSignalEvent"};
    static const std::string written = "1.5 0.000001 x 3 } 1e3";
    const size_t fields = 1 + data[0] % 6, rows = std::min<size_t>((size - 8) / 10 / fields, 12);
    if (rows == 0) return 0;
    const std::span<const uint8_t> bytes(data + 8, size - 8);
    const std::vector<uint8_t> own(bytes.begin(), bytes.end());
    std::vector<std::vector<uint64_t>> values(fields, std::vector<uint64_t>(rows)), extents = values;
    std::vector<Field> all;
    for (size_t f = 0; f < fields; ++f) {
        const uint8_t chosen = data[1 + f];
        const auto form = static_cast<Form>(chosen / 16 % 7);
        for (size_t row = 0; row < rows; ++row) {
            const uint8_t* item = data + 8 + 10 * (row * fields + f);
            uint64_t value;
            std::memcpy(&value, item, 8);
            const bool is_place = form != Form::number && form != Form::signed_number;
            // Places lie in the data, mostly, and begin at whole bytes.
            if (is_place && item[9] % 16 != 0) value = value % 64 * (form == Form::text || form == Form::written ? 1 : 8);
            else if (!is_place && item[9] % 2) value %= 16;
            values[f][row] = value;
            extents[f][row] = is_place ? item[8] % 24 : item[8] % 2;
            if (item[9] == 255) extents[f][row] = ~uint64_t{0} - item[8];
        }
        Field field{names[chosen % 9], form, values[f], extents[f]};
        if (chosen & 128) field.labels = {{7, "OK"}, {8, "{ odd"}, {1, "true"}};
        if (form == Form::structure) field.members = {{"x", 0, 4}, {"y", 4, 8}, {"z", 12, data[7] % 16u}};
        field.written = written;
        all.push_back(field);
    }
    PayloadColumns columns(all, own, rows);
    Values read{}, expected{};
    for (size_t row = 0; row < rows; ++row) {
        std::string text;
        const bool is_written = columns.write(row, &text);
        for (const Shape& shape : shapes) {
            if (!columns.read(row, shape, texts, &read)) continue;
            // Of fields that the shape does not read, texts may be odd or reach beyond the data.
            if (!is_written || !read_payload(text, shape, texts, &expected)) continue;
            require(read.present == expected.present && read.list == expected.list);
            for (size_t cell = 0; cell < shape.size(); ++cell) {
                if (read.present >> cell & 1) require(read.cells[cell] == expected.cells[cell]);
            }
        }
        for (const Mark mark : {Mark::signal, Mark::list}) {
            const std::string name = mark == Mark::signal ? "hSignalEvent: " : "hCommandList: ";
            const bool is_there = columns.mentions(row, mark);
            if (is_written) require(is_there == (text.find(name) != std::string::npos));
        }
        if (is_written) require(columns.has_fields(row) == (text != "{  }"));
    }
    return 0;
}
