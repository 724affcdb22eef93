// Where the recordings of a dump lie on one axis of time. Why, and how far that is known: interpret/run_axis.py.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

namespace lanescope::aie {

// A run of a dump: a slice of it, and which of the Starts of its unit there.
struct RunKey {
    int64_t part;
    int64_t ordinal;
    bool operator==(const RunKey&) const = default;
};

// A recording that begins. Integers only: rows of a matrix.
struct BegunRecording {
    int64_t unit;  // number, from 0
    RunKey run;
    int64_t mode;
    int64_t timer;    // of its Start; negative: none
    int64_t counts;   // not 0: the event that started it is known to set its timer back
    int64_t follows;  // the slice that its own follows without a new configuration; negative: none is known
};

// A recording that ends.
struct EndedRecording {
    int64_t before;  // how many recordings of the block begin before
    int64_t unit;
    RunKey run;
    int64_t ticks;  // how many it lasted
};

// How the distance of a recording from the one before is known; the last: it has no place on the axis.
enum class Distance : int64_t { first, recorded, at_least, apart };

struct RunPlace {
    int64_t begin;
    int64_t distance;
};

class RunAxis {
   public:
    // No recording begins later than `limit`, 2^60 or less.
    explicit RunAxis(int64_t limit) : limit_(limit) {}

    // Place recordings in the order of the dump, and note those that end among them; there is a place for each.
    void follow(std::span<const BegunRecording> begun, std::span<const EndedRecording> ended, std::span<RunPlace> places);

    int64_t unknown = 0;        // runs whose distance from the one before is not recorded
    int64_t contradictory = 0;  // runs whose Start timer contradicts the run before
    int64_t disagreeing = 0;    // recordings whose Start timer differs from that of other units of their run

   private:
    // The last recording of a unit.
    struct Unit {
        std::optional<RunKey> run;
        int64_t begin = 0;
        std::optional<int64_t> end;  // none: it runs
        bool counts = false;
    };
    struct Run {
        int64_t begin;
        int64_t end;  // of all its recordings so far
        bool is_recorded = false;
    };
    struct Hash {
        size_t operator()(const RunKey& key) const;
    };

    RunPlace begin(const BegunRecording& recording);
    void end(const EndedRecording& recording);
    std::optional<int64_t> told(const Unit& unit, const BegunRecording& recording) const;
    Unit& unit_of(int64_t number);

    int64_t limit_;
    std::vector<Unit> units_;
    std::unordered_map<RunKey, Run, Hash> runs_;
    std::optional<RunKey> first_, last_;
};

}  // namespace lanescope::aie
