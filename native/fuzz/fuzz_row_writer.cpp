// Any values in lines of all kinds: what is written fits where it was measured, and reads back as the same values.
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "core/io/json/row_writer.hpp"
#include "record_mutator.hpp"
#include "require.hpp"

LANESCOPE_FUZZ_RECORDS(4, 33)

using lanescope::fuzz::require;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace lanescope::json;
    if (size < 4) return 0;
    const size_t rows = std::min<size_t>((size - 4) / 33, 100);
    // Texts of any length: short ones are copied in steps, which must not reach into what was measured for others.
    const std::vector<std::string> texts{"", std::string(data[0], 'a'), std::string(4 * size_t{data[1]}, 'b'), "c"};
    const std::string separator(data[2] % 3, ',');
    const std::vector<Line> lines{
        {{"[", " ", " ", "]"}, {0, 1, 2}, {Kind::unsigned_integer, Kind::signed_integer, Kind::real}},
        {{"<", std::string(data[3], '.'), ">"}, {3, 0}, {Kind::text, Kind::unsigned_integer}},
        {{"-"}, {}, {}},
    };
    const RowWriter writer(lines, texts);
    require(writer.lines() == lines.size() && writer.columns() == 4);
    std::vector<uint32_t> which(rows);
    std::vector<uint64_t> values(4 * rows);
    bool has_bad_text = false, has_bad_number = false;
    for (size_t row = 0; row < rows; ++row) {
        const uint8_t* item = data + 4 + 33 * row;
        which[row] = item[0] % 3;
        for (size_t column = 0; column < 4; ++column) std::memcpy(&values[column * rows + row], item + 1 + 8 * column, 8);
        uint64_t& real = values[2 * rows + row];
        // Half of the reals are numbers as times have them.
        if (item[0] & 128) real = std::bit_cast<uint64_t>(static_cast<double>(static_cast<int64_t>(real)) / 1000);
        if (item[0] < 250) values[3 * rows + row] %= texts.size();
        has_bad_number = has_bad_number || (which[row] == 0 && !std::isfinite(std::bit_cast<double>(real)));
        has_bad_text = has_bad_text || (which[row] == 1 && values[3 * rows + row] >= texts.size());
    }
    size_t bound = 0;
    const Status status = writer.measure(which, values, separator, &bound);
    require((status == Status::ok) == (!has_bad_text && !has_bad_number));
    if (status != Status::ok) return 0;
    std::vector<char> room(bound);
    const char* const end = writer.write(which, values, separator, room.data());
    require(end >= room.data() && end <= room.data() + bound);
    const std::string text(room.data(), static_cast<size_t>(end - room.data()));
    size_t at = 0;
    const auto expect = [&](const std::string& part) {
        require(text.compare(at, part.size(), part) == 0);
        at += part.size();
    };
    for (size_t row = 0; row < rows; ++row) {
        if (row != 0) expect(separator);
        if (which[row] == 0) {
            expect("[" + std::to_string(values[row]) + " " + std::to_string(static_cast<int64_t>(values[rows + row])) + " ");
            const size_t last = text.find(']', at);
            require(last != std::string::npos);
            const std::string digits = text.substr(at, last - at);
            char* behind = nullptr;
            const double read = std::strtod(digits.c_str(), &behind);
            require(*behind == '\0' && digits.find_first_of(".e") != std::string::npos);
            require(std::bit_cast<uint64_t>(read) == values[2 * rows + row]);
            at = last;
            expect("]");
        } else if (which[row] == 1) {
            expect("<" + texts[values[3 * rows + row]] + lines[1].texts[1] + std::to_string(values[row]) + ">");
        } else {
            expect("-");
        }
    }
    require(at == text.size());
    return 0;
}
