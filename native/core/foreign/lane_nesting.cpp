#include "core/foreign/lane_nesting.hpp"

#include <algorithm>

namespace lanescope::foreign {

void LaneNesting::add(std::span<const int32_t> lane, std::span<const int64_t> begin, std::span<const int64_t> dur) {
    for (size_t i = 0; i < lane.size(); ++i) {
        if (lane[i] < 0) continue;
        const auto id = static_cast<size_t>(lane[i]);
        if (id >= slots_.size()) slots_.resize(std::max(id + 1, 2 * slots_.size()), -1);
        if (slots_[id] < 0) {
            slots_[id] = static_cast<int32_t>(rows_.size());
            rows_.emplace_back();
        }
        if (dur[i] > 0) rows_[static_cast<size_t>(slots_[id])].push_back({begin[i], begin[i] + dur[i]});
    }
}

// By begin, of equal ones the longest first. Writers list what was called before its caller, so mostly a row is near its
// place, and calls behind operators: the rows are a few runs, which are merged.
void LaneNesting::sort(std::span<Row> rows) {
    constexpr size_t near = 16;
    const auto before = [](const Row& a, const Row& b) { return a.begin != b.begin ? a.begin < b.begin : a.end > b.end; };
    std::vector<size_t> runs{0};  // their begins
    for (size_t i = 1; i < rows.size(); ++i) {
        if (!before(rows[i], rows[i - 1])) continue;
        const size_t first = i - std::min(i - runs.back(), near);
        size_t at = i - 1;
        while (at != first && before(rows[i], rows[at - 1])) --at;
        if (at == first && at != runs.back()) {
            runs.push_back(i);
        } else {
            std::rotate(rows.begin() + static_cast<ptrdiff_t>(at), rows.begin() + static_cast<ptrdiff_t>(i),
                        rows.begin() + static_cast<ptrdiff_t>(i) + 1);
        }
    }
    runs.push_back(rows.size());
    const auto place = [&](size_t run) { return rows.begin() + static_cast<ptrdiff_t>(runs[std::min(run, runs.size() - 1)]); };
    for (size_t step = 1; step + 1 < runs.size(); step *= 2) {
        for (size_t run = 0; run + step + 1 < runs.size(); run += 2 * step) {
            std::inplace_merge(place(run), place(run + step), place(run + 2 * step), before);
        }
    }
}

bool LaneNesting::clash(const std::vector<size_t>& parts, bool is_disjoint) {
    Growing<Row>& rows = rows_[parts.front()];
    for (size_t i = 1; i < parts.size(); ++i) rows.append(rows_[parts[i]].data(), rows_[parts[i]].size());
    if (rows.empty()) return false;
    const std::span<Row> sorted(rows.data(), rows.size());
    sort(sorted);
    std::vector<int64_t> open;  // ends of what runs, the first to end at the back
    for (const Row& row : sorted) {
        while (!open.empty() && open.back() <= row.begin) open.pop_back();
        if (!open.empty() && (is_disjoint || row.end > open.back())) return true;
        open.push_back(row.end);
    }
    return false;
}

}  // namespace lanescope::foreign
