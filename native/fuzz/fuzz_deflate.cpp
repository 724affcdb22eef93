// Packets of any shape, and bytes that are none: what is compressed comes back as it was, by an inflater that goes bit by bit
// and refuses what zlib refuses, and nothing is left over.
#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "core/io/perfetto/deflate.hpp"
#include "core/io/perfetto/wire.hpp"
#include "record_mutator.hpp"
#include "require.hpp"

LANESCOPE_FUZZ_RECORDS(4, 3)

using lanescope::fuzz::require;

namespace {

class Inflater {
public:
    explicit Inflater(std::span<const uint8_t> data) : data_(data) {}

    uint32_t bits(uint32_t count) {
        uint32_t value = 0;
        for (uint32_t i = 0; i < count; ++i, ++at_) {
            require(at_ / 8 < data_.size());
            value |= static_cast<uint32_t>(data_[at_ / 8] >> (at_ % 8) & 1) << i;
        }
        return value;
    }

    // Codes by their size: those of one size count up by symbol. All of the room has to be taken.
    struct Codes {
        explicit Codes(std::span<const uint8_t> sizes) {
            uint32_t room = 0;
            for (uint32_t size = 1; size < 16; ++size) {
                for (uint32_t symbol = 0; symbol < sizes.size(); ++symbol) {
                    if (sizes[symbol] != size) continue;
                    ++count[size];
                    symbols.push_back(symbol);
                    room += 1U << (15 - size);
                }
            }
            require(room == 1U << 15);
        }
        std::array<uint32_t, 16> count{};
        std::vector<uint32_t> symbols;
    };

    uint32_t symbol(const Codes& codes) {
        uint32_t code = 0, first = 0, before = 0;
        for (uint32_t size = 1; size < 16; ++size) {
            code = code << 1 | bits(1);
            first <<= 1;
            if (code - first < codes.count[size]) return codes.symbols[before + code - first];
            first += codes.count[size];
            before += codes.count[size];
        }
        require(false);
        return 0;
    }

    bool block(std::vector<uint8_t>& out) {
        const bool is_last = bits(1) != 0;
        require(bits(2) == 2);
        const uint32_t symbols = bits(5) + 257, distances = bits(5) + 1, sizes = bits(4) + 4;
        require(symbols <= 286 && distances <= 30);
        constexpr std::array<uint8_t, 19> order = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
        std::array<uint8_t, 19> of_sizes{};
        for (uint32_t i = 0; i < sizes; ++i) of_sizes[order[i]] = static_cast<uint8_t>(bits(3));
        const Codes small{of_sizes};
        std::vector<uint8_t> all;
        while (all.size() < symbols + distances) all.push_back(static_cast<uint8_t>(symbol(small)));
        for (const uint8_t size : all) require(size < 16);
        const Codes codes{std::span(all).first(symbols)}, far{std::span(all).subspan(symbols)};
        for (uint32_t of = symbol(codes); of != 256; of = symbol(codes)) {
            if (of < 256) {
                out.push_back(static_cast<uint8_t>(of));
                continue;
            }
            of -= 257;
            const uint32_t extra = of < 8 || of == 28 ? 0 : of / 4 - 1;
            const uint32_t base = of == 28 ? 258 : of < 8 ? of + 3 : ((4 + of % 4) << extra) + 3;
            const uint32_t length = base + bits(extra);
            const uint32_t code = symbol(far);
            const uint32_t more = code < 4 ? 0 : code / 2 - 1;
            const size_t distance = (code < 4 ? code : (2 + code % 2) << more) + 1 + bits(more);
            require(distance <= out.size() && distance <= 32768);
            for (uint32_t i = 0; i < length; ++i) out.push_back(out[out.size() - distance]);
        }
        return is_last;
    }

    // Begin at the next whole byte.
    void align() { at_ = (at_ + 7) / 8 * 8; }
    bool is_at_end() const { return at_ == 8 * data_.size(); }

private:
    std::span<const uint8_t> data_;
    size_t at_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace lanescope::perfetto;
    if (size < 4) return 0;
    std::vector<uint8_t> packets;
    const size_t rounds = 1 + data[0] % 32, shift = data[1] % 30, items = (size - 4) / 3;
    const bool is_plain = data[2] % 4 == 0;
    const size_t most = data[2] % 32 == 31 ? 100'000 : 8000;  // a few go on until codes are made anew
    uint64_t state = 1 + data[3];
    for (size_t round = 0; round < rounds && packets.size() < most; ++round) {
        if (is_plain) packets.insert(packets.end(), data, data + size);
        for (size_t i = 0; i < items && !is_plain; ++i) {
            const uint8_t* const item = data + 4 + 3 * i;
            state = state * 6364136223846793005U + 1442695040888963407U;
            // A time that differs from round to round, and a tail of one of some shapes.
            std::array<uint8_t, 16> time{};
            const uint64_t value = (item[0] ^ (data[2] & 4 ? state >> 60 : 0)) << shift;
            const size_t taken = static_cast<size_t>(put_varint(time.data(), value) - time.data());
            const size_t tail = item[1] % 128 < 118 ? item[1] % 20 : item[1] % 118;
            packets.insert(packets.end(), {0x0a, static_cast<uint8_t>(1 + taken + tail), 0x40});
            packets.insert(packets.end(), time.begin(), time.begin() + static_cast<std::ptrdiff_t>(taken));
            for (size_t k = 0; k < tail; ++k) packets.push_back(static_cast<uint8_t>(item[2] + k * item[1]));
        }
    }
    const Deflated stream = deflate_packets(packets, 0x01020304);
    if (stream.size == 0) return 0;
    Inflater inflater{{stream.bytes.get(), stream.size}};
    require(inflater.bits(8) == 0x78 && inflater.bits(8) == 0x01);
    std::vector<uint8_t> back;
    while (!inflater.block(back)) {
    }
    inflater.align();
    for (uint32_t i = 1; i <= 4; ++i) require(inflater.bits(8) == i);
    require(inflater.is_at_end() && back == packets);
    return 0;
}
