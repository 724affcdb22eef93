#include "core/foreign/perfetto/texts.hpp"

#include <cstring>

namespace lanescope::foreign_perfetto {
namespace {

uint64_t mix(uint64_t x) {
    x ^= x >> 32;
    x *= 0xD6E8FEB86659FD93u;
    x ^= x >> 32;
    return x;
}

uint64_t hash_of(std::string_view text) {
    uint64_t hash = 0x9E3779B97F4A7C15u ^ text.size();
    const char* p = text.data();
    size_t left = text.size();
    const auto word_at = [](const char* at) {
        uint64_t word = 0;
        std::memcpy(&word, at, 8);
        return word;
    };
    // The last word overlaps the one before. Of fewer bytes none are put together in memory: to read that takes long.
    if (left >= 8) {
        for (; left > 8; left -= 8, p += 8) hash = mix(hash ^ word_at(p));
        return mix(hash ^ word_at(p + left - 8) ^ 0xA5A5);
    }
    uint64_t word = 0;
    for (size_t i = 0; i < left; ++i) word |= uint64_t{static_cast<uint8_t>(p[i])} << (8 * i);
    return mix(hash ^ word ^ 0xA5A5);
}

constexpr size_t kFirstSlots = 64;

}  // namespace

int32_t Texts::code(std::string_view text) {
    if (2 * (size() + 1) > slots_.size()) grow();
    const uint64_t hash = hash_of(text);
    const size_t mask = slots_.size() - 1;
    for (size_t slot = static_cast<size_t>(hash) & mask;; slot = (slot + 1) & mask) {
        if (slots_[slot] == 0) {
            slots_[slot] = static_cast<int32_t>(size() + 1);
            hashes_.push_back(hash);
            bytes_.insert(bytes_.end(), text.begin(), text.end());
            offsets_.push_back(static_cast<int64_t>(bytes_.size()));
            return slots_[slot] - 1;
        }
        const auto found = static_cast<size_t>(slots_[slot] - 1);
        if (hashes_[found] == hash && (*this)[found] == text) return slots_[slot] - 1;
    }
}

void Texts::grow() {
    slots_.assign(slots_.empty() ? kFirstSlots : 2 * slots_.size(), 0);
    const size_t mask = slots_.size() - 1;
    for (size_t i = 0; i < size(); ++i) {
        size_t slot = static_cast<size_t>(hashes_[i]) & mask;
        while (slots_[slot] != 0) slot = (slot + 1) & mask;
        slots_[slot] = static_cast<int32_t>(i + 1);
    }
}

int32_t Ids::find_sparse(uint64_t id) const {
    if (sparse_ == nullptr) return kNone;
    const auto found = sparse_->find(id);
    return found == sparse_->end() ? kNone : found->second;
}

}  // namespace lanescope::foreign_perfetto
