#include "core/foreign/interner.hpp"

#include <cstring>

namespace lanescope::foreign {
namespace {

uint64_t hash_of(std::string_view text) {
    uint64_t hash = 0x9E3779B97F4A7C15u ^ text.size();
    const char* at = text.data();
    size_t left = text.size();
    const auto mix = [&](uint64_t word) {
        hash = (hash ^ word) * 0xFF51AFD7ED558CCDu;
        hash ^= hash >> 32;
    };
    for (; left >= 8; at += 8, left -= 8) {
        uint64_t word;
        std::memcpy(&word, at, 8);
        mix(word);
    }
    if (left != 0) {
        uint64_t word = 0;
        std::memcpy(&word, at, left);
        mix(word);
    }
    return hash ^ hash >> 29;
}

}  // namespace

Interner::Interner() : table_(1024) {}

std::string_view Interner::text(size_t code) const {
    return std::string_view(arena_).substr(entries_[code].begin, entries_[code].size);
}

int32_t Interner::code(std::string_view text) {
    const uint64_t hash = hash_of(text);
    const size_t mask = table_.size() - 1;
    size_t at = hash & mask;
    for (; table_[at] != 0; at = (at + 1) & mask) {
        const Entry& entry = entries_[table_[at] - 1];
        if (entry.hash == hash && entry.size == text.size() &&
            std::memcmp(arena_.data() + entry.begin, text.data(), text.size()) == 0) {
            return static_cast<int32_t>(table_[at] - 1);
        }
    }
    entries_.push_back({hash, arena_.size(), text.size()});
    arena_.append(text);
    table_[at] = static_cast<uint32_t>(entries_.size());
    if (2 * entries_.size() > table_.size()) grow();
    return static_cast<int32_t>(entries_.size() - 1);
}

void Interner::grow() {
    table_.assign(2 * table_.size(), 0);
    const size_t mask = table_.size() - 1;
    for (size_t i = 0; i < entries_.size(); ++i) {
        size_t at = entries_[i].hash & mask;
        while (table_[at] != 0) at = (at + 1) & mask;
        table_[at] = static_cast<uint32_t>(i + 1);
    }
}

}  // namespace lanescope::foreign
