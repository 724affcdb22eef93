// Any text, cut anywhere: every byte is accounted for, no output is overrun, and the cut changes nothing.
#include <cstdlib>
#include <vector>

#include "core/devices/aie/hex_text.hpp"

namespace {

using namespace lanescope::aie;

struct Read {
    std::vector<uint32_t> words;
    std::vector<int64_t> offsets;
    int64_t digits, blanks, lost;
    bool operator==(const Read&) const = default;
};

Read read(std::span<const uint8_t> text, size_t cut) {
    Read found{std::vector<uint32_t>(text.size() / 2 + 3), std::vector<int64_t>(text.size() / 2 + 3), 0, 0, 0};
    TextReader reader;
    size_t count = 0;
    const auto words = [&] { return std::span(found.words).subspan(count); };
    const auto offsets = [&] { return std::span(found.offsets).subspan(count); };
    count += reader.read(text.first(cut), words(), offsets());
    count += reader.read(text.subspan(cut), words(), offsets());
    count += reader.finish(words(), offsets());
    found.words.resize(count);
    found.offsets.resize(count);
    found.digits = reader.digits();
    found.blanks = reader.blanks();
    found.lost = reader.lost();
    return found;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const std::span text(data, size);
    const Read whole = read(text, size);
    if (whole.digits + whole.blanks + whole.lost != static_cast<int64_t>(size)) std::abort();
    for (const int64_t offset : whole.offsets) {
        if (offset < 0 || static_cast<size_t>(offset) >= size) std::abort();
    }
    if (size > 0 && read(text, data[size / 2] % size) != whole) std::abort();
    return 0;
}
