<<<<<<< HEAD
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
=======
// Any bytes, through the reader of trace events: cut into windows of any size they give the same events, which lie within
// them, and every byte is either of the file or lost.
#include "core/foreign/chrome_json.hpp"
#include "core/foreign/decimal_time.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

using namespace lanescope::foreign;

namespace {

struct Reading {
    std::vector<int64_t> offset, ts;
    std::vector<uint32_t> flags;
    int64_t lost = 0;
};

Reading read(const uint8_t* data, size_t size, size_t step) {
    EventReader reader;
    Reading found;
    std::vector<char> window;
    size_t given = 0;
    bool is_last = false;
    while (!is_last) {
        const size_t count = std::min(step, size - given);
        window.insert(window.end(), data + given, data + given + count);
        given += count;
        is_last = given == size;
        const size_t held = window.size();
        window.resize(held + EventReader::kPadding, '\0');
        const size_t done = reader.feed({window.data(), held}, is_last);
        if (done > held || (is_last && done != held)) std::abort();
        window.resize(held);
        window.erase(window.begin(), window.begin() + static_cast<std::ptrdiff_t>(done));
        const Events events = reader.take();
        for (size_t i = 0; i < events.offset.size(); ++i) {
            if (events.args_size[i] + events.args_begin[i] > events.size[i]) std::abort();
            if (static_cast<size_t>(events.offset[i]) + events.size[i] > given) std::abort();
            if (data[events.offset[i]] != '{' || static_cast<size_t>(events.lane[i]) >= reader.lanes().size()) std::abort();
        }
        found.offset.insert(found.offset.end(), events.offset.begin(), events.offset.end());
        found.ts.insert(found.ts.end(), events.ts.begin(), events.ts.end());
        found.flags.insert(found.flags.end(), events.flags.begin(), events.flags.end());
    }
    found.lost = reader.tally().lost_bytes;
    if (found.lost < 0 || static_cast<size_t>(found.lost) > size) std::abort();
    return found;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    if (size < 1) return 0;
    const Reading whole = read(data + 1, size - 1, size);
    const Reading parts = read(data + 1, size - 1, size_t{1} + data[0]);
    if (whole.offset != parts.offset || whole.ts != parts.ts || whole.flags != parts.flags || whole.lost != parts.lost) std::abort();
    int64_t value = 0;
    bool is_rounded = false;
    nanoseconds_of({reinterpret_cast<const char*>(data), size}, &value, &is_rounded);
>>>>>>> 2b69e00ff6bf2e7b2900c5166db2bbf98466bcfb
    return 0;
}
