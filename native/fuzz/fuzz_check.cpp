// Any rows on any lanes, cut anywhere: of each pair that clashes both are kept, or their lane is looked at as a whole.
#include <algorithm>
#include <cstdlib>
#include <vector>

#include "core/analysis/check/sweep.hpp"
#include "record_mutator.hpp"

LANESCOPE_FUZZ_RECORDS(0, 4)

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace lanescope::check;
    const Nesting disciplines[] = {Nesting::free, Nesting::disjoint, Nesting::nested, Nesting::nested};
    const size_t n = std::min<size_t>(size / 4, 160);  // each pair is tried
    std::vector<int64_t> track(n), begin(n), length(n), end(n);
    std::vector<uint8_t> keep(n), known(n, 1);
    Sweep sweep(false, 0);
    sweep.add_lanes(disciplines);
    int64_t time = 0;
    for (size_t i = 0; i < n; ++i, data += 4) {
        track[i] = data[0] % 5;
        time += data[1] % 8 - (data[1] == 255 ? 9 : 0);
        begin[i] = time;
        length[i] = data[2] % 32;
        end[i] = begin[i] + length[i];
        if (data[3] % 16 == 1) sweep.add_gaps(std::span(track).subspan(i, 1), std::span(end).subspan(i, 1));
        if (data[3] % 16 != 2 && i + 1 < n) continue;  // else a batch ends here
        const auto first = static_cast<size_t>(sweep.rows());
        const auto part = [&](const auto& column) { return std::span(column).subspan(first, i + 1 - first); };
        sweep.pass({part(track), part(begin), {part(length), part(known)}, {}, {part(end), {}}, {}, {}},
                   std::span(keep).subspan(first, i + 1 - first));
        for (const int64_t row : sweep.earlier()) keep[static_cast<size_t>(row)] = 1;
    }
    for (size_t j = 0; j < n; ++j) {
        for (size_t i = 0; i < n; ++i) {
            if (track[i] != track[j] || track[i] == 4 || sweep.result(static_cast<size_t>(track[i])).is_whole || i == j) continue;
            const bool shares = begin[i] < end[j] && begin[j] < end[i] && end[i] > begin[i] && end[j] > begin[j];
            const bool crosses = shares && begin[i] < begin[j] && end[i] < end[j];
            const bool clashes = track[i] == 1 ? shares : track[i] > 1 && crosses;
            if (clashes && (keep[i] == 0 || keep[j] == 0)) std::abort();
        }
    }
    return 0;
}
