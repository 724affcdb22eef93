#include "core/devices/ascend/task_graph.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <tuple>
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

void first_edges(std::span<const int64_t> pred, std::span<const int64_t> succ, size_t tasks, std::vector<int64_t>& found) {
    found.clear();
    std::vector<int64_t> last(tasks, -1);  // by the first task of an edge: the second one of the edge before
    std::vector<uint8_t> is_over(tasks, 0);
    int64_t mine = -1;
    for (size_t edge = 0; edge < pred.size(); ++edge) {
        if (succ[edge] != mine) {
            if (mine >= 0) is_over[static_cast<size_t>(mine)] = 1;
            mine = succ[edge];
            if (is_over[static_cast<size_t>(mine)]) break;
        }
        int64_t& before = last[static_cast<size_t>(pred[edge])];
        if (before != mine) found.push_back(static_cast<int64_t>(edge));
        before = mine;
        if (edge + 1 == pred.size()) return;
    }
    // The edges to a task are apart.
    found.resize(pred.size());
    std::iota(found.begin(), found.end(), int64_t{0});
    const auto key = [&](int64_t edge) {
        return std::tuple(pred[static_cast<size_t>(edge)], succ[static_cast<size_t>(edge)], edge);
    };
    std::ranges::sort(found, {}, key);
    const auto is_again = [&](int64_t a, int64_t b) {
        return pred[static_cast<size_t>(a)] == pred[static_cast<size_t>(b)] && succ[static_cast<size_t>(a)] == succ[static_cast<size_t>(b)];
    };
    found.erase(std::unique(found.begin(), found.end(), is_again), found.end());
    std::ranges::sort(found);
}

}  // namespace lanescope::ascend
