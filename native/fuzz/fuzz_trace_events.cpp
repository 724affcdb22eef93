// Any bytes as trace events: nothing outside of them is read, however they are cut they give the same events, which lie
// within them, and every byte is an event's, a member's, or lost.
#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "core/wire/trace_events/numbers.hpp"
#include "core/wire/trace_events/scanner.hpp"

using namespace lanescope::trace_events;

namespace {

template <class T>
bool is_equal(const lanescope::Growing<T>& one, const lanescope::Growing<T>& other) {
    if (one.size() != other.size()) return false;
    for (size_t i = 0; i < one.size(); ++i) {
        if (one[i] != other[i]) return false;
    }
    return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const std::vector<char> copy(data, data + size);
    const size_t piece = size == 0 ? 1 : 1 + data[0] % 64;
    const std::vector<ValueKind> kinds = {ValueKind::integer, ValueKind::number, ValueKind::text, ValueKind::triple,
                                          ValueKind::boolean};
    const std::vector<Wanted> args = {{"a", 0}, {"b", 1}, {"c", 2}, {"d", 3}, {"e", 4}, {"f", 0}};
    Scanner whole(kinds, args), cut(kinds, args);
    whole.feed({copy.data(), size});
    for (size_t at = 0; at < size; at += piece) cut.feed({copy.data() + at, std::min(piece, size - at)});
    whole.finish();
    cut.finish();
    int64_t lost = 0;
    for (const Run& run : whole.lost) lost += run.end - run.begin;
    if (whole.decoded + lost != static_cast<int64_t>(size)) std::abort();
    const Events& events = whole.events;
    if (!is_equal(events.begin, cut.events.begin) || !is_equal(events.ts, cut.events.ts)) std::abort();
    if (!is_equal(events.flags, cut.events.flags) || whole.lost.size() != cut.lost.size()) std::abort();
    if (whole.decoded != cut.decoded || whole.ending != cut.ending) std::abort();
    for (size_t i = 0; i < events.begin.size(); ++i) {
        const auto begin = static_cast<size_t>(events.begin[i]);
        if (events.args_begin[i] + events.args_size[i] > events.size[i] || begin + events.size[i] > size) std::abort();
        if (copy[begin] != '{' || static_cast<size_t>(events.place[i]) >= whole.places.size()) std::abort();
    }
    nanoseconds({copy.data(), size});
    return 0;
}
