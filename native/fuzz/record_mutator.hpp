// Changes inputs record by record, where a layout fixes their length, so that what follows a change stays readable.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t most);

namespace lanescope::fuzz {

// Of an input with `head` bytes before records of `length` bytes: one record is changed, swapped with another one, copied
// over or before another one, repeated, or taken out; or the head is changed; or, now and then, anything at all.
inline size_t mutate_records(uint8_t* data, size_t size, size_t most, unsigned seed, size_t head, size_t length) {
    std::minstd_rand random(seed);
    const size_t records = size > head ? (size - head) / length : 0;
    if (records == 0 || random() % 4 == 0) return LLVMFuzzerMutate(data, size, most);
    const auto at = [&](size_t record) { return data + head + record * length; };
    uint8_t* const one = at(random() % records);
    uint8_t* const other = at(random() % records);
    switch (random() % 7) {
        case 0:
            if (head == 0) return LLVMFuzzerMutate(data, size, most);
            LLVMFuzzerMutate(data, head, head);
            return size;
        case 1: std::swap_ranges(one, one + length, other); break;
        case 2: std::memmove(one, other, length); return size;
        case 3: {  // copied before another one, once or many times
            const size_t times = random() % 2 ? 1 : 1 + random() % 16;
            if (size + times * length > most) return size;
            uint8_t copy[64];
            const size_t part = std::min(length, sizeof copy);
            std::memcpy(copy, one, part);
            std::memmove(other + times * length, other, static_cast<size_t>(data + size - other));
            for (size_t i = 0; i < times; ++i) std::memcpy(other + i * length, copy, part);
            return size + times * length;
        }
        case 4:
            std::memmove(one, one + length, static_cast<size_t>(data + size - one) - length);
            return size - length;
        default: break;
    }
    // What it becomes may be shorter: its last bytes stay.
    LLVMFuzzerMutate(one, length, length);
    return size;
}

}  // namespace lanescope::fuzz

// The records of a target: so many bytes before them, and so many bytes each.
#define LANESCOPE_FUZZ_RECORDS(head, length)                                                                          \
    extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned seed) {                \
        return lanescope::fuzz::mutate_records(data, size, most, seed, head, length);                                  \
    }
