#include "core/io/perfetto/deflate.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <memory>
#include <vector>

namespace lanescope::perfetto {
namespace {

static_assert(std::endian::native == std::endian::little);

// Symbols of deflate.
constexpr size_t kEnd = 256;                        // ends a block
constexpr size_t kLengths = 29, kDistances = 30;    // codes of lengths, behind those of bytes and end; of distances
constexpr size_t kSymbols = kEnd + 1 + kLengths;
constexpr size_t kNothing = kSymbols;               // four that take no bits: a count each, so that none waits for another
constexpr size_t kShortest = 4, kLongest = 258, kFarthest = size_t{1} << 15;
// Deflate allows 15. With these, four bytes fit a word of 64 bits beside what is left of the one before, and so do
// length and distance with their extra bits.
constexpr unsigned kMostBits = 13;

// A packet as this file looks for it: tag and size, then the tag of its time.
constexpr uint8_t kPacketTag = 0x0a, kTimeTag = 0x40;
constexpr size_t kHead = 3;
// So far behind a position everything may be read.
constexpr size_t kMargin = 512;
constexpr size_t kSlots = size_t{1} << 10;  // the upper 10 bits of what kMix makes of a value
constexpr uint64_t kMix = 0x9e3779b97f4a7c15U;
// Pieces of this size get codes of their own, or come out as they are.
constexpr size_t kPieces = size_t{1} << 14;
// From how many bytes outside of matches and times on a search would find more: so many, and one in so many of all.
constexpr size_t kFewOdd = 4096, kMostOdd = 16;
// So many packets of the first ones tell whether times repeat as well: then a search finds longer matches. Of random
// times of 10 to 100,000 values, and constant lengths of slices, a search did better from a share of 0.6 on.
constexpr uint32_t kLookedAt = 2048, kMostRepeated = kLookedAt * 11 / 20;

uint64_t load(const uint8_t* p) {
    uint64_t value;
    std::memcpy(&value, p, 8);
    return value;
}

// Up to four bytes, then a match.
struct Piece {
    uint64_t symbols;   // four of 16 bits each, those of kNothing where there is none
    uint16_t length;    // 0 without a match
    uint16_t below;     // distance - 1
    uint32_t distance;  // its code
};

// Which of four symbols stay where there are so many, and the symbols of the others.
constexpr std::array<uint64_t, 5> kKept = {0, 0xffff, 0xffffffff, 0xffffffffffff, ~uint64_t{0}};
constexpr uint64_t kNone = kNothing | (kNothing + 1) << 16 | (kNothing + 2) << 32 | (kNothing + 3) << 48;

// Return the symbols of the first `count` of four bytes: without a branch, as nothing foretells how many a time has.
uint64_t symbols_of(uint32_t bytes, size_t count) {
    uint64_t spread = bytes;
    spread = (spread | spread << 16) & 0x0000ffff0000ffffU;
    spread = (spread | spread << 8) & 0x00ff00ff00ff00ffU;
    return (spread & kKept[count]) | (kNone & ~kKept[count]);
}

constexpr std::array<uint16_t, kLengths> kLengthBase = {3,  4,  5,  6,  7,  8,  9,  10, 11,  13,  15,  17,  19,  23, 27,
                                                        31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258};
constexpr std::array<uint8_t, kLengths> kLengthExtra = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
                                                        2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};

constexpr std::array<uint8_t, kLongest + 1> length_codes() {
    std::array<uint8_t, kLongest + 1> codes{};
    for (size_t code = 0; code < kLengths; ++code) {
        for (size_t length = kLengthBase[code]; length <= kLongest; ++length) codes[length] = static_cast<uint8_t>(code);
    }
    return codes;
}
constexpr auto kLengthCode = length_codes();

// Two codes for each power of two: the code of distance - 1, and how many of its bits follow.
constexpr uint32_t distance_code(uint32_t below) {
    if (below < 4) return below;
    const auto extra = static_cast<uint32_t>(std::bit_width(below)) - 2;
    return 2 * extra + (below >> extra);
}
constexpr std::array<uint8_t, kDistances> distance_extras() {
    std::array<uint8_t, kDistances> extras{};
    for (size_t code = 4; code < kDistances; ++code) extras[code] = static_cast<uint8_t>(code / 2 - 1);
    return extras;
}
constexpr auto kDistanceExtra = distance_extras();

// A code as it is written, first bit lowest.
struct Code {
    uint32_t bits = 0;
    uint32_t size = 0;
};

// Give each symbol that occurs a code of at most `most` bits; at least two symbols occur.
void make_codes(std::span<const uint32_t> counts, unsigned most, std::span<Code> codes) {
    std::vector<uint32_t> order;
    for (uint32_t symbol = 0; symbol < counts.size(); ++symbol) {
        if (counts[symbol] != 0) order.push_back(symbol);
    }
    std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return counts[a] < counts[b]; });
    const size_t n = order.size();
    // Nodes of the tree rise in weight, leaves and others alike: the lightest two are at the front of either queue.
    std::vector<uint64_t> weight(2 * n - 1);
    std::vector<size_t> parent(2 * n - 1, 0);
    for (size_t i = 0; i < n; ++i) weight[i] = counts[order[i]];
    size_t leaf = 0, node = n;
    for (size_t made = n; made < 2 * n - 1; ++made) {
        for (int side = 0; side < 2; ++side) {
            const bool is_leaf = leaf < n && (node >= made || weight[leaf] <= weight[node]);
            const size_t taken = is_leaf ? leaf++ : node++;
            weight[made] += weight[taken];
            parent[taken] = made;
        }
    }
    std::vector<unsigned> depth(2 * n - 1, 0);
    std::array<uint32_t, 64> of_size{};  // how many codes have so many bits
    for (size_t i = 2 * n - 2; i-- > 0;) {
        depth[i] = depth[parent[i]] + 1;
        if (i < n) ++of_size[std::min(depth[i], most)];
    }
    // Codes that were cut short leave too little room: the longest ones below the limit are lengthened until all fit.
    uint64_t room = 0;
    for (unsigned size = 1; size <= most; ++size) room += uint64_t{of_size[size]} << (most - size);
    while (room > uint64_t{1} << most) {
        unsigned size = most - 1;
        while (of_size[size] == 0) --size;
        // One code becomes the front of two, of which the other takes in one of the longest.
        --of_size[size];
        of_size[size + 1] += 2;
        --of_size[most];
        --room;
    }
    std::array<uint32_t, 64> next{};
    for (unsigned size = 1; size < most; ++size) next[size + 1] = (next[size] + of_size[size]) << 1;
    // The rarest symbols take the longest codes; those of one length count up by symbol.
    size_t at = 0;
    for (unsigned size = most; size > 0; --size) {
        for (uint32_t i = 0; i < of_size[size]; ++i) codes[order[at++]].size = size;
    }
    for (Code& code : codes) {
        if (code.size == 0) continue;
        const uint32_t value = next[code.size]++;
        for (uint32_t bit = 0; bit < code.size; ++bit) code.bits |= (value >> bit & 1) << (code.size - 1 - bit);
    }
}

// Writes bits, the first one lowest. There has to be room for 8 bytes more than are written.
struct Bits {
    uint8_t* at;
    uint64_t word = 0;
    uint32_t used = 0;

    // Write at most 57 bits.
    void put(uint64_t bits, uint32_t size) {
        word |= bits << used;
        used += size;
        std::memcpy(at, &word, 8);
        at += used >> 3;
        word >>= used & ~7U;
        used &= 7;
    }
};

// Write pieces as one block, with codes made for them.
void put_block(std::span<const Piece> pieces, std::span<uint32_t> symbols, std::span<uint32_t> distances, bool is_last, Bits& stream) {
    ++symbols[kEnd];
    // A reader demands at least two codes of either kind.
    for (size_t i = 0; i < 2; ++i) distances[i] += distances[i] == 0;
    symbols[0] += symbols[0] == 0;
    std::array<Code, kNothing + 4> codes{};  // kNothing and those behind it have no bits
    std::array<Code, kDistances> far{};
    make_codes(symbols.first(kSymbols), kMostBits, std::span(codes).first(kSymbols));
    make_codes(distances, kMostBits, far);

    Bits out = stream;  // a copy: what is written through a pointer to bytes might be anything else
    out.put((is_last ? 1U : 0U) | 2U << 1 | (kSymbols - kEnd - 1) << 3 | (kDistances - 1) << 8 | 15U << 13, 17);
    // The sizes of codes, 0 to 15, have 4 bits each: they are few. Runs, the first three of these, are not used.
    for (int i = 0; i < 19; ++i) out.put(i < 3 ? 0 : 4, 3);
    const auto put_size = [&out](uint32_t size) {
        out.put((size & 1) << 3 | (size & 2) << 1 | (size & 4) >> 1 | (size & 8) >> 3, 4);
    };
    for (size_t i = 0; i < kSymbols; ++i) put_size(codes[i].size);
    for (const Code& code : far) put_size(code.size);

    std::array<Code, kLongest + 1> lengths{};  // with their extra bits; none for 0
    for (size_t length = 3; length <= kLongest; ++length) {
        const size_t code = kLengthCode[length];
        const Code of = codes[kEnd + 1 + code];
        lengths[length] = {of.bits | static_cast<uint32_t>(length - kLengthBase[code]) << of.size, of.size + kLengthExtra[code]};
    }
    for (const Piece& piece : pieces) {
        uint64_t bits = 0;
        uint32_t size = 0;
        for (unsigned i = 0; i < 4; ++i) {
            const Code code = codes[piece.symbols >> (16 * i) & 0xffff];
            bits |= uint64_t{code.bits} << size;
            size += code.size;
        }
        const Code length = lengths[piece.length];
        if (length.size != 0) {
            const Code code = far[piece.distance];
            const uint32_t extra = kDistanceExtra[piece.distance];
            const uint64_t match = uint64_t{length.bits} | uint64_t{code.bits} << length.size |
                                   uint64_t{piece.below & ((uint32_t{1} << extra) - 1)} << (length.size + code.size);
            const uint32_t more = length.size + code.size + extra;
            if (size + more > 57) {
                out.put(bits, size);
                bits = size = 0;
            }
            bits |= match << size;
            size += more;
        }
        out.put(bits, size);
    }
    out.put(codes[kEnd].bits, codes[kEnd].size);
    stream = out;
}

// Finds what repeats, and counts what it makes.
class Matcher {
public:
    explicit Matcher(std::span<const uint8_t> data)
        : data_(data), pieces_(std::make_unique_for_overwrite<Piece[]>(kPieces + kMargin)) {}

    // Make pieces of what comes next, until they are many or all is done.
    void run() {
        made_ = 0;
        symbols_.fill(0);
        distances_.fill(0);
        const size_t safe = data_.size() > kMargin ? data_.size() - kMargin : 0;
        while (at_ < safe && made_ < kPieces && !is_searched()) {
            if (!packet()) bytes(at_ + 1, true);
        }
        while (at_ >= safe && at_ < data_.size()) bytes(std::min(at_ + 4, data_.size()), false);
    }

    bool is_done() const { return at_ == data_.size(); }
    // Whether a search is worth its time.
    bool is_searched() const { return odd_ > kFewOdd + at_ / kMostOdd || repeated_ > kMostRepeated; }
    std::span<const Piece> pieces() const { return {pieces_.get(), made_}; }
    std::span<uint32_t> symbols() { return symbols_; }
    std::span<uint32_t> distances() { return distances_; }

private:
    // Take the packet whose head ends, or begins, here, up to the head of the next one; return whether there is one.
    bool packet() {
        const uint8_t* const data = data_.data();
        if (at_ != time_at_) {
            if (data[at_] != kPacketTag || data[at_ + 2] != kTimeTag || data[at_ + 1] >= 0x80) return false;
            time_at_ = at_ + kHead;
            end_ = at_ + 2 + data[at_ + 1];
            bytes(time_at_, true);
        }
        const uint64_t ends = ~load(data + at_) & 0x8080808080808080U;
        if ((ends & 0xffffffff) == 0) return leave();
        const size_t size = (static_cast<size_t>(std::countr_zero(ends)) >> 3) + 1;
        const size_t tail = at_ + size;
        if (tail > end_) return leave();
        const uint8_t* const next = data + end_;
        const bool has_next = next[0] == kPacketTag && next[2] == kTimeTag && next[1] < 0x80;
        const size_t length = end_ - tail + (has_next ? kHead : 0);
        if (length < kShortest) return leave();
        const uint64_t first = load(data + tail);
        if (looked_at_ < kLookedAt) look_at(load(data + at_));
        uint32_t& slot = last_[((first ^ uint64_t{next[1]} << 32 ^ length << 48) * kMix) >> 54];
        const size_t before = slot;
        slot = static_cast<uint32_t>(tail + 1);
        const size_t distance = tail + 1 - before;
        uint32_t time;
        std::memcpy(&time, data + at_, 4);
        const uint64_t symbols = counted(symbols_of(time, size));
        // A slot that is empty is as far away as the packet is from the beginning.
        if (before != 0 && distance <= kFarthest && is_same(data + tail, data + tail - distance, length)) {
            const auto below = static_cast<uint32_t>(distance - 1);
            const uint32_t code = distance_code(below);
            pieces_[made_++] = {symbols, static_cast<uint16_t>(length), static_cast<uint16_t>(below), code};
            ++symbols_[kEnd + 1 + kLengthCode[length]];
            ++distances_[code];
            at_ = tail + length;
        } else {
            pieces_[made_++] = {symbols, 0, 0, 0};
            at_ = tail;
            bytes(tail + length, true);
        }
        time_at_ = has_next ? at_ : 0;
        end_ += has_next ? 2 + size_t{next[1]} : 0;
        return true;
    }

    // Count whether a time and the beginning of its tail came before.
    void look_at(uint64_t begin) {
        ++looked_at_;
        const uint64_t mixed = begin * kMix;
        uint64_t& seen = seen_[mixed >> 54];
        repeated_ += seen == mixed;
        seen = mixed;
    }

    // Forget the packet that began: it has no time, or nothing behind it.
    bool leave() {
        time_at_ = 0;
        return false;
    }

    static bool is_same(const uint8_t* a, const uint8_t* b, size_t length) {
        size_t i = 0;
        for (; i + 8 <= length; i += 8) {
            if (load(a + i) != load(b + i)) return false;
        }
        const auto left = static_cast<unsigned>(length - i);
        return left == 0 || ((load(a + i) ^ load(b + i)) << (64 - 8 * left)) == 0;
    }

    uint64_t counted(uint64_t symbols) {
        for (unsigned i = 0; i < 4; ++i) ++symbols_[symbols >> (16 * i) & 0xffff];
        return symbols;
    }

    void bytes(size_t to, bool is_odd) {
        if (is_odd) odd_ += to - at_;
        while (at_ < to) {
            const size_t count = std::min<size_t>(4, to - at_);
            uint32_t four = 0;
            std::memcpy(&four, data_.data() + at_, count);
            pieces_[made_++] = {counted(symbols_of(four, count)), 0, 0, 0};
            at_ += count;
        }
    }

    std::span<const uint8_t> data_;
    size_t at_ = 0;
    size_t time_at_ = 0;  // where the time of a packet stands whose head is taken; 0: nowhere
    size_t end_ = 0;      // of that packet
    size_t odd_ = 0;
    uint32_t looked_at_ = 0;
    uint32_t repeated_ = 0;
    std::array<uint64_t, kSlots> seen_{};
    std::array<uint32_t, kSlots> last_{};  // place behind where a tail came last; 0: nowhere
    std::unique_ptr<Piece[]> pieces_;  // one packet may pass the limit
    size_t made_ = 0;
    std::array<uint32_t, kNothing + 4> symbols_{};
    std::array<uint32_t, kDistances> distances_{};
};

}  // namespace

Deflated deflate_packets(std::span<const uint8_t> packets, uint32_t checksum) {
    // A byte takes at most kMostBits, so does each of a match; codes come once for many of them.
    Deflated stream{std::make_unique_for_overwrite<uint8_t[]>(2 * packets.size() + 1024), 0};
    Matcher matcher(packets);
    Bits out{stream.bytes.get()};
    out.put(0x0178, 16);  // deflate, a window of 32 KiB, the fastest of levels
    do {
        matcher.run();
        if (matcher.is_searched()) return {};
        put_block(matcher.pieces(), matcher.symbols(), matcher.distances(), matcher.is_done(), out);
    } while (!matcher.is_done());
    if (out.used != 0) out.put(0, 8 - out.used);
    for (int shift = 24; shift >= 0; shift -= 8) out.put(checksum >> shift & 0xff, 8);
    stream.size = static_cast<size_t>(out.at - stream.bytes.get());
    return stream;
}

}  // namespace lanescope::perfetto
