// Numbers for byte strings, in the order in which they are first seen.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "core/wire/trace_events/characters.hpp"

namespace lanescope::trace_events {

class Interner {
public:
    Interner() : bytes_(kPadding, '\0'), slots_(kFirstSlots, 0) {}

    int32_t code(std::string_view bytes) {
        const uint64_t hash = hashed(bytes);
        size_t slot = hash & (slots_.size() - 1);
        while (slots_[slot] != 0) {
            const Entry& entry = entries_[slots_[slot] - 1];
            if (entry.hash == hash && view(entry) == bytes) return static_cast<int32_t>(slots_[slot] - 1);
            slot = (slot + 1) & (slots_.size() - 1);
        }
        const size_t begin = bytes_.size() - kPadding;
        entries_.push_back({hash, begin, bytes.size()});
        bytes_.resize(begin);
        bytes_.append(bytes).append(kPadding, '\0');
        slots_[slot] = static_cast<uint32_t>(entries_.size());
        if (entries_.size() * 2 > slots_.size()) grow();
        return static_cast<int32_t>(entries_.size() - 1);
    }

    // Whether the text of a number stands there, in a text that zeros follow.
    bool is_at(const char* at, int32_t number) const {
        const Entry& entry = entries_[static_cast<size_t>(number)];
        const char* known = bytes_.data() + entry.begin;
        for (size_t left = entry.size; left != 0;) {
            const size_t size = std::min<size_t>(left, 16);
            if (!is_same(at, known, mask_of(size))) return false;
            at += size;
            known += size;
            left -= size;
        }
        return true;
    }

    size_t size() const { return entries_.size(); }
    std::string_view operator[](size_t number) const { return view(entries_[number]); }

private:
    static constexpr size_t kFirstSlots = 1024;

    struct Entry {
        uint64_t hash;
        size_t begin;
        size_t size;
    };

    std::string_view view(const Entry& entry) const { return {bytes_.data() + entry.begin, entry.size}; }

    template <class T>
    static T word_at(const char* at) {
        T word;
        std::memcpy(&word, at, sizeof word);
        return word;
    }

    static uint64_t hashed(std::string_view bytes) {
        constexpr uint64_t factor = 0x9E3779B97F4A7C15;
        uint64_t hash = bytes.size() * factor;
        const char* at = bytes.data();
        size_t left = bytes.size();
        const auto mix = [&](uint64_t word) {
            hash = (hash ^ word) * factor;
            hash ^= hash >> 29;
        };
        // The last word overlaps the one before, and those of a few bytes each other.
        if (left >= 8) {
            for (; left > 8; at += 8, left -= 8) mix(word_at<uint64_t>(at));
            mix(word_at<uint64_t>(at + left - 8));
        } else if (left >= 4) {
            mix(uint64_t{word_at<uint32_t>(at)} << 32 | word_at<uint32_t>(at + left - 4));
        } else if (left != 0) {
            mix(uint64_t{word_at<uint8_t>(at)} << 16 | uint64_t{word_at<uint8_t>(at + left / 2)} << 8 | word_at<uint8_t>(at + left - 1));
        }
        hash ^= hash >> 32;
        return hash * factor ^ hash >> 17;
    }

    void grow() {
        slots_.assign(slots_.size() * 4, 0);
        for (size_t number = 0; number < entries_.size(); ++number) {
            size_t slot = entries_[number].hash & (slots_.size() - 1);
            while (slots_[slot] != 0) slot = (slot + 1) & (slots_.size() - 1);
            slots_[slot] = static_cast<uint32_t>(number + 1);
        }
    }

    std::string bytes_;
    std::vector<Entry> entries_;
    std::vector<uint32_t> slots_;  // number + 1; 0: free
};

}  // namespace lanescope::trace_events
