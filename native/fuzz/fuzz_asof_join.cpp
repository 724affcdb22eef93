// Any rows of any keys on both sides: the places of the join are those that plain loops count.
#include <algorithm>
#include <cstdlib>
#include <vector>

#include "core/analysis/joins/asof_join.hpp"
#include "record_mutator.hpp"
#include "require.hpp"

LANESCOPE_FUZZ_RECORDS(1, 3)

using lanescope::fuzz::require;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace lanescope::joins;
    if (size < 1) return 0;
    const size_t n = std::min<size_t>((size - 1) / 3, 120);
    const bool strict = data[0] & 1;
    struct Rows {
        std::vector<uint64_t> key, other;
        std::vector<int64_t> seq;
    };
    Rows sides[2];
    for (size_t i = 0; i < n; ++i) {
        const uint8_t* item = data + 1 + 3 * i;
        Rows& side = sides[item[0] & 1];
        side.key.push_back(uint64_t{item[1]} % 8 << 40);
        side.other.push_back(item[0] / 2 % 3);
        // Mostly in order.
        side.seq.push_back(static_cast<int64_t>(i) + (item[2] > 200 ? -static_cast<int64_t>(item[2] % 32) : item[2] % 2));
    }
    const auto& [left, right] = sides;
    const size_t lefts = left.seq.size(), rights = right.seq.size();
    std::vector<int64_t> rows(rights, -1), at(lefts), low(lefts), high(lefts);
    asof_join({{left.key, left.other}, left.seq}, {{right.key, right.other}, right.seq}, strict, {rows, at, low, high});
    std::vector<int64_t> sorted = rows;
    std::ranges::sort(sorted);
    for (size_t i = 0; i < rights; ++i) require(sorted[i] == static_cast<int64_t>(i));
    for (size_t i = 0; i < lefts; ++i) {
        std::vector<int64_t> wanted;
        size_t before = 0;
        for (size_t j = 0; j < rights; ++j) {
            if (left.key[i] != right.key[j] || left.other[i] != right.other[j]) continue;
            wanted.push_back(static_cast<int64_t>(j));
            before += right.seq[j] < left.seq[i] || (!strict && right.seq[j] == left.seq[i]);
        }
        std::ranges::stable_sort(wanted, {}, [&](int64_t row) { return right.seq[static_cast<size_t>(row)]; });
        require(high[i] - low[i] == static_cast<int64_t>(wanted.size()));
        require(at[i] - low[i] == static_cast<int64_t>(before));
        for (size_t k = 0; k < wanted.size(); ++k) require(rows[static_cast<size_t>(low[i]) + k] == wanted[k]);
    }
    return 0;
}
