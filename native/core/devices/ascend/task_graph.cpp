#include "core/devices/ascend/task_graph.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace lanescope::ascend {
namespace {

// Takes away tasks that wait for no task in `left`, again and again; edges lead from `from` to `to`. What remains is
// on a cycle or behind one.
void peel(std::span<const int64_t> from, std::span<const int64_t> to, std::span<uint8_t> left) {
    constexpr size_t kNone = SIZE_MAX;
    std::vector<size_t> waits(left.size()), head(left.size(), kNone), next(from.size());
    for (size_t edge = 0; edge < from.size(); ++edge) {
        const size_t first = static_cast<size_t>(from[edge]), second = static_cast<size_t>(to[edge]);
        if (!left[first] || !left[second]) continue;
        next[edge] = head[first];
        head[first] = edge;
        ++waits[second];
    }
    std::vector<size_t> done;
    for (size_t task = 0; task < left.size(); ++task) {
        if (left[task] && waits[task] == 0) done.push_back(task);
    }
    while (!done.empty()) {
        const size_t task = done.back();
        done.pop_back();
        left[task] = 0;
        for (size_t edge = head[task]; edge != kNone; edge = next[edge]) {
            const size_t second = static_cast<size_t>(to[edge]);
            if (--waits[second] == 0) done.push_back(second);
        }
    }
}

}  // namespace

void find_cycles(std::span<const int64_t> pred, std::span<const int64_t> succ, std::span<uint8_t> found) {
    std::ranges::fill(found, uint8_t{1});
    peel(pred, succ, found);
    // What waits behind a cycle is peeled from the other end.
    if (std::ranges::find(found, uint8_t{1}) != found.end()) peel(succ, pred, found);
}

}  // namespace lanescope::ascend
