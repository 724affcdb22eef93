// Any intervals on any lanes: each gets one row, rows nest or share no time, and lanes that come one after another are
// placed as all others are.
#include <cstdlib>
#include <vector>

#include "core/trace/row_packing/pack.hpp"
#include "record_mutator.hpp"
#include "require.hpp"

LANESCOPE_FUZZ_RECORDS(1, 4)

using lanescope::fuzz::require;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace lanescope::layout;
    if (size < 1) return 0;
    const size_t n = std::min<size_t>((size - 1) / 4, 200);
    const std::vector<uint8_t> nested{0, 1, 1, static_cast<uint8_t>(data[0] & 1)};
    std::vector<int64_t> track(n), begin(n), length(n);
    std::vector<uint8_t> known(n);
    for (size_t i = 0; i < n; ++i) {
        const uint8_t* item = data + 1 + 4 * i;
        track[i] = item[0] == 255 ? (data[0] & 2 ? -1 : 4) : item[0] % 4;
        // In turn, or anything: what is written mostly comes in order.
        begin[i] = (data[0] & 4 ? static_cast<int64_t>(i) * 2 : 0) + item[1] % 64;
        length[i] = item[2] == 255 ? -1 : item[2] % 32;
        known[i] = item[3] % 16 != 0;
        if (item[3] == 254) begin[i] = kForever - item[1];
    }
    const Intervals items{track, begin, length, data[0] & 8 ? std::span<const uint8_t>(known) : std::span<const uint8_t>()};
    std::vector<int64_t> order(n), begins(n), ends(n), row_start;
    std::vector<int32_t> row(n), rows(nested.size());
    const PackResult done = place(items, nested, {order, row, begins, ends, rows}, row_start);
    if (done.status != Status::ok) {
        require(done.where < n);
        const auto at = done.where;
        const bool is_open = !items.known.empty() && known[at] == 0;
        if (done.status == Status::bad_track) require(track[at] < 0 || track[at] > 3);
        // The last time that there is means that the end is open.
        const bool is_far = is_open ? begin[at] == kForever : length[at] < 0 || begin[at] >= kForever - length[at];
        if (done.status == Status::bad_time) require(is_far);
        return 0;
    }
    std::vector<uint8_t> seen(n);
    for (const int64_t item : order) {
        require(item >= 0 && static_cast<size_t>(item) < n && !seen[static_cast<size_t>(item)]);
        seen[static_cast<size_t>(item)] = 1;
    }
    require(row_start.size() >= 1 && row_start.back() == static_cast<int64_t>(n));
    for (size_t i = 0; i < n; ++i) {
        const auto at = static_cast<size_t>(order[i]);
        require(begins[i] == begin[at] && ends[i] == items.end(at) && row[at] >= 0);
        require(row[at] < rows[static_cast<size_t>(track[at])]);
    }
    // All pairs of a row.
    for (size_t r = 0; r + 1 < row_start.size(); ++r) {
        for (auto i = static_cast<size_t>(row_start[r]); i < static_cast<size_t>(row_start[r + 1]); ++i) {
            const auto a = static_cast<size_t>(order[i]);
            for (size_t j = i + 1; j < static_cast<size_t>(row_start[r + 1]); ++j) {
                const auto b = static_cast<size_t>(order[j]);
                require(track[a] == track[b] && row[a] == row[b] && begins[i] <= begins[j]);
                const bool is_over = ends[i] <= begins[j], is_inside = ends[j] <= ends[i];
                require(is_over || (nested[static_cast<size_t>(track[a])] && is_inside) || begins[j] == ends[j]);
            }
        }
    }
    std::vector<int32_t> depth(n);
    depths(begins, ends, order, row_start, depth);
    for (const int32_t value : depth) require(value >= 0 && value < static_cast<int32_t>(n));
    if (!items.known.empty()) return 0;

    // The lanes as runs, where they come one after another.
    std::vector<int64_t> lane, count;
    for (size_t i = 0; i < n; ++i) {
        if (lane.empty() || lane.back() != track[i]) lane.push_back(track[i]), count.push_back(0);
        ++count.back();
        if (lane.size() > 1 && lane[lane.size() - 1] <= lane[lane.size() - 2]) return 0;
    }
    std::vector<int64_t> other_order(n), other_start;
    std::vector<int32_t> other_rows(nested.size());
    const Intervals plain{{}, begin, length, {}};
    const InTurn turn = lane_after_lane(plain, {lane, count}, 0, nested, other_rows, other_order, other_start);
    if (turn == InTurn::no) return 0;
    for (size_t i = 0; i < n; ++i) require((turn == InTurn::moved ? other_order[i] : static_cast<int64_t>(i)) == order[i]);
    require(other_rows == rows);
    return 0;
}
