// Finding packets in a stream of words, whatever else is in it.
#pragma once
#include <algorithm>
#include <array>
#include <vector>

#include "core/devices/aie/frame_format.hpp"

namespace lanescope::aie {

// A run of words and what it is. Together the entries of a stream cover every word once, in order. A cut has no words: a
// slice of the dump ends there, and its sources with it.
enum class Run : int32_t { packet, lost, orphan, zeros, incomplete, cut };
struct Entry {
    int32_t word;    // index in the scanned block
    int32_t count;   // words
    int32_t run;     // a Run
    int32_t source;  // packet, incomplete: its source; lost: the source that lost a packet, -1 where it may be any
};

enum class ScanTally { bad_header, resync, no_start, source_limit, zero_run, after_zeros, incomplete };
inline constexpr size_t kScanTallies = 7;
inline constexpr size_t kRuns = 5;

// Splits words into packets and the rest.
//
// A packet is taken when its header is sound and either its source is known or its payload begins with Start. After a
// bad header the next packet is looked for first where it should be, then word by word, each time asking that what
// follows fits too: payload may look like a header.
class Scanner {
  public:
    static constexpr size_t kMaxSources = 1024;  // of one slice of a dump
    // Slices of a dump begin anew: they are from different runs, and so are their sources.
    static constexpr size_t kMaxAllSources = size_t{1} << 24;
    // How far ahead of a word a decision may look. Nearer to the end of a block (unless it is the last) the scan stops,
    // so that no decision depends on how the stream was cut.
    static constexpr size_t kLookahead = 80;

    Scanner() : Scanner(std::span<const int64_t>{}) {}
    // `cuts`: words, rising, at which slices of the dump end and begin.
    explicit Scanner(std::span<const int64_t> cuts);

    struct Progress {
        size_t words;    // words consumed: hand the others in again, in front of the next ones
        size_t entries;  // entries written; room for fewer than two left means: call again
    };
    Progress scan(std::span<const uint32_t> words, bool is_last, Offsets offsets, std::span<Entry> out);

    std::span<const uint32_t> headers() const { return headers_; }
    // Which slice a source is in; the first one begins with the dump.
    size_t slice_of(int64_t source) const {
        return static_cast<size_t>(std::ranges::upper_bound(first_sources_, source) - first_sources_.begin()) - 1;
    }
    std::span<const Tally> tallies() const { return tallies_; }
    // Words of each Run so far.
    std::span<const int64_t> words() const { return words_; }

  private:
    struct View;
    Progress scan_slice(std::span<const uint32_t> words, bool is_last, Offsets offsets, std::span<Entry> out);
    void begin_slice();
    int32_t find(uint32_t header) const;
    int32_t add(uint32_t header);
    int32_t nearest(uint32_t header) const;
    void end_zeros(int64_t offset);
    Tally& tally(ScanTally which) { return tallies_[static_cast<size_t>(which)]; }

    std::vector<uint32_t> headers_;           // by source
    std::vector<int64_t> cuts_;
    std::vector<int64_t> first_sources_{0};  // of each slice so far
    std::vector<int64_t> regions_;            // by source: the region of its last packet
    std::array<int32_t, 4096> slots_;         // open addressing: header -> source, -1 free
    std::array<Tally, kScanTallies> tallies_{};
    std::array<int64_t, kRuns> words_{};
    uint64_t position_ = 0;                   // words consumed in earlier calls
    uint64_t phase_ = 0;                      // position of the last packet, modulo the packet size
    int64_t zeros_ = 0;                       // length of the run of zero words before the current word
    int64_t region_ = 0;                      // long runs of zeros separate regions
    bool is_searching_ = false;
};

// Deal entries out to as many parts as there are outputs, each with room for all of them: what concerns one source goes
// to the part that is left when its number is divided, and is source number quotient there; what may concern any source
// goes to every part. Return how many each got.
// Sources know nothing of each other, so the parts can be decoded side by side; and one after the other they are decoded
// faster than mixed, as the processor guesses right what comes next.
template <size_t kParts>
std::array<size_t, kParts> deal(std::span<const Entry> entries, const std::array<std::span<Entry>, kParts>& out) {
    std::array<size_t, kParts> count{};
    for (const Entry& entry : entries) {
        if (entry.source >= 0) {
            const size_t part = static_cast<uint32_t>(entry.source) % kParts;
            Entry& dealt = out[part][count[part]++] = entry;
            dealt.source = static_cast<int32_t>(static_cast<uint32_t>(entry.source) / kParts);
        } else if (entry.run == static_cast<int32_t>(Run::lost) || entry.run == static_cast<int32_t>(Run::cut)) {
            for (size_t part = 0; part < kParts; ++part) out[part][count[part]++] = entry;
        }
    }
    return count;
}

}  // namespace lanescope::aie
