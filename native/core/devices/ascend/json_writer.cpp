#include "core/devices/ascend/json_writer.hpp"

#include <charconv>
#include <cstring>

namespace lanescope::ascend {
namespace {

constexpr size_t kMaxDigits = 20;

char* put(char* at, const std::string& text) {
    std::memcpy(at, text.data(), text.size());
    return at + text.size();
}

}  // namespace

size_t Line::max_size() const {
    size_t size = columns.size() * kMaxDigits;
    for (const std::string& text : texts) size += text.size();
    return size;
}

size_t format_lines(std::span<const Line> lines, std::span<const uint32_t> which, std::span<const uint64_t> values,
                    const std::string& separator, std::span<char> out) {
    const size_t rows = which.size();
    char* at = out.data();
    for (size_t row = 0; row < rows; ++row) {
        if (row != 0) at = put(at, separator);
        const Line& line = lines[which[row]];
        at = put(at, line.texts[0]);
        for (size_t i = 0; i < line.columns.size(); ++i) {
            const uint64_t value = values[line.columns[i] * rows + row];
            at = line.is_signed[i] ? std::to_chars(at, at + kMaxDigits, static_cast<int64_t>(value)).ptr
                                   : std::to_chars(at, at + kMaxDigits, value).ptr;
            at = put(at, line.texts[i + 1]);
        }
    }
    return static_cast<size_t>(at - out.data());
}

}  // namespace lanescope::ascend
