// Which rank of a parallel program this process is, as its launcher says in the environment.
#pragma once

#include "api/api.hpp"

namespace lanescope::levelzero {

struct Rank {
    i64 number = -1;  // -1: no launcher says one
    i64 count = 0;    // ranks of the program, 0: unknown
};

// Asked before the program changes its environment.
Rank rank_of_process();

// Whether a rank is one of "0,4-7"; of an empty text each process is, and one without a rank is in no other.
bool is_selected_rank(const Rank& rank, const char* ranks);

}  // namespace lanescope::levelzero
