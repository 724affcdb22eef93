#include "core/devices/aie/packets.hpp"

#include <utility>

namespace lanescope::aie {
namespace {

constexpr int64_t kRegionZeros = 8;  // that many zero words in a row separate two regions of a buffer
constexpr size_t kGridTries = 5;     // places at which packets should begin that are tried before every word is

}  // namespace

// The words in view and what can be said about a place between them.
struct Scanner::View {
    const Scanner& scanner;
    std::span<const uint32_t> words;

    bool is_strong(size_t i) const {
        if (i >= words.size() || !is_header(words[i])) return false;
        return scanner.find(words[i]) >= 0 || (i + 1 < words.size() && is_start(words[i + 1]));
    }
    // Could a packet end here? At the end of all words, before zeros, before another packet.
    bool is_boundary(size_t i) const {
        return i == words.size() || (i < words.size() && words[i] == 0) || is_strong(i);
    }
    bool is_packet(size_t i) const { return is_strong(i) && is_boundary(i + kPacketWords); }
    // A Start between two sound headers does not come by chance (1 in 2^29), even if the second one's source lost its Start.
    bool is_beginning(size_t i) const {
        const size_t next = i + kPacketWords;
        return next < words.size() && is_header(words[i]) && is_start(words[i + 1]) && is_header(words[next]);
    }
    // Where packets should begin, a sound header behind it says as much, even of a source whose Start is lost.
    bool is_packet_in_step(size_t i) const {
        const size_t next = i + kPacketWords;
        return is_packet(i) || (is_strong(i) && next < words.size() && is_header(words[next]));
    }

    // The nearest place from `grid` on, in whole packets, at which the stream is in step again; 0 if there is none.
    size_t next_on_grid(size_t grid, bool is_next_packet) const {
        for (size_t tries = 0; tries < kGridTries; ++tries, grid += kPacketWords) {
            if (grid == words.size()) return grid;
            if (grid > words.size()) return 0;
            if (tries == 0 && is_next_packet ? is_boundary(grid) : words[grid] == 0 || is_packet_in_step(grid)) return grid;
        }
        return 0;
    }
};

Scanner::Scanner(std::span<const int64_t> cuts) : cuts_(cuts.rbegin(), cuts.rend()) { slots_.fill(-1); }

// What was known of the slice before does not hold.
void Scanner::begin_slice() {
    cuts_.pop_back();
    first_sources_.push_back(static_cast<int64_t>(headers_.size()));
    slots_.fill(-1);
    phase_ = position_ % kPacketWords;
    zeros_ = 0;
    ++region_;
    is_searching_ = false;
}

int32_t Scanner::find(uint32_t header) const {
    for (size_t slot = header * 0x9E3779B1u >> 20;; slot = (slot + 1) % slots_.size()) {
        const int32_t source = slots_[slot];
        if (source < 0 || headers_[static_cast<size_t>(source)] == header) return source;
    }
}

int32_t Scanner::add(uint32_t header) {
    const size_t before = static_cast<size_t>(first_sources_.back());
    if (headers_.size() - before == kMaxSources || headers_.size() == kMaxAllSources) return -1;
    size_t slot = header * 0x9E3779B1u >> 20;
    while (slots_[slot] >= 0) slot = (slot + 1) % slots_.size();
    slots_[slot] = static_cast<int32_t>(headers_.size());
    headers_.push_back(header);
    regions_.push_back(region_);
    return slots_[slot];
}

// The only known source whose header differs in one bit, else -1.
int32_t Scanner::nearest(uint32_t header) const {
    int32_t found = -1;
    for (uint32_t bit = 0; bit < 32; ++bit) {
        const int32_t source = find(header ^ 1u << bit);
        if (source >= 0 && found >= 0) return -1;
        if (source >= 0) found = source;
    }
    return found;
}

void Scanner::end_zeros(int64_t offset) {
    if (zeros_ >= kRegionZeros) {
        ++region_;
        tally(ScanTally::zero_run).add(offset);
    }
    zeros_ = 0;
}

Scanner::Progress Scanner::scan(std::span<const uint32_t> words, bool is_last, Offsets offsets,
                                std::span<Entry> out) {
    Progress done{0, 0};
    while (true) {
        const bool has_cut = !cuts_.empty() && static_cast<uint64_t>(cuts_.back()) - position_ <= words.size() - done.words;
        const size_t end = has_cut ? done.words + static_cast<size_t>(static_cast<uint64_t>(cuts_.back()) - position_)
                                   : words.size();
        const auto each = offsets.each.empty() ? offsets.each : offsets.each.subspan(done.words, end - done.words);
        const Offsets here{offsets.base + 4 * static_cast<int64_t>(done.words), each};
        const auto part = scan_slice(words.subspan(done.words, end - done.words), has_cut || is_last, here,
                                     out.subspan(done.entries));
        for (Entry& entry : out.subspan(done.entries, part.entries)) entry.word += static_cast<int32_t>(done.words);
        done = {done.words + part.words, done.entries + part.entries};
        if (!has_cut || done.words != end) return done;
        // A scan leaves room for one entry.
        out[done.entries++] = {static_cast<int32_t>(end), 0, static_cast<int32_t>(Run::cut), -1};
        begin_slice();
    }
}

Scanner::Progress Scanner::scan_slice(std::span<const uint32_t> words, bool is_last, Offsets offsets,
                                      std::span<Entry> out) {
    const View view{*this, words};
    const size_t size = words.size();
    size_t i = 0;
    size_t count = 0;
    int32_t following = -1;  // the source of the packet at i, if the packet before it has found out
    const auto push = [&](size_t length, Run run, int32_t source) {
        words_[static_cast<size_t>(run)] += static_cast<int64_t>(length);
        Entry* last = count == 0 ? nullptr : &out[count - 1];
        const bool grows = (run == Run::zeros || (run == Run::lost && is_searching_)) && last != nullptr &&
                           last->run == static_cast<int32_t>(run) && last->source == source &&
                           last->word + last->count == static_cast<int32_t>(i);
        if (grows) {
            last->count += static_cast<int32_t>(length);
        } else {
            out[count++] = {static_cast<int32_t>(i), static_cast<int32_t>(length), static_cast<int32_t>(run), source};
        }
        i += length;
    };

    while (i < size && count + 1 < out.size() && (is_last || size - i >= kLookahead)) {
        const uint32_t word = words[i];
        if (is_searching_) {
            size_t zeros = 0;
            while (zeros < kRegionZeros && i + zeros < size && words[i + zeros] == 0) ++zeros;
            const bool is_in_step = (position_ + i - phase_) % kPacketWords == 0;
            if (zeros < kRegionZeros && !(is_in_step ? view.is_packet_in_step(i) : view.is_packet(i) || view.is_beginning(i))) {
                push(1, Run::lost, -1);
                continue;
            }
            is_searching_ = false;
        }
        if (word == 0) {
            ++zeros_;
            push(1, Run::zeros, -1);
            continue;
        }
        if (zeros_ != 0) end_zeros(offsets(i));
        int32_t source = following >= 0 ? std::exchange(following, -1) : is_header(word) ? find(word) : -1;
        if (size - i < kPacketWords) {
            tally(ScanTally::incomplete).add(offsets(i));
            push(size - i, source >= 0 ? Run::incomplete : Run::lost, source);
            continue;
        }
        if (source < 0 && is_header(word)) {
            if (is_start(words[i + 1])) {
                source = add(word);
                if (source < 0) tally(ScanTally::source_limit).add(offsets(i));
            }
            const size_t next = i + kPacketWords;
            if (source < 0 && (next == size || words[next] == 0 || is_header(words[next]))) {
                tally(ScanTally::no_start).add(offsets(i));
                push(kPacketWords, Run::orphan, -1);
                continue;
            }
        }
        if (source >= 0) {
            const size_t next = i + kPacketWords;
            const int32_t behind = next < size && is_header(words[next]) ? find(words[next]) : -1;
            if (behind < 0 && !view.is_boundary(next) && view.next_on_grid(next + kPacketWords, true) == 0) [[unlikely]] {
                // Out of step after this packet: words of it may be missing, then the next header lies inside it.
                size_t inside = i + 1;
                while (inside < next && !view.is_packet(inside)) ++inside;
                if (inside < next) {
                    tally(ScanTally::resync).add(offsets(i));
                    push(inside - i, Run::lost, source);
                    continue;
                }
            }
            auto& region = regions_[static_cast<size_t>(source)];
            if (region != region_ && !is_start(words[i + 1])) tally(ScanTally::after_zeros).add(offsets(i));
            region = region_;
            phase_ = (position_ + i) % kPacketWords;
            push(kPacketWords, Run::packet, source);
            following = behind;
            continue;
        }
        const size_t step = kPacketWords - (position_ + i + kPacketWords - phase_) % kPacketWords;
        const size_t next = view.next_on_grid(i + step, step == kPacketWords);
        if (next != 0) {
            tally(ScanTally::bad_header).add(offsets(i), static_cast<int64_t>((next - i + kPacketWords - 1) / kPacketWords));
            push(next - i, Run::lost, next - i == kPacketWords ? nearest(word) : -1);
        } else {
            tally(ScanTally::resync).add(offsets(i));
            is_searching_ = true;
            push(1, Run::lost, -1);
        }
    }
    position_ += i;
    return {i, count};
}

}  // namespace lanescope::aie
