// Joins between lists of an Ascend capture: executions, phases, submissions, tasks.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace lanescope::ascend {

// The largest (smallest) value, none below 0, among the rows of each task, and the first row that has it: 0 and -1 for
// tasks without rows. False: a row is of no task.
bool extremes(std::span<const int64_t> task, std::span<const int64_t> value, bool largest, std::span<int64_t> best,
              std::span<int64_t> row);

// For each wanted value the last place of its lane whose value does not exceed it, -1 without one. Lanes do not fall, and
// values do not fall within a lane.
void last_of_lane(std::span<const int64_t> lane, std::span<const int64_t> value, std::span<const int64_t> wanted_lane,
                  std::span<const int64_t> wanted, std::span<int64_t> found);

// Of the rows with a key and another value, none of which is -1, and a stamp above 0: the row with the first stamp (of
// those the first) for each pair of both, by key, then by the other value. Keys lie below `keys`; false: one does not.
bool first_of_pairs(std::span<const int64_t> key, std::span<const int64_t> other, std::span<const int64_t> stamp,
                    uint64_t keys, std::vector<int64_t>& found);

// The distinct ids of some lists, rising. Ids are dense where each ring (upper half) counts from some number: a table of
// all numbers marks those that are there. False: such a table would have more than `most` entries.
bool union_of_ids(std::span<const std::span<const uint64_t>> lists, uint64_t most, std::vector<uint64_t>& found);

// The largest value of the tasks that each task waits for, 0 without any; no value is below 0. False: a task does not exist.
bool latest_before(std::span<const int64_t> pred, std::span<const int64_t> succ, std::span<const int64_t> value,
                   std::span<int64_t> best);

// What a table says of ids: `shift` is added to the number (lower half) of an id by its ring (upper half). False: an id has
// no entry.
bool places_of(std::span<const uint64_t> ids, std::span<const int64_t> shift, std::span<const int32_t> table,
               std::span<int64_t> found);

}  // namespace lanescope::ascend
