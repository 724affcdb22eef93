// Stands in for the mbarrier instructions: how many arrivals there must be, how many are still missing, and the phase.
#pragma once

#include "fibers.hpp"

namespace barrier {

inline void init(Word* barrier, unsigned count) { *barrier = Word{count} << 40 | Word{count} << 16; }
inline void arrive(Word* barrier) {
    *barrier -= Word{1} << 16;
    if ((*barrier >> 16 & 0xFFFFFF) == 0) *barrier = (*barrier >> 40 << 40) | (*barrier >> 40) << 16 | ((*barrier & 1) ^ 1);
}
inline void wait(Word* barrier, unsigned parity) {
    while ((*barrier & 1) == parity) {
        on_host::pass(on_host::advance_ns);
        on_host::Block::current->yield();
    }
}

}  // namespace barrier
