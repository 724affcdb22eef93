// Any bytes, cut anywhere: every word is accounted for and no output is overrun.
#include <cstdlib>
#include <cstring>

#include "core/aie/records.hpp"
#include "core/aie/timeline.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace lanescope::aie;
    std::vector<uint32_t> words(size / 4);
    if (!words.empty()) std::memcpy(words.data(), data, words.size() * 4);
    std::vector<Entry> entries(64);
    std::vector<int64_t> begin(Timeline::kSliceRoom), duration(begin.size());
    std::vector<uint32_t> tag(begin.size());
    std::vector<int64_t> tick(Timeline::kPointRoom), count(tick.size());
    std::vector<uint32_t> value(tick.size()), point_tag(tick.size());
    const Points points{tick, count, value, point_tag};
    std::vector<Event> events(Timeline::kEventRoom);
    Scanner scanner;
    Timeline timeline(int64_t{1} << 60);
    int64_t outside = 0;
    for (std::span<const uint32_t> rest = words; !rest.empty();) {
        const auto scanned = scanner.scan(rest, true, {}, entries);
        for (size_t done = 0; done < scanned.entries;) {
            const std::span<const Entry> todo(entries.data() + done, scanned.entries - done);
            done += timeline.decode(rest, todo, {}, {begin, duration, tag}, points, events).entries;
        }
        for (size_t i = 0; i < scanned.entries; ++i) {
            if (entries[i].run != static_cast<int32_t>(Run::packet)) outside += entries[i].count;
        }
        rest = rest.subspan(scanned.words);
    }
    while (timeline.finish({begin, duration, tag}, points, events).entries == 0) {}
    const int64_t inside = timeline.decoded() + timeline.filler() + timeline.lost();
    if (inside + outside != static_cast<int64_t>(words.size())) std::abort();

    // As frames of each mode, and back: the same words.
    for (uint32_t mode = 0; mode < 4; ++mode) {
        const size_t room = 8 * words.size();
        std::vector<uint32_t> word(room), made(room + 9 * words.size() + 9);
        std::vector<uint8_t> bit(room), bits(room), frame(room);
        std::vector<uint64_t> raw(room);
        const size_t items = read_records(words, mode, {word, bit, bits, frame, raw});
        const size_t count = pack_records({raw.data(), items}, {bits.data(), items}, mode, false, made);
        made.resize(count);
        if (made != words) std::abort();
    }
    return 0;
}
