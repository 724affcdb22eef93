// Any regions and records of lanes: the regions around records, and the causes of effects, are those of plain searches.
#include <cstdlib>
#include <vector>

#include "core/devices/cuda/async_pairing.hpp"
#include "record_mutator.hpp"
#include "require.hpp"

LANESCOPE_FUZZ_RECORDS(0, 4)

using lanescope::fuzz::require;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace lanescope::cuda;
    const size_t n = std::min<size_t>(size / 4, 160);
    std::vector<int64_t> start(1), ts(n), out(n), starts(1);
    std::vector<uint64_t> key(n);
    std::vector<uint8_t> is_effect(n);
    size_t longest = 0;
    // Each lane: a stack of regions by the positions of their records, some of them open, and records in between.
    std::vector<uint32_t> begin, end, lane, index;
    std::vector<size_t> open;
    uint32_t position = 0, number = 0;
    for (size_t i = 0; i < n; ++i) {
        const uint8_t* item = data + 4 * i;
        key[i] = item[0] % 5, ts[i] = item[1] % 32, is_effect[i] = item[2] & 1;
        if (item[2] % 16 == 7 || i + 1 == n) {
            longest = std::max(longest, i + 1 - static_cast<size_t>(start.back()));
            start.push_back(static_cast<int64_t>(i + 1));
        }
        if (item[3] % 32 == 31) {
            starts.push_back(static_cast<int64_t>(begin.size()));
            open.clear();
            position = 0, ++number;
        }
        ++position;
        if (item[3] % 4 == 0) {
            open.push_back(begin.size());
            begin.push_back(position);
            end.push_back(position);  // open, until it is closed
        } else if (item[3] % 4 == 1 && !open.empty()) {
            end[open.back()] = position;
            open.pop_back();
        } else {
            lane.push_back(number);
            index.push_back(position);
        }
    }
    starts.push_back(static_cast<int64_t>(begin.size()));
    std::vector<Event> scratch(longest);
    causes(start, key, ts, is_effect, out, scratch);
    for (size_t group = 0; group + 1 < start.size(); ++group) {
        for (auto i = static_cast<size_t>(start[group]); i < static_cast<size_t>(start[group + 1]); ++i) {
            int64_t found = -1;
            for (auto j = static_cast<size_t>(start[group]); is_effect[i] && j < static_cast<size_t>(start[group + 1]); ++j) {
                if (is_effect[j] || key[j] != key[i] || ts[j] > ts[i]) continue;
                if (found < 0 || ts[j] >= ts[static_cast<size_t>(found)]) found = static_cast<int64_t>(j);
            }
            require(out[i] == found);
        }
    }
    std::vector<int64_t> inside(lane.size()), stack(begin.size() + 1);
    enclosing({starts, begin, end, lane, index}, inside, stack);
    for (size_t i = 0; i < lane.size(); ++i) {
        int64_t found = -1;
        for (auto r = static_cast<size_t>(starts[lane[i]]); r < static_cast<size_t>(starts[lane[i] + 1]); ++r) {
            const bool is_open = end[r] == begin[r];
            if (begin[r] < index[i] && (is_open || end[r] > index[i])) found = static_cast<int64_t>(r);
        }
        require(inside[i] == found);
    }
    return 0;
}
