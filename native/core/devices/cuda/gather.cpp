#include "core/devices/cuda/gather.hpp"

#include <algorithm>
#include <cstring>

#include "core/devices/cuda/lane_decoder.hpp"

namespace lanescope::cuda::gather {
namespace {

// Load `Bytes` bytes, 1, 2, 4 or 8 at once.
template <size_t Bytes>
uint64_t load(const uint8_t* at) noexcept {
    uint64_t value = 0;
    std::memcpy(&value, at, Bytes);
    return value;
}

template <size_t Bytes, typename Out>
void run(const uint8_t* data, const Lanes& lanes, const Field& field, size_t from, size_t to,
         std::span<Out> out) noexcept {
    const uint64_t mask = field.width == 64 ? ~uint64_t{0} : (uint64_t{1} << field.width) - 1;
    const auto copy = [&](int64_t at, int64_t count, Out* target) {
        const auto* source = data + at;
        for (int64_t i = 0; i < count; ++i, source += lanes.stride) {
            target[i] = static_cast<Out>(load<Bytes>(source) >> field.shift & mask);
        }
    };
    for (size_t lane = from; lane < to; ++lane) {
        const auto count = lanes.start[lane + 1] - lanes.start[lane];
        if (count == 0) continue;
        auto* target = out.data() + lanes.start[lane];
        const auto base = lanes.base[lane] + static_cast<int64_t>(field.byte);
        const auto first = lanes.first[lane], ring = lanes.ring[lane];
        const auto whole = ring == 0 ? count : std::min(count, ring - first);
        copy(base + first * lanes.stride, whole, target);
        copy(base, count - whole, target + whole);
    }
}

}  // namespace

bool is_inside(const Lanes& lanes, const Field& field, uint64_t size) noexcept {
    constexpr int64_t most = int64_t{1} << 48;
    const auto bytes = static_cast<int64_t>(field.bytes());
    if (size > static_cast<uint64_t>(most) || field.byte > size || lanes.stride < -most || lanes.stride > most) return false;
    const auto end = static_cast<int64_t>(size);
    for (size_t lane = 0; lane < lanes.size(); ++lane) {
        const auto count = lanes.start[lane + 1] - lanes.start[lane];
        const auto first = lanes.first[lane], ring = lanes.ring[lane], base = lanes.base[lane];
        if (count == 0) continue;
        if (count < 0 || count > end || first < 0 || first > end || ring < 0 || ring > end) return false;
        if (ring > 0 && (first >= ring || count > ring)) return false;
        if (base < -most || base > most) return false;
        const auto lowest = ring > 0 ? (first + count > ring ? 0 : first) : first;
        const auto highest = ring > 0 ? (first + count > ring ? ring - 1 : first + count - 1) : first + count - 1;
        for (const auto at : {lowest, highest}) {
            if (at > 0 && (lanes.stride > most / at || lanes.stride < -most / at)) return false;
            const auto place = base + static_cast<int64_t>(field.byte) + at * lanes.stride;
            if (place < 0 || place + bytes > end) return false;
        }
    }
    return true;
}

template <typename Out>
void gather(std::span<const uint8_t> data, const Lanes& lanes, const Field& field, size_t from, size_t to,
            std::span<Out> out) noexcept {
    switch (field.bytes()) {
        case 1: return run<1>(data.data(), lanes, field, from, to, out);
        case 2: return run<2>(data.data(), lanes, field, from, to, out);
        case 3: return run<3>(data.data(), lanes, field, from, to, out);
        case 4: return run<4>(data.data(), lanes, field, from, to, out);
        case 5: return run<5>(data.data(), lanes, field, from, to, out);
        case 6: return run<6>(data.data(), lanes, field, from, to, out);
        case 7: return run<7>(data.data(), lanes, field, from, to, out);
        default: return run<8>(data.data(), lanes, field, from, to, out);
    }
}

template void gather(std::span<const uint8_t>, const Lanes&, const Field&, size_t, size_t, std::span<uint8_t>) noexcept;
template void gather(std::span<const uint8_t>, const Lanes&, const Field&, size_t, size_t, std::span<uint16_t>) noexcept;
template void gather(std::span<const uint8_t>, const Lanes&, const Field&, size_t, size_t, std::span<uint32_t>) noexcept;
template void gather(std::span<const uint8_t>, const Lanes&, const Field&, size_t, size_t, std::span<uint64_t>) noexcept;

void read(std::span<const uint8_t> data, const Lanes& lanes, const Roles& roles, size_t from, size_t to,
          std::span<uint64_t> stamp, std::span<uint16_t> event, std::span<uint8_t> kind) noexcept {
    const auto value = [](const uint8_t* record, const WordField& field) {
        return load<8>(record + field.byte) >> field.shift & field.mask;
    };
    const auto unreadable = static_cast<uint8_t>(Kind::unreadable), nothing = static_cast<uint8_t>(Kind::empty);
    // Lanes that take turns share cache lines, so a few of them are read together.
    struct Cursor {
        uint64_t expected;
        const uint8_t* base;
        int64_t at, ring;
        size_t place, end;
    };
    constexpr size_t side_by_side = 8;
    for (size_t lane = from; lane < to; lane += side_by_side) {
        Cursor cursors[side_by_side];
        const auto width = std::min(side_by_side, to - lane);
        size_t longest = 0;
        for (size_t i = 0; i < width; ++i) {
            const auto of = lane + i;
            cursors[i] = {roles.agree.mask != 0 ? static_cast<uint64_t>(roles.expected[of]) : 0,
                          data.data() + lanes.base[of],
                          lanes.first[of],
                          lanes.ring[of],
                          static_cast<size_t>(lanes.start[of]),
                          static_cast<size_t>(lanes.start[of + 1])};
            longest = std::max(longest, cursors[i].end - cursors[i].place);
        }
        for (size_t row = 0; row < longest; ++row) {
            for (size_t i = 0; i < width; ++i) {
                auto& cursor = cursors[i];
                if (cursor.place == cursor.end) continue;
                const auto* record = cursor.base + cursor.at * lanes.stride;
                if (++cursor.at == cursor.ring) cursor.at = 0;
                auto of = roles.kinds[value(record, roles.kind)];
                of = value(record, roles.agree) == cursor.expected ? of : unreadable;
                of = roles.empty.mask != 0 && value(record, roles.empty) == roles.empty_value ? nothing : of;
                const auto place = cursor.place++;
                stamp[place] = value(record, roles.stamp);
                event[place] = of < unreadable ? static_cast<uint16_t>(value(record, roles.event)) : uint16_t{0};
                kind[place] = of;
            }
        }
    }
}

}  // namespace lanescope::cuda::gather
