#include "core/io/perfetto/deflate.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <numeric>

#include "core/io/perfetto/fields.hpp"

namespace lanescope::perfetto {
namespace {

// Head of a packet whose first field is its time: two tags, and between them a length of one byte.
constexpr size_t kHead = 3;
// What is looked at behind a packet's start at most; the end of a block is not searched.
constexpr size_t kMargin = 512;
constexpr size_t kMostLiterals = 4;
constexpr size_t kFarthest = 32768;
// Matches that are shorter are not looked for.
constexpr size_t kShortest = 8;
constexpr size_t kLongest = 258;
// Of bytes that no match was found for at most this share.
constexpr size_t kMissedShare = 8;
// After so many bytes it is seen whether to go on.
constexpr size_t kSample = 32768;
// Of matches that would reach over the time behind them at most this share: searching finds more of those.
constexpr size_t kRepeatedShare = 4;

constexpr size_t kLiterals = 286, kDistances = 30, kEnd = 256;
constexpr unsigned kMostBits = 15, kMostLengthBits = 7;

// One to four bytes as they are, then perhaps a match.
struct Token {
    uint32_t literals;
    uint8_t count;
    uint8_t length_less_3;  // of a match
    uint16_t distance_less_1;

    bool has_match() const noexcept { return (count & kMatch) != 0; }
    bool has_many() const noexcept { return (count & 7) > 2; }
    size_t first() const noexcept { return literals & 0xFF; }
    // The second byte, or a place behind all bytes where there is none: whether there is one cannot be guessed, so nothing
    // branches on it.
    size_t second() const noexcept { return (literals >> 8 & 0xFF) | static_cast<size_t>((count & 7) == 1) << 8; }
    static constexpr uint8_t kMatch = 0x80;
};
constexpr size_t kSecond = 257;

template <class T>
T load(const uint8_t* at) noexcept {
    T value;
    std::memcpy(&value, at, sizeof value);
    return value;
}

bool is_same(const uint8_t* a, const uint8_t* b, size_t size) noexcept {  // of at least 8 bytes
    if (load<uint64_t>(a + size - 8) != load<uint64_t>(b + size - 8)) return false;
    for (size_t i = 0; i + 8 < size; i += 8) {
        if (load<uint64_t>(a + i) != load<uint64_t>(b + i)) return false;
    }
    return true;
}

// The code of a length or distance, and the bits behind it.
struct Extra {
    uint16_t symbol;
    uint8_t bits;
    uint16_t value;
};

Extra of_length(size_t length) noexcept {
    if (length == kLongest) return {285, 0, 0};
    const auto rest = static_cast<unsigned>(length - 3);
    if (rest < 8) return {static_cast<uint16_t>(257 + rest), 0, 0};
    const unsigned bits = static_cast<unsigned>(std::bit_width(rest)) - 3;
    return {static_cast<uint16_t>(257 + 4 * bits + (rest >> bits)), static_cast<uint8_t>(bits),
            static_cast<uint16_t>(rest & ((1U << bits) - 1))};
}

Extra of_distance(uint32_t less_1) noexcept {
    if (less_1 < 4) return {static_cast<uint16_t>(less_1), 0, 0};
    const unsigned bits = static_cast<unsigned>(std::bit_width(less_1)) - 2;
    return {static_cast<uint16_t>(2 * bits + (less_1 >> bits)), static_cast<uint8_t>(bits),
            static_cast<uint16_t>(less_1 & ((1U << bits) - 1))};
}

struct Counts {
    std::array<uint32_t, kLiterals> literal{};
    std::array<uint32_t, kDistances> distance{};
};

class Tokens {
public:
    explicit Tokens(std::span<const uint8_t> bytes) : bytes_(bytes) { made_.resize(bytes.size() / 8 + 16); }

    // Find the matches; false where they leave too much.
    bool find() {
        const uint8_t* const data = bytes_.data();
        const size_t size = bytes_.size();
        plain(0, std::min(kHead, size));
        size_t at = 0;  // of a packet, whose head is taken in
        size_t sample = std::min(kSample, size);
        while (at + kMargin <= size) {
            if (at >= sample) [[unlikely]] {
                if (!is_worth(at, 2)) return false;
                sample = size;
            }
            const uint8_t* const packet = data + at;
            const auto time = load<uint32_t>(packet + kHead);
            const uint32_t ends = ~time & 0x80808080U;
            const size_t length = packet[1];
            const size_t count = (static_cast<size_t>(std::countr_zero(ends)) >> 3) + 1;
            const size_t next = at + 2 + length;
            const size_t from = at + kHead + count, to = next + kHead;
            const bool is_plain = packet[0] == kPacketTag && packet[2] == kTimestampTag && length < 0x80 && ends != 0 && to >= from + kShortest;
            if (!is_plain) [[unlikely]] {
                const size_t behind = end_of(at);
                if (behind > size) break;
                plain(at + kHead, std::min(behind + kHead, size));
                missed_ += behind - at;
                at = behind;
                continue;
            }
            const size_t match = to - from;
            uint32_t& place = seen_[load<uint64_t>(data + to - 8) * 0x9E3779B97F4A7C15U >> (64 - kSeenBits)];
            const size_t earlier = place, distance = to - earlier;
            place = static_cast<uint32_t>(to);
            const auto literals = static_cast<uint32_t>(time & (~uint64_t{0} >> (64 - 8 * count)));
            if (earlier >= match && distance <= kFarthest && is_same(data + earlier - match, data + from, match)) {
                ++matches_;
                repeated_ += ((load<uint32_t>(data + earlier) ^ load<uint32_t>(data + to)) & 0xFFFF) == 0;
                take({literals, static_cast<uint8_t>(count | Token::kMatch), static_cast<uint8_t>(match - 3),
                      static_cast<uint16_t>(distance - 1)});
            } else {
                take({literals, static_cast<uint8_t>(count), 0, 0});
                plain(from, to);
                missed_ += match;
            }
            at = next;
        }
        plain(std::min(at + kHead, size), size);
        if (size - at > kMargin) missed_ += size - at;
        return is_worth(size, 1);
    }

    std::span<const Token> all() const { return {made_.data(), count_}; }

    Counts counts() const {
        Counts found;
        uint32_t lengths[kLongest + 1] = {};
        uint32_t first[256] = {}, second[kSecond] = {};
        for (const Token& token : all()) {
            ++first[token.first()];
            ++second[token.second()];
            if (token.has_many()) [[unlikely]] {
                for (unsigned i = 2; i < (token.count & 7U); ++i) ++found.literal[token.literals >> (8 * i) & 0xFF];
            }
            if (!token.has_match()) continue;
            ++lengths[token.length_less_3 + 3];
            ++found.distance[of_distance(token.distance_less_1).symbol];
        }
        for (size_t byte = 0; byte < 256; ++byte) found.literal[byte] += first[byte] + second[byte];
        for (size_t length = 3; length <= kLongest; ++length) found.literal[of_length(length).symbol] += lengths[length];
        found.literal[kEnd] = 1;
        return found;
    }

private:
    static constexpr unsigned kSeenBits = 12;

    void take(const Token& token) {
        if (count_ == made_.size()) [[unlikely]] made_.resize(2 * made_.size());
        made_[count_++] = token;
    }

    // Whether the matches in so many bytes are such as others find no more of; of first bytes twice as many may be new.
    bool is_worth(size_t size, size_t slack) const {
        return kMissedShare * missed_ <= slack * size && kRepeatedShare * repeated_ <= matches_;
    }

    void plain(size_t from, size_t to) {
        for (; from < to; from += kMostLiterals) {
            const size_t count = std::min(kMostLiterals, to - from);
            uint32_t literals = 0;
            std::memcpy(&literals, bytes_.data() + from, count);
            take({literals, static_cast<uint8_t>(count), 0, 0});
        }
    }

    // Where a packet ends, by its length; behind everything if that is none.
    size_t end_of(size_t at) const {
        size_t length = 0;
        for (size_t i = 0; i < 4; ++i) {
            const uint8_t byte = bytes_[at + 1 + i];
            length |= static_cast<size_t>(byte & 0x7F) << (7 * i);
            if (byte < 0x80) return bytes_[at] == kPacketTag ? at + 2 + i + length : bytes_.size() + 1;
        }
        return bytes_.size() + 1;
    }

    std::span<const uint8_t> bytes_;
    std::vector<Token> made_;
    size_t count_ = 0;
    size_t missed_ = 0;
    size_t matches_ = 0;
    size_t repeated_ = 0;  // of them, those that would go on: the time behind them is the same as well
    std::array<uint32_t, size_t{1} << kSeenBits> seen_{};  // where what hashes to a place ended last
};

// Lengths of codes for symbols that occur so often, none longer than `most`; 0 for those that do not occur.
void code_lengths(std::span<const uint32_t> counts, unsigned most, std::span<uint8_t> lengths) {
    std::fill(lengths.begin(), lengths.end(), uint8_t{0});
    std::vector<uint32_t> symbols;
    for (uint32_t symbol = 0; symbol < counts.size(); ++symbol) {
        if (counts[symbol] > 0) symbols.push_back(symbol);
    }
    const size_t n = symbols.size();
    if (n == 1) lengths[symbols[0]] = 1;
    if (n <= 1) return;
    std::stable_sort(symbols.begin(), symbols.end(), [&](uint32_t a, uint32_t b) { return counts[a] < counts[b]; });
    // Leaves, then what two of the rarest become, which come in rising order as well.
    std::vector<uint64_t> weight(2 * n - 1);
    std::vector<size_t> parent(2 * n - 1);
    for (size_t i = 0; i < n; ++i) weight[i] = counts[symbols[i]];
    size_t leaf = 0, joined = n;
    for (size_t made = n; made < 2 * n - 1; ++made) {
        for (int k = 0; k < 2; ++k) {
            const bool is_leaf = leaf < n && (joined == made || weight[leaf] <= weight[joined]);
            const size_t rarest = is_leaf ? leaf++ : joined++;
            weight[made] += weight[rarest];
            parent[rarest] = made;
        }
    }
    std::vector<unsigned> depth(2 * n - 1);
    std::vector<uint32_t> of_depth(most + 1);
    for (size_t i = 2 * n - 2; i-- > 0;) {
        depth[i] = depth[parent[i]] + 1;
        if (i < n) ++of_depth[std::min(depth[i], most)];
    }
    // Codes that became too short are made up for by those that are a little longer.
    uint64_t taken = 0;
    for (unsigned bits = 1; bits <= most; ++bits) taken += uint64_t{of_depth[bits]} << (most - bits);
    for (; taken > uint64_t{1} << most; --taken) {
        --of_depth[most];
        unsigned bits = most - 1;
        while (of_depth[bits] == 0) --bits;
        --of_depth[bits];
        of_depth[bits + 1] += 2;
    }
    size_t next = 0;
    for (unsigned bits = most; bits >= 1; --bits) {
        for (uint32_t i = 0; i < of_depth[bits]; ++i) lengths[symbols[next++]] = static_cast<uint8_t>(bits);
    }
}

struct Code {
    uint32_t bits = 0;
    uint32_t size = 0;
};

// The codes that follow from their lengths, first bit lowest.
void canonical(std::span<const uint8_t> lengths, std::span<Code> codes) {
    std::array<uint32_t, kMostBits + 2> next{};
    for (const uint8_t length : lengths) next[length + 1U] += length > 0;
    uint32_t code = 0;
    for (unsigned bits = 1; bits <= kMostBits; ++bits) {
        code = (code + next[bits]) << 1;
        next[bits] = code;
    }
    for (size_t symbol = 0; symbol < lengths.size(); ++symbol) {
        const unsigned size = lengths[symbol];
        if (size == 0) continue;
        uint32_t value = next[size]++, turned = 0;
        for (unsigned bit = 0; bit < size; ++bit, value >>= 1) turned = turned << 1 | (value & 1);
        codes[symbol] = {turned, size};
    }
}

class Bits {
public:
    explicit Bits(uint8_t* at) : at_(at) {}

    // At most 57 bits between two calls of flush().
    void put(uint64_t bits, unsigned size) {
        bits_ |= bits << size_;
        size_ += size;
    }
    void put(const Code& code) { put(code.bits, code.size); }
    void flush() {
        std::memcpy(at_, &bits_, sizeof bits_);
        at_ += size_ >> 3;
        bits_ >>= size_ & ~7U;
        size_ &= 7;
    }
    uint8_t* end() {
        flush();
        return at_ + (size_ > 0);
    }

private:
    uint8_t* at_;
    uint64_t bits_ = 0;
    unsigned size_ = 0;
};

// A symbol of the lengths of codes, and the bits behind it.
struct LengthSymbol {
    uint8_t symbol, bits, value;
};

std::vector<LengthSymbol> run_lengths(std::span<const uint8_t> lengths) {
    std::vector<LengthSymbol> found;
    for (size_t i = 0; i < lengths.size();) {
        size_t run = 1;
        while (i + run < lengths.size() && lengths[i + run] == lengths[i]) ++run;
        i += run;
        const uint8_t length = lengths[i - 1];
        if (length == 0) {
            for (; run >= 11; run -= std::min<size_t>(run, 138)) {
                found.push_back({18, 7, static_cast<uint8_t>(std::min<size_t>(run, 138) - 11)});
            }
            if (run >= 3) found.push_back({17, 3, static_cast<uint8_t>(run - 3)}), run = 0;
        } else {
            found.push_back({length, 0, 0});
            --run;
            while (run >= 3) {
                const size_t some = std::min<size_t>(run, 6);
                found.push_back({16, 2, static_cast<uint8_t>(some - 3)});
                run -= some;
            }
        }
        for (; run > 0; --run) found.push_back({length, 0, 0});
    }
    return found;
}

// The head of a block: its codes.
void put_codes(Bits& out, std::span<const uint8_t> literals, std::span<const uint8_t> distances) {
    std::vector<uint8_t> lengths(literals.begin(), literals.end());
    lengths.insert(lengths.end(), distances.begin(), distances.end());
    const std::vector<LengthSymbol> symbols = run_lengths(lengths);
    std::array<uint32_t, 19> counts{};
    for (const LengthSymbol& each : symbols) ++counts[each.symbol];
    std::array<uint8_t, 19> sizes{};
    code_lengths(counts, kMostLengthBits, sizes);
    std::array<Code, 19> codes{};
    canonical(sizes, codes);
    static constexpr uint8_t kOrder[19] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
    size_t used = 19;
    while (used > 4 && sizes[kOrder[used - 1]] == 0) --used;
    out.put(1 | 2 << 1, 3);  // the last block, with codes of its own
    out.put(literals.size() - 257, 5);
    out.put(distances.size() - 1, 5);
    out.put(used - 4, 4);
    out.flush();
    for (size_t i = 0; i < used; ++i) {
        out.put(sizes[kOrder[i]], 3);
        out.flush();
    }
    for (const LengthSymbol& each : symbols) {
        out.put(codes[each.symbol]);
        out.put(each.value, each.bits);
        out.flush();
    }
}

}  // namespace

bool deflate_packets(std::span<const uint8_t> packets, std::vector<uint8_t>& out) {
    if (packets.size() >= uint64_t{1} << 31) return false;
    Tokens tokens(packets);
    if (!tokens.find()) return false;
    Counts counts = tokens.counts();
    for (size_t i = 0; i < 2; ++i) counts.distance[i] += counts.distance[i] == 0;  // readers want a whole code
    std::array<uint8_t, kLiterals> literal_sizes{};
    std::array<uint8_t, kDistances> distance_sizes{};
    code_lengths(counts.literal, kMostBits, literal_sizes);
    code_lengths(counts.distance, kMostBits, distance_sizes);
    std::array<Code, kLiterals> literals{};
    std::array<Code, kDistances> distances{};
    canonical(literal_sizes, literals);
    canonical(distance_sizes, distances);
    std::array<Code, kLongest + 1> lengths{};  // with the bits behind them
    for (size_t length = 3; length <= kLongest; ++length) {
        const Extra extra = of_length(length);
        const Code& code = literals[extra.symbol];
        lengths[length] = {code.bits | static_cast<uint32_t>(extra.value) << code.size, code.size + extra.bits};
    }
    uint64_t bits = 0;
    for (size_t symbol = 0; symbol < kLiterals; ++symbol) bits += uint64_t{counts.literal[symbol]} * (literal_sizes[symbol] + 5U);
    for (size_t symbol = 0; symbol < kDistances; ++symbol) bits += uint64_t{counts.distance[symbol]} * (distance_sizes[symbol] + 13U);
    out.resize(bits / 8 + 1024);
    Bits to(out.data());
    put_codes(to, literal_sizes, distance_sizes);
    std::array<Code, kSecond> second{};
    std::copy_n(literals.begin(), 256, second.begin());
    for (const Token& token : tokens.all()) {
        to.put(literals[token.first()]);
        to.put(second[token.second()]);
        if (token.has_many()) [[unlikely]] {
            to.flush();
            for (unsigned i = 2; i < (token.count & 7U); ++i) to.put(literals[token.literals >> (8 * i) & 0xFF]);
        }
        if (token.has_match()) {
            to.put(lengths[token.length_less_3 + 3U]);
            to.flush();
            const Extra extra = of_distance(token.distance_less_1);
            to.put(distances[extra.symbol]);
            to.put(extra.value, extra.bits);
        }
        to.flush();
    }
    to.put(literals[kEnd]);
    out.resize(static_cast<size_t>(to.end() - out.data()));
    return true;
}

}  // namespace lanescope::perfetto
