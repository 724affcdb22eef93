// Any intervals on any lanes: every placement nests, and the encoder takes all that was placed, wherever blocks end.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "core/io/perfetto/encoder.hpp"
#include "record_mutator.hpp"

LANESCOPE_FUZZ_RECORDS(2, 4)

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace lanescope;
    if (size < 2) return 0;
    const size_t target = 1 + data[0];
    const int shift = data[1] % 56;  // small times meet often, large ones take long varints
    const size_t n = (size - 2) / 4;
    std::vector<int64_t> track(n), begin(n), length(n);
    std::vector<uint8_t> known(n);
    std::vector<int32_t> name(n);
    for (size_t i = 0; i < n; ++i) {
        const uint8_t* item = data + 2 + 4 * i;
        track[i] = item[0] % 5;
        begin[i] = static_cast<int64_t>(item[1]) << shift >> 2;
        length[i] = item[2] % 32;
        known[i] = item[3] & 1;
        name[i] = (item[3] >> 1) % 3;
    }
    const std::vector<uint8_t> nested = {0, 1, 0, 1, 1};
    std::vector<int64_t> order(n), begins(n), ends(n), row_start;
    std::vector<int32_t> row(n), rows(nested.size());
    const layout::Intervals items{track, begin, length, known};
    if (layout::place(items, nested, {order, row, begins, ends, rows}, row_start).status != layout::Status::ok) std::abort();
    if (static_cast<size_t>(row_start.back()) != n) std::abort();

    std::vector<perfetto::Lane> lanes;
    for (size_t r = 0; r + 1 < row_start.size(); ++r) lanes.push_back({r + 1, row_start[r], row_start[r + 1], 0, 0, 0, 0});
    const std::vector<uint8_t> letters = {'a', 'b', 'c'};
    const std::vector<int64_t> offsets = {0, 1, 2, 3};
    const perfetto::Texts names{letters, offsets};
    perfetto::Events slices{order, begins, ends, false, name, {}, {}, {}, {}, {}};
    if (shift % 2 != 0 && n > 0) {  // the slow way too: an argument on some
        slices.arguments.push_back({letters, perfetto::ValueType::u8, known.data(), n, known, {}, 0, static_cast<int64_t>(n), {}, {}});
    }
    perfetto::Encoder encoder(slices, {}, {}, names, {}, lanes);
    size_t bytes = 0;
    for (auto block = encoder.fill(target); !block.empty(); block = encoder.fill(target)) bytes += block.size();
    if (encoder.status() != perfetto::Status::ok || (n > 0 && bytes < 20 * n / 2)) std::abort();
    return 0;
}
