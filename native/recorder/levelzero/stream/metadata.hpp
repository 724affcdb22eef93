#pragma once

#include <string>

#include "stream/ranks.hpp"

namespace lanescope::levelzero {

struct TraceEnv {
    std::string host, program, boot;
    u32 pid = 0;
    u64 epoch = 0;  // Unix time at which the clock of the trace stood at 0, ns
    i64 clock_error = -1;  // how far that may be off, ns; -1: unknown
    Rank rank;
    u8 uuid[16] = {};
};

// The description of the trace in the language of CTF 1.8.
std::string metadata(const TraceEnv& facts);

}  // namespace lanescope::levelzero
