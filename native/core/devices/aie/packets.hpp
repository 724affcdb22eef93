// Finding packets in a stream of words, whatever else is in it.
#pragma once
#include <array>
#include <vector>

#include "core/devices/aie/frame_format.hpp"

namespace lanescope::aie {

// A run of words and what it is. Together the entries of a stream cover every word once, in order.
enum class Run : int32_t { packet, lost, orphan, zeros, incomplete };
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
    static constexpr size_t kMaxSources = 1024;
    // How far ahead of a word a decision may look. Nearer to the end of a block (unless it is the last) the scan stops,
    // so that no decision depends on how the stream was cut.
    static constexpr size_t kLookahead = 80;

    Scanner();

    struct Progress {
        size_t words;    // words consumed: hand the others in again, in front of the next ones
        size_t entries;  // entries written; room for fewer than two left means: call again
    };
    Progress scan(std::span<const uint32_t> words, bool is_last, Offsets offsets, std::span<Entry> out);

    std::span<const uint32_t> headers() const { return headers_; }
    std::span<const Tally> tallies() const { return tallies_; }
    // Words of each Run so far.
    std::span<const int64_t> words() const { return words_; }

  private:
    struct View;
    int32_t find(uint32_t header) const;
    int32_t add(uint32_t header);
    int32_t nearest(uint32_t header) const;
    void end_zeros(int64_t offset);
    Tally& tally(ScanTally which) { return tallies_[static_cast<size_t>(which)]; }

    std::vector<uint32_t> headers_;           // by source
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
// to the part that is left when its number is divided, what may concern any source to every part. Return how many each got.
// Sources know nothing of each other, so the parts can be decoded side by side; and one after the other they are decoded
// faster than mixed, as the processor guesses right what comes next.
template <size_t kParts>
std::array<size_t, kParts> deal(std::span<const Entry> entries, const std::array<std::span<Entry>, kParts>& out) {
    std::array<size_t, kParts> count{};
    for (const Entry& entry : entries) {
        if (entry.source >= 0) {
            const size_t part = static_cast<uint32_t>(entry.source) % kParts;
            out[part][count[part]++] = entry;
        } else if (entry.run == static_cast<int32_t>(Run::lost)) {
            for (size_t part = 0; part < kParts; ++part) out[part][count[part]++] = entry;
        }
    }
    return count;
}

}  // namespace lanescope::aie
