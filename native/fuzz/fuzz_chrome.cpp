// Any intervals under any names: the encoder takes all of them, wherever blocks end, and each event is one closed line.
#include <cstdlib>
#include <string>
#include <vector>

#include "core/io/chrome/encoder.hpp"
#include "record_mutator.hpp"

LANESCOPE_FUZZ_RECORDS(3, 4)

namespace {

// One object: strings closed and free of control characters, braces in pairs; what a reader of JSON trips over first.
void check_line(std::string_view line) {
    int depth = 0;
    bool in_string = false;
    for (size_t i = 0; i < line.size(); ++i) {
        const char c = line[i];
        if (static_cast<unsigned char>(c) < 0x20) std::abort();
        if (in_string) {
            if (c == '\\') ++i;
            else if (c == '"') in_string = false;
        } else if (c == '"') {
            in_string = true;
        } else if (c == '{') {
            ++depth;
        } else if (c == '}' && --depth < 0) {
            std::abort();
        }
    }
    if (in_string || depth != 0) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace lanescope;
    if (size < 4) return 0;
    const size_t target = 1 + data[0];
    const int shift = data[1] % 48;
    const size_t letters = std::min<size_t>(data[2] % 64, size - 3), n = (size - 3 - letters) / 4;
    // Three names out of the input, the middle one empty: any bytes, valid UTF-8 or not.
    const std::span<const uint8_t> text(data + 3, letters);
    const std::vector<int64_t> offsets = {0, static_cast<int64_t>(letters / 2), static_cast<int64_t>(letters / 2),
                                          static_cast<int64_t>(letters)};
    const perfetto::Texts names{text, offsets};
    std::vector<int64_t> order(n), begin(n), end(n);
    std::vector<int32_t> name(n);
    std::vector<uint8_t> known(n);
    for (size_t i = 0; i < n; ++i) {
        const uint8_t* item = data + 3 + letters + 4 * i;
        order[i] = static_cast<int64_t>(i);
        begin[i] = static_cast<int64_t>(item[0]) << shift;
        end[i] = begin[i] + (item[1] % 4 == 0 ? 0 : static_cast<int64_t>(item[2]) << (item[1] % 24));
        name[i] = item[3] % 3;
        known[i] = item[3] & 8;
    }
    perfetto::Events spans{order, begin, end, false, name, {}, {}, {}, {}, {}};
    if (shift % 2 != 0 && n > 0) {
        spans.arguments.push_back({text, perfetto::ValueType::u8, known.data(), n, known, {}, 0, static_cast<int64_t>(n), {}, {}});
    }
    const int64_t half = static_cast<int64_t>(n / 2), all = static_cast<int64_t>(n);
    chrome::Row first{1, 1, {}, 0, half, 0, 0, 0, 0}, second{1, 2, {}, half, all, 0, 0, 0, 0};
    chrome::Encoder encoder(spans, {}, {}, names, {}, {}, {}, {first, second}, 0);
    std::string written;
    for (auto block = encoder.fill(target); !block.empty(); block = encoder.fill(target)) {
        written.append(block.data(), block.size());
    }
    if (encoder.status() != perfetto::Status::ok) std::abort();
    size_t events = 0;
    for (size_t at = 0; at < written.size(); ++events) {
        if (written.compare(at, 2, ",\n") != 0) std::abort();
        size_t stop = written.find('\n', at + 2);
        stop = stop == std::string::npos ? written.size() : stop - 1;  // without the comma before it
        check_line(std::string_view(written).substr(at + 2, stop - at - 2));
        at = stop;
    }
    if (events != n) std::abort();
    return 0;
}
