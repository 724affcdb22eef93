// Any rows of an Ascend capture: joins, the graph of its tasks and their texts are those of plain loops.
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/devices/ascend/joins.hpp"
#include "core/devices/ascend/task_graph.hpp"
#include "core/devices/ascend/task_texts.hpp"
#include "record_mutator.hpp"
#include "require.hpp"

LANESCOPE_FUZZ_RECORDS(2, 4)

using lanescope::fuzz::require;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace lanescope::ascend;
    if (size < 2) return 0;
    const size_t n = std::min<size_t>((size - 2) / 4, 100), tasks = 1 + data[0] % 12;
    std::vector<int64_t> task(n), other(n), value(n), stamp(n);
    std::vector<uint64_t> ids(n);
    bool is_known = true;
    for (size_t i = 0; i < n; ++i) {
        const uint8_t* item = data + 2 + 4 * i;
        task[i] = item[0] == 255 ? -1 : static_cast<int64_t>(item[0] % (tasks + (item[0] > 252)));
        other[i] = static_cast<int64_t>(item[1] % tasks) - (item[1] == 254);
        value[i] = item[2] % 32;
        stamp[i] = item[3] % 8;
        ids[i] = uint64_t{item[3]} % 3 << 32 | (item[2] % 50 + 256u * (item[1] % 3 == 0));
        is_known = is_known && static_cast<size_t>(task[i]) < tasks;
    }
    std::vector<int64_t> best(tasks), row(tasks);
    for (const bool largest : {false, true}) {
        require(extremes(task, value, largest, best, row) == is_known);
        for (size_t t = 0; is_known && t < tasks; ++t) {
            int64_t found = -1;
            for (size_t i = 0; i < n; ++i) {
                if (task[i] != static_cast<int64_t>(t)) continue;
                const auto at = static_cast<size_t>(found);
                if (found < 0 || (largest ? value[i] > value[at] : value[i] < value[at])) found = static_cast<int64_t>(i);
            }
            require(row[t] == found && best[t] == (found < 0 ? 0 : value[static_cast<size_t>(found)]));
        }
    }

    // Lanes that do not fall, and values that do not fall within one.
    std::vector<int64_t> lane, rising, wanted_lane(n), wanted(n), last(n);
    for (size_t i = 0; i < n; ++i) {
        const int64_t step = value[i] == 31 ? int64_t{1} << 40 : value[i] % 4;
        const bool is_new = i == 0 || stamp[i] == 7;
        lane.push_back(i == 0 ? 0 : lane.back() + is_new * (1 + value[i] % 2));
        rising.push_back(is_new ? value[i] : rising.back() + step);
        wanted_lane[i] = static_cast<int64_t>(data[2 + 4 * i]) % 8, wanted[i] = data[3 + 4 * i] % 48 - 4;
    }
    last_of_lane(lane, rising, wanted_lane, wanted, last);
    for (size_t i = 0; i < n; ++i) {
        int64_t found = -1;
        for (size_t j = 0; j < n; ++j) {
            if (lane[j] == wanted_lane[i] && rising[j] <= wanted[i]) found = static_cast<int64_t>(j);
        }
        require(last[i] == found);
    }

    std::vector<int64_t> firsts;
    bool is_below = true;
    std::map<std::pair<int64_t, int64_t>, int64_t> pairs;
    for (size_t i = 0; i < n; ++i) {
        if (task[i] < 0 || other[i] < 0 || stamp[i] <= 0) continue;
        is_below = is_below && static_cast<size_t>(task[i]) < tasks;
        const auto [at, is_new] = pairs.try_emplace({task[i], other[i]}, static_cast<int64_t>(i));
        if (!is_new && stamp[i] < stamp[static_cast<size_t>(at->second)]) at->second = static_cast<int64_t>(i);
    }
    require(first_of_pairs(task, other, stamp, tasks, firsts) == is_below);
    if (is_below) {
        require(firsts.size() == pairs.size());
        size_t i = 0;
        for (const auto& [pair, first] : pairs) require(firsts[i++] == first);
    }

    // The latest of what each task waits for; ends that are no task are refused.
    std::vector<int64_t> ends(tasks), latest(tasks), plain_latest(tasks);
    for (size_t t = 0; t < tasks; ++t) ends[t] = static_cast<int64_t>(data[t % size] % 16);
    bool are_tasks = true;
    for (size_t i = 0; i < n; ++i) {
        are_tasks = are_tasks && static_cast<size_t>(task[i]) < tasks && static_cast<size_t>(other[i]) < tasks;
    }
    require(latest_before(task, other, ends, latest) == are_tasks);
    for (size_t i = 0; are_tasks && i < n; ++i) {
        auto& best = plain_latest[static_cast<size_t>(other[i])];
        best = std::max(best, ends[static_cast<size_t>(task[i])]);
    }
    require(!are_tasks || latest == plain_latest);

    // Entries of ids in a table of two rings, of which the second one begins where the first one ends.
    const std::vector<int64_t> shift{0, 300};
    std::vector<int32_t> table(400);
    for (size_t i = 0; i < table.size(); ++i) table[i] = static_cast<int32_t>(7 * i) - 1;
    std::vector<int64_t> entries(n), plain_entries(n);
    bool are_there = true;
    for (size_t i = 0; i < n; ++i) {
        const uint64_t ring = ids[i] >> 32, at = (ids[i] & 0xffffffff) + (ring == 1 ? 300 : 0);
        are_there = are_there && ring < 2 && at < table.size();
        if (are_there) plain_entries[i] = table[static_cast<size_t>(at)];
    }
    require(places_of(ids, shift, table, entries) == are_there);
    require(!are_there || entries == plain_entries);

    std::vector<uint64_t> united;
    const std::span<const uint64_t> all(ids), lists[] = {all.first(n / 2), all.subspan(n / 2)};
    const std::set<uint64_t> distinct(ids.begin(), ids.end());
    if (union_of_ids(lists, 4096, united)) require(std::vector<uint64_t>(distinct.begin(), distinct.end()) == united);
    else std::abort();

    // Tasks on a way from a cycle to a cycle: reachable from one that reaches itself, and reaching one.
    std::vector<int64_t> pred, succ, first;
    for (size_t i = 0; i < n; ++i) {
        if (static_cast<size_t>(task[i]) >= tasks || other[i] < 0 || stamp[i] < data[1] % 8) continue;
        pred.push_back(task[i]);
        succ.push_back(other[i]);
    }
    std::vector<std::vector<uint8_t>> reaches(tasks, std::vector<uint8_t>(tasks));
    for (size_t i = 0; i < pred.size(); ++i) reaches[static_cast<size_t>(pred[i])][static_cast<size_t>(succ[i])] = 1;
    for (size_t k = 0; k < tasks; ++k) {
        for (size_t i = 0; i < tasks; ++i) {
            for (size_t j = 0; j < tasks; ++j) reaches[i][j] |= reaches[i][k] & reaches[k][j];
        }
    }
    std::vector<uint8_t> on_cycles(tasks);
    find_cycles(pred, succ, on_cycles);
    for (size_t t = 0; t < tasks; ++t) {
        bool is_behind = false, is_before = false;
        for (size_t c = 0; c < tasks; ++c) {
            is_behind = is_behind || (reaches[c][c] && reaches[c][t]);
            is_before = is_before || (reaches[c][c] && reaches[t][c]);
        }
        require((on_cycles[t] != 0) == (is_behind && is_before));
    }
    first_edges(pred, succ, tasks, first);
    std::set<std::pair<int64_t, int64_t>> met;
    size_t at = 0;
    for (size_t i = 0; i < pred.size(); ++i) {
        if (met.insert({pred[i], succ[i]}).second) require(at < first.size() && first[at++] == static_cast<int64_t>(i));
    }
    require(at == first.size());

    const EncodedNames names = encoded_names(ids);
    require(names.first.size() == n + 1 && names.first.back() == static_cast<int64_t>(names.bytes.size()));
    for (size_t i = 0; i < n; ++i) {
        char room[32];
        const std::string_view name = task_name(ids[i], room);
        const auto from = static_cast<size_t>(names.first[i]), to = static_cast<size_t>(names.first[i + 1]);
        require(name == std::string_view(reinterpret_cast<const char*>(names.bytes.data()) + from, to - from));
    }
    return 0;
}
