#include "core/devices/cuda/proton.hpp"

namespace lanescope::cuda::proton {
namespace {

constexpr uint32_t type_of(uint32_t tag) noexcept { return tag >> 20 & 7; }

constexpr bool is_async(uint32_t tag) noexcept { return type_of(tag) == async || type_of(tag) >= async_39; }

constexpr Kind kind_of(uint32_t tag) noexcept {
    if (type_of(tag) != scope) return Kind::instant;
    return tag >> 31 != 0 ? Kind::end : Kind::begin;
}

template <typename Visit>
void for_each(std::span<const uint32_t> words, const Ring& ring, Visit visit) noexcept {
    auto at = static_cast<size_t>(ring.first);
    for (uint32_t i = 0; i < static_cast<uint64_t>(ring.stored); ++i) {
        const auto* entry = words.data() + ring.start + 2 * at;
        visit(i, entry[0], entry[1]);
        if (++at == static_cast<size_t>(ring.entries)) at = 0;
    }
}

}  // namespace

Counts count(std::span<const uint32_t> words, std::span<const Ring> rings) noexcept {
    Counts found;
    for (const auto& ring : rings) {
        for_each(words, ring, [&](uint32_t i, uint32_t tag, uint32_t) {
            const auto kind = kind_of(tag);
            found.begins += kind == Kind::begin;
            found.marks += kind != Kind::begin;
            const auto type = type_of(tag);
            found.async += is_async(tag);
            found.reserved += type > async_39 || (tag & reserved_bits) != 0;
            found.values += type == metric;
            found.orphans += type == metric && i == 0 && ring.lost > 0;
            found.wide |= type != metric && (tag & 0x7FF) != 0;
        });
    }
    return found;
}

void decode(std::span<const uint32_t> words, uint64_t first, std::span<const Ring> rings, std::span<Record> records,
            std::span<Summary> summaries, LaneDecoder& decoder) noexcept {
    for (size_t number = 0; number < rings.size(); ++number) {
        const auto& ring = rings[number];
        const uint32_t overwritten = ring.lost > 0 ? 1 : 0;
        size_t count = 0;
        uint64_t stamp = 0;
        uint16_t event = 0;
        for_each(words, ring, [&](uint32_t i, uint32_t tag, uint32_t low) {
            auto kind = kind_of(tag);
            if (type_of(tag) != metric) {
                stamp = uint64_t{tag & 0x7FF} << 32 | low;
                event = static_cast<uint16_t>(tag >> 23 & 0xFF);
            } else if (count == 0 || records[count - 1].kind == Kind::unreadable) {
                kind = Kind::unreadable;  // the record that it belongs to is gone
            }
            records[count++] = {stamp, i + overwritten, event, kind};
        });
        decoder.decode(static_cast<uint32_t>(first + number), std::span<const Record>(records.first(count)), false,
                       summaries[number]);
    }
}

}  // namespace lanescope::cuda::proton
