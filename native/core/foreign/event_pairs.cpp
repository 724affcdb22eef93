#include "core/foreign/event_pairs.hpp"

#include <unordered_map>
#include <vector>

namespace lanescope::foreign {

bool match_stacks(std::span<const int32_t> lane, std::span<const int32_t> name, std::span<const uint8_t> is_end, size_t lanes,
                  std::span<int64_t> partner, std::span<uint8_t> crosses) {
    // What is open, as lists from the innermost outwards. Rows that were closed from elsewhere are left in them until they
    // come to the top, so each is passed once.
    std::vector<int64_t> top(lanes, -1);
    std::vector<int64_t> outer(lane.size(), -1), outer_of_name(lane.size(), -1);
    std::unordered_map<uint64_t, int64_t> top_of_name;
    const auto is_open = [&](int64_t row) { return partner[static_cast<size_t>(row)] < 0; };
    const auto settle = [&](int64_t& head, const std::vector<int64_t>& list) {
        while (head >= 0 && !is_open(head)) head = list[static_cast<size_t>(head)];
        return head;
    };
    for (size_t row = 0; row < lane.size(); ++row) {
        partner[row] = -1;
        crosses[row] = 0;
    }
    for (size_t row = 0; row < lane.size(); ++row) {
        const auto of = static_cast<size_t>(lane[row]);
        if (of >= lanes) return false;
        const uint64_t key = static_cast<uint64_t>(static_cast<uint32_t>(lane[row])) << 32 | static_cast<uint32_t>(name[row]);
        const auto here = static_cast<int64_t>(row);
        if (is_end[row] == 0) {
            outer[row] = top[of];
            top[of] = here;
            int64_t& head = top_of_name.try_emplace(key, -1).first->second;
            outer_of_name[row] = head;
            head = here;
            continue;
        }
        const int64_t innermost = settle(top[of], outer);
        int64_t begun = innermost;
        if (name[row] >= 0) {
            const auto found = top_of_name.find(key);
            begun = found == top_of_name.end() ? -1 : settle(found->second, outer_of_name);
        }
        if (begun < 0) continue;
        partner[static_cast<size_t>(begun)] = here;
        partner[row] = begun;
        if (begun != innermost) crosses[static_cast<size_t>(begun)] = crosses[row] = 1;
    }
    return true;
}

void slices_around(std::span<const int64_t> lane, std::span<const int64_t> begin, std::span<const int64_t> end,
                   std::span<const int64_t> point_lane, std::span<const int64_t> point, std::span<int64_t> inside,
                   std::span<int64_t> next) {
    std::vector<size_t> open;
    size_t slice = 0;  // the first that is not in `open`
    size_t following = 0;  // the first of the lane that begins at the point or later
    for (size_t i = 0; i < point.size(); ++i) {
        const int64_t of = point_lane[i], at = point[i];
        if (i == 0 || of != point_lane[i - 1]) {
            open.clear();
            while (slice < lane.size() && lane[slice] < of) ++slice;
            following = slice;
        }
        const auto is_mine = [&](size_t row) { return row < lane.size() && lane[row] == of; };
        while (is_mine(following) && begin[following] < at) ++following;
        next[i] = is_mine(following) ? static_cast<int64_t>(following) : -1;
        while (is_mine(slice) && begin[slice] <= at) {
            while (!open.empty() && end[open.back()] <= begin[slice]) open.pop_back();
            open.push_back(slice++);
        }
        while (!open.empty() && end[open.back()] <= at) open.pop_back();
        inside[i] = open.empty() ? -1 : static_cast<int64_t>(open.back());
    }
}

}  // namespace lanescope::foreign
