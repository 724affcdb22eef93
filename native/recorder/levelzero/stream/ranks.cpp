#include "stream/ranks.hpp"

#include <cctype>
#include <cstdlib>

#include "stream/environment.hpp"

namespace lanescope::levelzero {

namespace {

// Rank, number of ranks, and what must be there besides. The same as in recorder/ranks.py. A batch script of Slurm has
// a number too, but no step.
struct Names {
    const char *rank, *count, *needed;
};
constexpr Names launchers[] = {
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", nullptr}, {"PMIX_RANK", nullptr, nullptr},
    {"PMI_RANK", "PMI_SIZE", nullptr},                         {"MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", nullptr},
    {"PALS_RANKID", "PALS_SIZE", nullptr},                     {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_ID"},
};

// The number in a variable, -1 without one.
i64 number_of(const char* name) {
    const char* text = name == nullptr ? nullptr : given_variable(name);
    if (text == nullptr || !std::isdigit(static_cast<unsigned char>(*text))) return -1;
    char* end = nullptr;
    const unsigned long value = std::strtoul(text, &end, 10);
    return *end == 0 && value < 1u << 31 ? static_cast<i64>(value) : -1;
}

}  // namespace

Rank rank_of_process() {
    for (const Names& names : launchers) {
        if (names.needed != nullptr && given_variable(names.needed) == nullptr) continue;
        const i64 number = number_of(names.rank);
        if (number < 0) continue;
        const i64 count = number_of(names.count);
        return {number, count > number ? count : 0};
    }
    return {};
}

bool is_selected_rank(const Rank& rank, const char* ranks) {
    if (*ranks == 0) return true;
    if (rank.number < 0) return false;
    for (const char* at = ranks; *at != 0;) {
        char* end = nullptr;
        const long first = std::strtol(at, &end, 10);
        const long last = *end == '-' ? std::strtol(end + 1, &end, 10) : first;
        if (first <= rank.number && rank.number <= last) return true;
        if (*end != ',') break;
        at = end + 1;
    }
    return false;
}

}  // namespace lanescope::levelzero
