// As-of joins: the place of each left row among the right rows of its key, in the order of one stream.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace lanescope::joins {

// Rows: the columns that together are the key, and the position in the stream.
struct Side {
    std::vector<std::span<const uint64_t>> keys;
    std::span<const int64_t> seq;

    size_t size() const { return seq.size(); }
};

inline constexpr size_t most_rows = size_t{1} << 31;

struct Places {
    std::span<int64_t> rows;           // the right rows, those of a key together, by position, then as given
    std::span<int64_t> at, low, high;  // by left row: the place in `rows` behind those before it; begin and end of its key
};

// `strict`: a right row of the position of a left one comes after it. Keys that no right row has have no rows: all places
// are 0. Both sides have the same number of columns, of as many rows as there are positions, `most_rows` at most.
void asof_join(const Side& left, const Side& right, bool strict, const Places& places);

}  // namespace lanescope::joins
