#include "core/devices/cuda/async_pairing.hpp"

#include <algorithm>

namespace lanescope::cuda {

void enclosing(const EnclosingRegion& around, std::span<int64_t> out, std::span<int64_t> stack) noexcept {
    size_t record = 0;
    for (size_t lane = 0; lane + 1 < around.lane_start.size(); ++lane) {
        auto region = static_cast<size_t>(around.lane_start[lane]);
        const auto last = static_cast<size_t>(around.lane_start[lane + 1]);
        size_t depth = 0;
        for (; record < around.lane.size() && around.lane[record] == lane; ++record) {
            const auto index = around.index[record];
            for (; region < last && around.begin[region] < index; ++region) {
                // Regions that are over by now need no place on the stack.
                while (depth > 0) {
                    const auto top = static_cast<size_t>(stack[depth - 1]);
                    if (around.end[top] == around.begin[top] || around.end[top] > around.begin[region]) break;
                    --depth;
                }
                stack[depth++] = static_cast<int64_t>(region);
            }
            while (depth > 0) {
                const auto top = static_cast<size_t>(stack[depth - 1]);
                if (around.end[top] == around.begin[top] || around.end[top] > index) break;
                --depth;
            }
            out[record] = depth > 0 ? stack[depth - 1] : -1;
        }
    }
    for (; record < out.size(); ++record) out[record] = -1;
}

void causes(std::span<const int64_t> start, std::span<const uint64_t> key, std::span<const int64_t> ts,
            std::span<const uint8_t> is_effect, std::span<int64_t> out, std::span<Event> scratch) noexcept {
    for (size_t group = 0; group + 1 < start.size(); ++group) {
        const auto first = static_cast<size_t>(start[group]);
        const auto events = scratch.first(static_cast<size_t>(start[group + 1]) - first);
        for (size_t i = 0; i < events.size(); ++i) {
            events[i] = {key[first + i], ts[first + i], static_cast<uint32_t>(i), is_effect[first + i] != 0};
        }
        std::sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
            if (a.key != b.key) return a.key < b.key;
            if (a.ts != b.ts) return a.ts < b.ts;
            if (a.is_effect != b.is_effect) return !a.is_effect;
            return a.order < b.order;
        });
        const Event* latest = nullptr;
        for (const auto& event : events) {
            const auto at = first + event.order;
            out[at] = -1;
            if (!event.is_effect) {
                latest = &event;
            } else if (latest != nullptr && latest->key == event.key) {
                out[at] = static_cast<int64_t>(first + latest->order);
            }
        }
    }
}

}  // namespace lanescope::cuda
