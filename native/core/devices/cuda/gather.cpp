#include "core/devices/cuda/gather.hpp"

#include <algorithm>
#include <cstring>

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

}  // namespace lanescope::cuda::gather
