// Whether the rows of each lane overlap or cross, of rows that come part by part, in any order.
#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "core/wire/growing.hpp"

namespace lanescope::foreign {

class LaneNesting {
public:
    LaneNesting() = default;
    LaneNesting(const LaneNesting&) = delete;
    LaneNesting& operator=(const LaneNesting&) = delete;

    // Rows by lane; those of lanes below 0 are left out. Those without a length only tell that there is the lane.
    void add(std::span<const int32_t> lane, std::span<const int64_t> begin, std::span<const int64_t> dur);

    // Of each lane, ascending, whether two of its rows share time (`is_disjoint`), or cross without one holding the other.
    // `renamed`: lanes that belong to others. The rows are gone afterwards.
    struct Found {
        std::vector<int32_t> lane;
        std::vector<uint8_t> is_clash;
    };
    template <class IsDisjoint>
    Found result(const std::map<int32_t, int32_t>& renamed, IsDisjoint is_disjoint) {
        std::map<int32_t, std::vector<size_t>> lanes;
        for (size_t id = 0; id < slots_.size(); ++id) {
            if (slots_[id] < 0) continue;
            const auto lane = static_cast<int32_t>(id);
            const auto other = renamed.find(lane);
            lanes[other == renamed.end() ? lane : other->second].push_back(static_cast<size_t>(slots_[id]));
        }
        Found found;
        for (const auto& [lane, parts] : lanes) {
            found.lane.push_back(lane);
            found.is_clash.push_back(clash(parts, is_disjoint(lane)));
        }
        slots_.clear();
        rows_.clear();
        return found;
    }

private:
    struct Row {
        int64_t begin;
        int64_t end;
    };

    bool clash(const std::vector<size_t>& parts, bool is_disjoint);
    static void sort(std::span<Row> rows);

    std::vector<int32_t> slots_;  // by lane, into `rows_`; -1: the lane does not exist
    std::vector<Growing<Row>> rows_;
};

}  // namespace lanescope::foreign
