// Any bytes as a trace, cut anywhere: nothing outside is read, every byte is accounted for, how it is cut changes no
// event, and what the reader gives can be paired and rendered.
#include <cstdlib>
#include <string>
#include <vector>

#include "core/foreign/perfetto/annotations.hpp"
#include "core/foreign/perfetto/reader.hpp"
#include "core/foreign/perfetto/slices.hpp"

namespace {

using namespace lanescope::foreign_perfetto;

void read(Reader& reader, std::span<const uint8_t> bytes, size_t piece) {
    size_t done = 0;
    for (size_t end = std::min(piece, bytes.size());; end = std::min(end + piece, bytes.size())) {
        const bool is_last = end == bytes.size();
        for (;;) {
            // Memory of its own, so that reading past its end is found.
            const std::vector<uint8_t> some(bytes.begin() + static_cast<ptrdiff_t>(done), bytes.begin() + static_cast<ptrdiff_t>(end));
            done += reader.scan(some, 0, done, is_last);
            if (reader.packed().data() == nullptr) break;
            const std::vector<uint8_t> content(reader.packed().begin(), reader.packed().end());
            content.size() % 2 == 0 ? reader.unpacked(content) : reader.not_unpacked();
        }
        if (is_last) break;
    }
    if (done != bytes.size() || reader.decoded + reader.padding + reader.lost != bytes.size()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    if (size < 1) return 0;
    const std::span<const uint8_t> bytes(data + 1, size - 1);
    Reader whole, pieces, all(true);
    read(whole, bytes, bytes.size() + 1);
    read(pieces, bytes, 1 + data[0]);
    read(all, bytes, 1 + data[0]);
    if (whole.pairs.slices.ts.size() != pieces.pairs.slices.ts.size() || whole.lost != pieces.lost) std::abort();
    Events& events = all.events;
    const size_t n = events.ts.size();
    Pairs pairs;
    std::vector<int64_t> places;
    if (!pair_slices({{events.ts.data(), n}, {events.track.data(), n}, {events.type.data(), n}, {events.name.data(), n},
                      {events.category.data(), n}, static_cast<int64_t>(all.tracks.uuid.size())}, pairs, places)) {
        std::abort();
    }
    if (!whole.needs_events() && pairs.slices.ts.size() != whole.pairs.slices.ts.size()) std::abort();
    std::string text;
    for (size_t row = 0; row < whole.annotated.offset.size(); ++row) {
        const int64_t rows[] = {static_cast<int64_t>(row), -1};
        if (!render(whole, rows, text)) std::abort();
    }
    Picked found;
    pick(whole, "flags", found);
    return 0;
}
