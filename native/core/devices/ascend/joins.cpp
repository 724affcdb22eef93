#include "core/devices/ascend/joins.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <tuple>
#include <vector>

namespace lanescope::ascend {

bool extremes(std::span<const int64_t> task, std::span<const int64_t> value, bool largest, std::span<int64_t> best,
              std::span<int64_t> row) {
    std::fill(best.begin(), best.end(), largest ? 0 : std::numeric_limits<int64_t>::max());
    std::fill(row.begin(), row.end(), -1);
    for (size_t i = 0; i < task.size(); ++i) {
        const auto at = static_cast<uint64_t>(task[i]);
        if (at >= best.size()) return false;
        const bool is_better = largest ? value[i] > best[at] : value[i] < best[at];
        if (!is_better && (row[at] >= 0 || value[i] != best[at])) continue;
        best[at] = value[i];
        row[at] = static_cast<int64_t>(i);
    }
    for (size_t at = 0; at < best.size(); ++at) {
        if (row[at] < 0) best[at] = 0;
    }
    return true;
}

namespace {

// Places of values by their high bits: a lane whose values rise is cut into about as many equal spans as it has values.
class RisingLane {
public:
    RisingLane(int64_t lane, size_t first) : lane_(lane), first_(first) {}

    bool operator<(int64_t lane) const { return lane_ < lane; }
    bool is(int64_t lane) const { return lane_ == lane; }

    // Values of the lane are those up to `last`; the table of all lanes grows by what this one needs.
    void close(std::span<const int64_t> value, size_t last, std::vector<uint32_t>& table) {
        last_ = last;
        low_ = static_cast<uint64_t>(value[first_]);
        high_ = value[last - 1];
        const size_t count = last - first_;
        const uint64_t range = static_cast<uint64_t>(high_) - low_;
        shift_ = std::max(static_cast<int>(std::bit_width(range)) - static_cast<int>(std::bit_width(count)), 0);
        table_ = table.size();
        table.resize(table_ + static_cast<size_t>(range >> shift_) + 2, static_cast<uint32_t>(count));
        const size_t last_span = table.size() - table_ - 1;
        for (size_t i = count; i-- > 0;) table[table_ + std::min(span_of(value[first_ + i]), last_span)] = static_cast<uint32_t>(i);
        // Spans without a value begin where the next one does.
        for (size_t span = table.size() - 1; span-- > table_;) table[span] = std::min(table[span], table[span + 1]);
    }

    // The place of the last value that does not exceed the wanted one, -1 without any.
    int64_t find(std::span<const int64_t> value, const std::vector<uint32_t>& table, int64_t wanted) const {
        if (wanted < static_cast<int64_t>(low_)) return -1;
        if (wanted >= high_) return static_cast<int64_t>(last_) - 1;
        const size_t span = table_ + span_of(wanted);
        const int64_t* const first = value.data() + first_ + table[span];
        const int64_t* const last = value.data() + first_ + table[span + 1];
        if (last - first > kFew) return std::upper_bound(first, last, wanted) - value.data() - 1;
        ptrdiff_t before = 0;  // counted without a branch on the values, which no predictor knows
        for (const int64_t* at = first; at < last; ++at) before += *at <= wanted;
        return first + before - value.data() - 1;
    }

private:
    static constexpr ptrdiff_t kFew = 8;

    size_t span_of(int64_t value) const { return static_cast<size_t>((static_cast<uint64_t>(value) - low_) >> shift_); }

    int64_t lane_;
    size_t first_;
    size_t last_ = 0;
    uint64_t low_ = 0;
    int64_t high_ = 0;
    int shift_ = 0;
    size_t table_ = 0;
};

}  // namespace

void last_of_lane(std::span<const int64_t> lane, std::span<const int64_t> value, std::span<const int64_t> wanted_lane,
                  std::span<const int64_t> wanted, std::span<int64_t> found) {
    std::vector<RisingLane> lanes;
    std::vector<uint32_t> table;
    for (size_t i = 0; i < lane.size(); ++i) {
        if (i != 0 && lane[i] == lane[i - 1]) continue;
        if (i != 0) lanes.back().close(value, i, table);
        lanes.emplace_back(lane[i], i);
    }
    if (!lanes.empty()) lanes.back().close(value, lane.size(), table);
    const RisingLane* mine = nullptr;
    for (size_t i = 0; i < wanted.size(); ++i) {
        found[i] = -1;
        if (mine == nullptr || !mine->is(wanted_lane[i])) {
            const auto at = std::lower_bound(lanes.begin(), lanes.end(), wanted_lane[i]);
            if (at == lanes.end() || !at->is(wanted_lane[i])) continue;
            mine = &*at;
        }
        found[i] = mine->find(value, table, wanted[i]);
    }
}

bool first_of_pairs(std::span<const int64_t> key, std::span<const int64_t> other, std::span<const int64_t> stamp,
                    uint64_t keys, std::vector<int64_t>& found) {
    const auto counts = [&](size_t i) { return key[i] >= 0 && other[i] >= 0 && stamp[i] > 0; };
    std::vector<uint64_t> start(keys + 1, 0);
    for (size_t i = 0; i < key.size(); ++i) {
        if (!counts(i)) continue;
        if (static_cast<uint64_t>(key[i]) >= keys) return false;
        ++start[static_cast<uint64_t>(key[i]) + 1];
    }
    for (size_t i = 1; i <= keys; ++i) start[i] += start[i - 1];
    found.resize(start[keys]);
    // Afterwards start[k] is where the rows of key k end.
    for (size_t i = 0; i < key.size(); ++i) {
        if (counts(i)) found[start[static_cast<uint64_t>(key[i])]++] = static_cast<int64_t>(i);
    }
    const auto order = [&](int64_t row) {
        const auto i = static_cast<size_t>(row);
        return std::tuple(other[i], stamp[i], row);
    };
    size_t kept = 0;
    size_t begin = 0;
    for (size_t k = 0; k < keys; ++k) {
        const size_t end = start[k];
        if (end - begin > 1) {
            std::sort(found.begin() + static_cast<ptrdiff_t>(begin), found.begin() + static_cast<ptrdiff_t>(end),
                      [&](int64_t a, int64_t b) { return order(a) < order(b); });
        }
        for (size_t i = begin; i < end; ++i) {
            const bool is_first = i == begin || other[static_cast<size_t>(found[i])] != other[static_cast<size_t>(found[kept - 1])];
            if (is_first) found[kept++] = found[i];
        }
        begin = end;
    }
    found.resize(kept);
    return true;
}

bool union_of_ids(std::span<const std::span<const uint64_t>> lists, uint64_t most, std::vector<uint64_t>& found) {
    constexpr uint64_t kRings = 1 << 16;
    struct Ring {
        uint32_t least = std::numeric_limits<uint32_t>::max(), largest = 0;
        uint64_t shift = 0;
    };
    std::vector<Ring> rings;
    for (const auto& list : lists) {
        for (const uint64_t id : list) {
            const uint64_t ring = id >> 32;
            if (ring >= rings.size()) {
                if (ring >= kRings) return false;
                rings.resize(static_cast<size_t>(ring) + 1);
            }
            const auto number = static_cast<uint32_t>(id);
            rings[ring].least = std::min(rings[ring].least, number);
            rings[ring].largest = std::max(rings[ring].largest, number);
        }
    }
    uint64_t total = 0;
    for (Ring& ring : rings) {
        if (ring.least > ring.largest) continue;
        ring.shift = total - ring.least;
        total += uint64_t{ring.largest} - ring.least + 1;
        if (total > most) return false;
    }
    std::vector<uint8_t> is_there(total);
    for (const auto& list : lists) {
        for (const uint64_t id : list) is_there[rings[id >> 32].shift + static_cast<uint32_t>(id)] = 1;
    }
    found.clear();
    for (uint64_t ring = 0; ring < rings.size(); ++ring) {
        const Ring& mine = rings[ring];
        for (uint64_t number = mine.least; number <= mine.largest; ++number) {
            if (is_there[mine.shift + number] != 0) found.push_back(ring << 32 | number);
        }
    }
    return true;
}

bool latest_before(std::span<const int64_t> pred, std::span<const int64_t> succ, std::span<const int64_t> value,
                   std::span<int64_t> best) {
    std::fill(best.begin(), best.end(), 0);
    for (size_t i = 0; i < pred.size(); ++i) {
        const auto from = static_cast<uint64_t>(pred[i]), to = static_cast<uint64_t>(succ[i]);
        if (from >= value.size() || to >= best.size()) return false;
        best[to] = std::max(best[to], value[from]);
    }
    return true;
}

bool places_of(std::span<const uint64_t> ids, std::span<const int64_t> shift, std::span<const int32_t> table,
               std::span<int64_t> found) {
    for (size_t i = 0; i < ids.size(); ++i) {
        const uint64_t ring = ids[i] >> 32;
        if (ring >= shift.size()) return false;
        const uint64_t at = static_cast<uint32_t>(ids[i]) + static_cast<uint64_t>(shift[ring]);
        if (at >= table.size()) return false;
        found[i] = table[at];
    }
    return true;
}

}  // namespace lanescope::ascend
