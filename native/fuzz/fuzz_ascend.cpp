// Any bytes, through the scanner of Ascend captures: it ends, and never claims more than there is.
#include "core/devices/ascend/json_scanner.hpp"

#include <cstdlib>
#include <vector>

using namespace lanescope::ascend;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    std::vector<char> text(data, data + size);
    text.push_back('\0');
    const Shape row{false,
                    {{"", Kind::number, 1, 0xFFFF, true, {}},
                     {"", Kind::token, 1, 0, true, {}},
                     {"", Kind::integer, 1, 0x7FFF, false, {}},
                     {"", Kind::micros, 1, 1 << 30, false, {}}}};
    const Shape object{true,
                       {{"kind", Kind::text, 1, 0, false, {}},
                        {"id", Kind::token, 1, 0, true, {}},
                        {"depths", Kind::integer, 3, 0x7FFF, false, {}},
                        {"early", Kind::boolean, 1, 0, false, {}},
                        {"start_us", Kind::micros, 1, UINT64_MAX, false, {}},
                        {"fanout", Kind::span, 2, 0, false, {}},
                        {"flags", Kind::words, 1, 0, false, {"wait", "retain"}}}};
    constexpr size_t kCapacity = 7;
    std::vector<uint64_t> out(kCapacity * object.columns());
    Scanner scanner{text};
    if (!scanner.open()) return 0;
    Span key;
    size_t depth = 1;
    for (size_t lists = 0;; ++lists) {
        if (!scanner.key(&key)) {
            // The end of an object inside: go on in the one around it.
            if (scanner.fault() != ParseError::none || --depth == 0) break;
            continue;
        }
        if (key.end < key.begin || key.end > size) std::abort();
        if (scanner.peek() == '{' && key.end - key.begin == 1) {
            if (!scanner.open()) std::abort();
            ++depth;
            continue;
        }
        if (scanner.peek() == '[' && key.end - key.begin == 2) {
            if (!scanner.open_list()) std::abort();
            Span value;
            while (scanner.item() && scanner.skip(&value)) {
                if (value.end <= value.begin || value.end > size) std::abort();
            }
            continue;
        }
        if (scanner.peek() != '[') {
            Span value;
            if (scanner.skip(&value) && (value.end <= value.begin || value.end > size)) std::abort();
            continue;
        }
        const size_t from = scanner.offset();
        bool done = false;
        while (!done && scanner.fault() == ParseError::none) {
            if (scanner.take(lists % 2 == 0 ? row : object, 1 + lists / 2 % 2, out, kCapacity, &done) > kCapacity) {
                std::abort();
            }
        }
        if (scanner.tally().good_bytes + scanner.tally().bad_bytes > scanner.offset() - from) std::abort();
        for (const auto& key : scanner.others()) {
            if (key.name.begin > key.name.end || key.name.end > scanner.offset() || key.count == 0) std::abort();
        }
    }
    if (scanner.offset() > size || scanner.torn() > scanner.offset()) std::abort();
    return 0;
}
