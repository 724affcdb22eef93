// Any bytes, through the scanner of Ascend captures: it ends, and never claims more than there is.
#include "core/ascend/scan.hpp"

#include <cstdlib>
#include <vector>

using namespace lanescope::ascend;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    std::vector<char> text(data, data + size);
    text.push_back('\0');
    const Shape row{false,
                    {{"", Kind::number, 1, 0xFFFF, true, {}},
                     {"", Kind::token, 1, 0, true, {}},
                     {"", Kind::integer, 1, 0x7FFF, false, {}}}};
    const Shape object{true,
                       {{"kind", Kind::text, 1, 0, false, {}},
                        {"id", Kind::token, 1, 0, true, {}},
                        {"depths", Kind::integer, 3, 0x7FFF, false, {}},
                        {"early", Kind::boolean, 1, 0, false, {}},
                        {"flags", Kind::words, 1, 0, false, {"wait", "retain"}}}};
    constexpr size_t kCapacity = 7;
    std::vector<uint64_t> out(kCapacity * object.columns());
    Scanner scanner{text};
    if (!scanner.open()) return 0;
    Span key;
    for (size_t lists = 0; scanner.key(&key); ++lists) {
        if (key.end < key.begin || key.end > size) std::abort();
        if (scanner.peek() != '[') {
            Span value;
            if (scanner.skip(&value) && (value.end <= value.begin || value.end > size)) std::abort();
            continue;
        }
        const size_t from = scanner.offset();
        bool done = false;
        while (!done && scanner.fault() == Fault::none) {
            if (scanner.take(lists % 2 == 0 ? row : object, 1 + lists / 2 % 2, out, kCapacity, &done) > kCapacity) {
                std::abort();
            }
        }
        if (scanner.tally().good_bytes + scanner.tally().bad_bytes > scanner.offset() - from) std::abort();
    }
    if (scanner.offset() > size) std::abort();
    return 0;
}
