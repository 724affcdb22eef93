// Any recordings of AIE units, in blocks of any size: places do not depend on the blocks, and those of a unit never overlap.
#include <algorithm>
#include <cstdlib>
#include <map>
#include <vector>

#include "core/devices/aie/run_axis.hpp"
#include "record_mutator.hpp"
#include "require.hpp"

LANESCOPE_FUZZ_RECORDS(2, 8)

using lanescope::fuzz::require;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace lanescope::aie;
    if (size < 2) return 0;
    const int64_t limit = data[0] < 64 ? 100 : data[0] < 128 ? 5000 : int64_t{1} << 60;
    const size_t length = 1 + data[1] % 16, n = std::min<size_t>((size - 2) / 8, 300);
    RunAxis whole(limit), parts(limit);
    std::vector<BegunRecording> begun, some;
    std::vector<EndedRecording> ended, few;
    std::vector<RunPlace> found;
    const auto follow = [&] {
        const size_t first = found.size();
        found.resize(first + some.size());
        parts.follow(some, few, std::span(found).subspan(first));
        some.clear(), few.clear();
    };
    for (size_t i = 0; i < n; ++i) {
        const uint8_t* item = data + 2 + 8 * i;
        const RunKey run{item[2] % 3, item[3] % 8};
        const int64_t unit = item[1] % 4;
        if (item[0] & 1) {
            ended.push_back({static_cast<int64_t>(begun.size()), unit, run, int64_t{item[7]} << item[6] % 8});
            few.push_back({static_cast<int64_t>(some.size()), unit, run, ended.back().ticks});
        } else {
            begun.push_back({unit, run, item[4] % 4, int64_t{item[5]} - 1, item[0] & 2, int64_t{item[6] % 4} - 1});
            some.push_back(begun.back());
        }
        if (i % length == length - 1) follow();
    }
    follow();
    std::vector<RunPlace> places(begun.size());
    whole.follow(begun, ended, places);
    require(whole.unknown == parts.unknown && whole.contradictory == parts.contradictory &&
            whole.disagreeing == parts.disagreeing);
    std::map<int64_t, size_t> last;  // of each unit, the last recording with a place
    std::map<int64_t, int64_t> end;  // up to where that is known to go on
    size_t next = 0;
    for (size_t i = 0; i <= begun.size(); ++i) {
        for (; next < ended.size() && static_cast<size_t>(ended[next].before) == i; ++next) {
            const EndedRecording& each = ended[next];
            const auto own = last.find(each.unit);
            if (own != last.end() && begun[own->second].run == each.run) {
                end[each.unit] = places[own->second].begin + each.ticks;
            }
        }
        if (i == begun.size()) break;
        require(places[i].begin == found[i].begin && places[i].distance == found[i].distance);
        require(places[i].distance >= 0 && places[i].distance <= 3 && places[i].begin >= 0 && places[i].begin <= limit);
        if (places[i].distance == static_cast<int64_t>(Distance::apart)) {
            require(places[i].begin == 0);
            continue;
        }
        const auto own = last.find(begun[i].unit);
        if (own != last.end()) require(places[i].begin > std::max(places[own->second].begin, end[begun[i].unit]));
        last[begun[i].unit] = i;
        end[begun[i].unit] = places[i].begin;
    }
    return 0;
}
