#include "core/analysis/joins/asof_join.hpp"

#include <algorithm>
#include <bit>
#include <numeric>

namespace lanescope::joins {

namespace {

constexpr uint32_t nothing = UINT32_MAX;

uint64_t hash_of(const Side& side, size_t row) {
    uint64_t hash = 0;
    for (const auto& column : side.keys) {
        hash = (hash ^ column[row]) * 0x9E3779B97F4A7C15u;
        hash ^= hash >> 32;
    }
    return hash;
}

bool are_equal(const Side& one, size_t row, const Side& other, size_t other_row) {
    for (size_t i = 0; i < one.keys.size(); ++i) {
        if (one.keys[i][row] != other.keys[i][other_row]) return false;
    }
    return true;
}

// Rows in the order of their positions; nothing where they are in it.
std::vector<uint32_t> order_of(std::span<const int64_t> seq) {
    if (std::is_sorted(seq.begin(), seq.end())) return {};
    std::vector<uint32_t> order(seq.size());
    std::iota(order.begin(), order.end(), uint32_t{0});
    std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return seq[a] < seq[b]; });
    return order;
}

// Numbers of keys, in the order in which right rows have them.
class Keys {
public:
    explicit Keys(const Side& right) : right_(right), slots_(std::bit_ceil(2 * right.size() + 1), {nothing, 0}) {}

    size_t count() const { return firsts_.size(); }

    // The number of the key of a right row, a new one if it has none.
    uint32_t add(size_t row) {
        const uint64_t hash = hash_of(right_, row);
        Slot& slot = slot_of(hash, right_, row);
        if (slot.key == nothing) {
            slot = {static_cast<uint32_t>(firsts_.size()), static_cast<uint32_t>(hash >> 32)};
            firsts_.push_back(static_cast<uint32_t>(row));
        }
        return slot.key;
    }

    // The number of the key of any row; `nothing` if no right row has it.
    uint32_t find(const Side& side, size_t row) { return slot_of(hash_of(side, row), side, row).key; }

private:
    struct Slot {
        uint32_t key, hash;
    };

    Slot& slot_of(uint64_t hash, const Side& side, size_t row) {
        const size_t mask = slots_.size() - 1;
        for (size_t at = hash & mask;; at = (at + 1) & mask) {
            Slot& slot = slots_[at];
            if (slot.key == nothing) return slot;
            if (slot.hash == static_cast<uint32_t>(hash >> 32) && are_equal(right_, firsts_[slot.key], side, row)) return slot;
        }
    }

    const Side& right_;
    std::vector<Slot> slots_;
    std::vector<uint32_t> firsts_;  // by key: the first row that has it
};

}  // namespace

void asof_join(const Side& left, const Side& right, bool strict, const Places& places) {
    const std::vector<uint32_t> lefts = order_of(left.seq), rights = order_of(right.seq);
    const auto row_of = [](const std::vector<uint32_t>& order, size_t place) { return order.empty() ? place : order[place]; };
    Keys keys(right);
    std::vector<uint32_t> key_of(right.size());  // by place in the order
    for (size_t i = 0; i < right.size(); ++i) key_of[i] = keys.add(row_of(rights, i));
    std::vector<uint32_t> begins(keys.count() + 1), seen(keys.count());
    for (const uint32_t key : key_of) ++begins[key + 1];
    std::partial_sum(begins.begin(), begins.end(), begins.begin());
    size_t next = 0;
    for (size_t i = 0; i < left.size(); ++i) {
        const size_t row = row_of(lefts, i);
        for (; next < right.size(); ++next) {
            const size_t other = row_of(rights, next);
            if (right.seq[other] > left.seq[row] || (strict && right.seq[other] == left.seq[row])) break;
            const uint32_t key = key_of[next];
            places.rows[begins[key] + seen[key]++] = static_cast<int64_t>(other);
        }
        const uint32_t key = keys.find(left, row);
        const bool is_known = key != nothing;
        places.low[row] = is_known ? begins[key] : 0;
        places.at[row] = is_known ? begins[key] + seen[key] : 0;
        places.high[row] = is_known ? begins[key + 1] : 0;
    }
    for (; next < right.size(); ++next) {
        const uint32_t key = key_of[next];
        places.rows[begins[key] + seen[key]++] = static_cast<int64_t>(row_of(rights, next));
    }
}

}  // namespace lanescope::joins
