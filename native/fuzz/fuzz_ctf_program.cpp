// A stream of any bytes, read by a program of all kinds of steps: nothing outside of it is read, every byte is
// accounted for, and what columns say of texts lies within it. Programs of any bytes are refused or end.
#include <cstdlib>
#include <cstring>
#include <vector>

#include "core/wire/ctf/program.hpp"
#include "record_mutator.hpp"
#include "require.hpp"

LANESCOPE_FUZZ_RECORDS(0, 8)

namespace {

using namespace lanescope::ctf;
using lanescope::fuzz::require;

Step step(Op op, uint8_t size = 0, uint8_t flags = 0, uint64_t arg = 0, int32_t slot = -1, int32_t leaf = -1, int8_t meaning = -1,
          uint32_t target = 0, uint32_t choices = 0) {
    return {op, flags, meaning, size, slot, leaf, target, arg, choices};
}

Trace known() {
    Trace trace;
    auto& steps = trace.program.steps;
    // Packets: magic number, content and size in bits. Events: number of 3 bits, time of 13, and a few fields.
    steps = {step(Op::integer, 32, 0, 0, -1, -1, 0), step(Op::integer, 16, 0, 0, -1, -1, 4),
             step(Op::integer, 16, 0, 0, -1, 1, 5), step(Op::end), step(Op::end)};
    const uint64_t header = steps.size();
    steps.insert(steps.end(), {step(Op::align, 0, 0, 8), step(Op::integer, 3, 0, 0, 0, -1, 8), step(Op::integer, 13, flag_clock), step(Op::end)});
    const uint64_t texts = steps.size();
    steps.insert(steps.end(), {step(Op::align, 0, 0, 8), step(Op::text, 0, 0, 0, -1, 0), step(Op::integer, 5, flag_big | flag_signed, 0, 1),
                               step(Op::array, 9, flag_counted, 0, 1), step(Op::end)});
    const uint64_t loops = steps.size();
    steps.insert(steps.end(), {step(Op::integer, 8, 0, 0, 1), step(Op::loop, 0, flag_counted, 0, 1, -1, -1, static_cast<uint32_t>(loops + 8)),
                               step(Op::integer, 2, 0, 0, 2), step(Op::choice, 0, 0, 0, 2, -1, -1, 0, 2), step(Op::skip, 0, 0, 64),
                               step(Op::jump, 0, 0, loops + 7), step(Op::align, 0, 0, 32), step(Op::again, 0, 0, loops + 2), step(Op::end)});
    trace.program.choices = {{0, 0, loops + 4}, {1, 2, loops + 6}};
    trace.program.slots = 3;
    trace.streams = {{0, 4, header, 0, 3}};
    trace.events = {{0, texts}, {1, loops}, {5, texts}};
    trace.magic = {0xC1, 0x1F, 0xFC, 0xC1};
    trace.carried = 2;
    return trace;
}

void read(std::span<const uint8_t> bytes, const Trace& trace, bool has_texts) {
    Window window;
    const Walked whole = walk_trace(bytes, trace, window);
    require(whole.decoded + whole.padding + whole.lost == bytes.size() && window.begin == bytes.size());
    require(trace.carried == 0 || whole.contexts.size() == whole.kinds.size());
    uint32_t known = 0;
    for (size_t i = 0; i < whole.contexts.size(); ++i) {
        require(whole.contexts[i] <= known);
        known = std::max(known, whole.contexts[i] + 1);
    }
    require(whole.carried.size() == trace.carried * known);
    Window piece{0, 0, 1};
    size_t events = 0;
    while (piece.begin < bytes.size()) events += walk_trace(bytes, trace, piece).kinds.size();
    require(events == whole.kinds.size());
    const Extraction wanted{trace.program, trace.header, trace.events.front().step};
    std::vector<uint64_t> begins(whole.places.size()), columns(4 * whole.places.size());
    leaf_columns(bytes, wanted, {whole.places.data(), whole.places.size()}, begins, 2, columns);
    for (size_t i = 0; i < begins.size(); ++i) {
        const uint64_t extent = columns[begins.size() + i];
        if (has_texts && extent > 0) require(columns[i] + extent <= bytes.size());
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    static const Trace trace = known();
    require(trace.is_sound());
    std::vector<uint8_t> bytes(data, data + size);
    // The magic numbers are given, so that most inputs have packets; a packet's seventh byte places the next one.
    for (size_t at = 0; at + 8 <= bytes.size(); at += 8 + bytes[at + 6]) std::memcpy(&bytes[at], trace.magic.data(), 4);
    read(bytes, trace, true);
    // The same bytes as a program: 8 each.
    Trace other = trace;
    other.program.steps.clear();
    for (size_t at = 0; at + 8 <= size && at < 400; at += 8) {
        const uint8_t* b = data + at;
        other.program.steps.push_back({static_cast<Op>(b[0] % 10), b[1], static_cast<int8_t>(b[2] % 12 - 1), b[3], b[4] % 4 - 1, b[5] % 3 - 1,
                                       b[6], b[7], static_cast<uint32_t>(b[3] % 3)});
    }
    other.program.steps.push_back(step(Op::end));
    const uint64_t last = other.program.steps.size();
    other.header = size % last;
    other.streams = {{0, size / 2 % last, size / 3 % last, 0, 2}};
    other.events = {{0, size / 5 % last}, {1, size / 7 % last}};
    if (other.is_sound()) read(bytes, other, false);
    return 0;
}
