// Any bytes as trace events: nothing outside of them is read, and every byte is an event's, a member's, or lost.
#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "core/wire/trace_events/scanner.hpp"

using namespace lanescope::trace_events;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const std::vector<char> copy(data, data + size);
    const size_t piece = size == 0 ? 1 : 1 + data[0] % 64;
    const std::vector<ValueKind> kinds = {ValueKind::integer, ValueKind::number, ValueKind::text, ValueKind::triple,
                                          ValueKind::boolean};
    const std::vector<Wanted> args = {{"a", 0}, {"b", 1}, {"c", 2}, {"d", 3}, {"e", 4}, {"f", 0}};
    Scanner whole(kinds, {{"s", 2}}, args), cut(kinds, {{"s", 2}}, args);
    whole.feed({copy.data(), size});
    for (size_t at = 0; at < size; at += piece) cut.feed({copy.data() + at, std::min(piece, size - at)});
    whole.finish();
    cut.finish();
    int64_t lost = 0;
    for (const Run& run : whole.lost) lost += run.end - run.begin;
    if (whole.decoded + lost != static_cast<int64_t>(size)) std::abort();
    if (whole.events.begin != cut.events.begin || whole.events.ts != cut.events.ts) std::abort();
    if (whole.decoded != cut.decoded || whole.ending != cut.ending) std::abort();
    return 0;
}
