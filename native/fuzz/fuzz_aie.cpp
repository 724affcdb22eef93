// Any words, cut anywhere: every word is accounted for, no output is overrun, and neither the cut nor the processor changes
// anything.
#include <cstdlib>
#include <cstring>

#include "core/devices/aie/records.hpp"
#include "core/devices/aie/timeline.hpp"
#include "record_mutator.hpp"

LANESCOPE_FUZZ_RECORDS(0, 32)

namespace {

using namespace lanescope::aie;

// What a decode gives: how many words became what, and all rows as one number, in their order.
struct Result {
    int64_t words = 0;
    uint64_t rows = 0;
    void add(uint64_t value) { rows = (rows ^ value) * 0x9E3779B97F4A7C15u; }
};

// Outputs for the largest packet, made once: to clear them for each input would take most of the time.
struct Room {
    std::vector<Entry> entries = std::vector<Entry>(64);
    std::vector<int64_t> begin = std::vector<int64_t>(Timeline::kSliceRoom), duration = begin;
    std::vector<uint32_t> tag = std::vector<uint32_t>(Timeline::kSliceRoom);
    std::vector<int64_t> tick = std::vector<int64_t>(Timeline::kPointRoom), count = tick;
    std::vector<uint32_t> value = std::vector<uint32_t>(Timeline::kPointRoom), point_tag = value;
    std::vector<Event> events = std::vector<Event>(Timeline::kEventRoom);
    Slices slices() { return {begin, duration, tag}; }
    Points points() { return {tick, count, value, point_tag}; }

    void take(const Timeline::Progress& done, Result& result) {
        for (size_t i = 0; i < done.slices; ++i) {
            if (begin[i] < 0 || duration[i] < 1) std::abort();
            for (const int64_t part : {begin[i], duration[i], int64_t{tag[i]}}) result.add(static_cast<uint64_t>(part));
        }
        for (size_t i = 0; i < done.points; ++i) {
            for (const int64_t part : {tick[i], count[i], int64_t{value[i]}, int64_t{point_tag[i]}}) result.add(static_cast<uint64_t>(part));
        }
        for (size_t i = 0; i < done.events; ++i) {
            const Event& e = events[i];
            for (const int64_t part : {e.what, e.segment, e.tick, e.value, e.detail, e.lost, e.offset}) result.add(static_cast<uint64_t>(part));
        }
    }
};

Result decode(std::span<const uint32_t> words, size_t cut, bool is_plain = false) {
    static Room room;
    Scanner scanner;
    Timeline timeline(int64_t{1} << 60, is_plain);
    Result result;
    size_t at = 0;
    for (const size_t end : {cut, words.size()}) {
        while (at < end) {
            const auto rest = words.subspan(at, end - at);
            const Offsets offsets{static_cast<int64_t>(4 * at), {}};
            const auto scanned = scanner.scan(rest, end == words.size(), offsets, room.entries);
            if (scanned.words == 0) break;  // what follows decides
            for (size_t done = 0; done < scanned.entries;) {
                const std::span<const Entry> todo(room.entries.data() + done, scanned.entries - done);
                const auto decoded = timeline.decode(rest, todo, offsets, room.slices(), room.points(), room.events);
                room.take(decoded, result);
                done += decoded.entries;
            }
            for (size_t i = 0; i < scanned.entries; ++i) {
                if (room.entries[i].run != static_cast<int32_t>(Run::packet)) result.words += room.entries[i].count;
            }
            at += scanned.words;
        }
    }
    for (size_t done = 0; done == 0;) {
        const auto ended = timeline.finish(room.slices(), room.points(), room.events);
        room.take(ended, result);
        done = ended.entries;
    }
    result.words += timeline.decoded() + timeline.padding() + timeline.lost();
    return result;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    std::vector<uint32_t> words(size / 4);
    if (words.empty()) return 0;
    std::memcpy(words.data(), data, words.size() * 4);
    const auto whole = decode(words, words.size()), pieces = decode(words, words.back() % words.size());
    if (whole.words != static_cast<int64_t>(words.size())) std::abort();
    if (pieces.words != whole.words || pieces.rows != whole.rows) std::abort();
    const auto plain = decode(words, words.size(), true);
    if (plain.words != whole.words || plain.rows != whole.rows) std::abort();

    // As frames of one of the modes, and back: the same words.
    const uint32_t mode = words[0] % 4;
    const size_t most = 8 * words.size();
    std::vector<uint32_t> word(most), made(most + 9 * words.size() + 9);
    std::vector<uint8_t> bit(most), bits(most), frame(most);
    std::vector<uint64_t> raw(most);
    const size_t items = read_records(words, mode, {word, bit, bits, frame, raw});
    made.resize(pack_records({raw.data(), items}, {bits.data(), items}, mode, false, made));
    if (made != words) std::abort();
    return 0;
}
