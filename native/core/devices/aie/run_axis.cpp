#include "core/devices/aie/run_axis.hpp"

#include <algorithm>
#include <cstdlib>

namespace lanescope::aie {
namespace {

constexpr int64_t kExecution = 2;  // modes from here on record no time
// Timers of units that started on one broadcast differ by no more.
constexpr int64_t kTogether = 8;

constexpr RunPlace kApart{0, static_cast<int64_t>(Distance::apart)};

}  // namespace

size_t RunAxis::Hash::operator()(const RunKey& key) const {
    const uint64_t mixed = (static_cast<uint64_t>(key.part) << 32 ^ static_cast<uint64_t>(key.ordinal)) * 0x9e3779b97f4a7c15;
    return static_cast<size_t>(mixed ^ mixed >> 32);
}

RunAxis::Unit& RunAxis::unit_of(int64_t number) {
    const auto at = static_cast<size_t>(number);
    if (at >= units_.size()) units_.resize(at + 1);
    return units_[at];
}

void RunAxis::follow(std::span<const BegunRecording> begun, std::span<const EndedRecording> ended,
                     std::span<RunPlace> places) {
    size_t placed = 0;
    for (const EndedRecording& recording : ended) {
        for (; placed < std::min(static_cast<size_t>(recording.before), begun.size()); ++placed) places[placed] = begin(begun[placed]);
        end(recording);
    }
    for (; placed < begun.size(); ++placed) places[placed] = begin(begun[placed]);
}

// Where a recording begins by its timer; none where that does not count from the Start before.
std::optional<int64_t> RunAxis::told(const Unit& unit, const BegunRecording& recording) const {
    if (!unit.run || !unit.counts || !recording.counts || recording.timer < 0) return std::nullopt;
    if (unit.run->part != recording.run.part && unit.run->part != recording.follows) return std::nullopt;
    return unit.begin + recording.timer;
}

RunPlace RunAxis::begin(const BegunRecording& recording) {
    Unit& own = unit_of(recording.unit);
    if (recording.mode >= kExecution && own.run) return kApart;
    auto found = runs_.find(recording.run);
    if (found == runs_.end()) {
        std::optional<RunKey> before = RunKey{recording.run.part, recording.run.ordinal - 1};
        if (!runs_.contains(*before)) before = last_;  // it is in another slice, or has no place
        Run run{0, 0};
        if (before) {
            run.begin = runs_.at(*before).end + 1;  // a unit stops before it starts again
            const std::optional<int64_t> at = own.run == before ? told(own, recording) : std::nullopt;
            if (at && *at >= run.begin) {
                run.begin = *at;
                run.is_recorded = true;
            } else {
                contradictory += at.has_value();
                ++unknown;
            }
        }
        if (run.begin > limit_) return kApart;
        run.end = run.begin;
        found = runs_.emplace(recording.run, run).first;
        if (!first_) first_ = recording.run;
        last_ = recording.run;
    } else if (found->second.is_recorded) {
        const std::optional<int64_t> at = told(own, recording);
        disagreeing += at && std::abs(*at - found->second.begin) > kTogether;
    }
    RunPlace place{found->second.begin, static_cast<int64_t>(Distance::at_least)};
    if (place.begin == 0 && recording.run == *first_) place.distance = static_cast<int64_t>(Distance::first);
    if (found->second.is_recorded) place.distance = static_cast<int64_t>(Distance::recorded);
    if (own.run && (!own.end || *own.end >= place.begin)) {
        // Its own recording before goes on for longer than those of the units that began this run.
        place = {std::max(own.end.value_or(own.begin), place.begin) + 1, static_cast<int64_t>(Distance::at_least)};
        if (place.begin > limit_) return kApart;
    }
    own = {recording.run, place.begin, std::nullopt, recording.counts != 0};
    return place;
}

void RunAxis::end(const EndedRecording& recording) {
    Unit& own = unit_of(recording.unit);
    if (own.run != recording.run) return;  // it has no place
    own.end = own.begin + recording.ticks;
    Run& run = runs_.at(recording.run);
    run.end = std::max(run.end, *own.end);
}

}  // namespace lanescope::aie
