#include "core/devices/cuda/region_pairing.hpp"

#include <algorithm>
#include <limits>

namespace lanescope::cuda {
namespace {

constexpr uint32_t nothing = std::numeric_limits<uint32_t>::max();

// Queues of events, by the links in the events.
void push(std::span<RegionEvent> events, uint32_t& first, uint32_t& last, uint32_t at) noexcept {
    events[at].next = nothing;
    (first == nothing ? first : events[last].next) = at;
    last = at;
}

uint32_t pop(std::span<const RegionEvent> events, uint32_t& first) noexcept {
    const auto at = first;
    first = events[at].next;
    return at;
}

// The records of one key, in the order of time.
class KeyPairing {
  public:
    KeyPairing(const RegionRules& rules, bool across, int64_t base, std::span<RegionEvent> events,
               std::span<uint32_t> first, std::span<uint32_t> last, std::span<int64_t> partner,
               std::span<uint8_t> is_ambiguous) noexcept
        : rules_(rules), across_(across), base_(base), events_(events), first_(first), last_(last), partner_(partner),
          is_ambiguous_(is_ambiguous) {}

    void run() noexcept {
        forget_all();
        if (rules_.is_open_once) return pass(across_);
        if (across_) {
            pass(true);
            if (every_end_has_a_start()) return;
            forget_all();
        }
        // An end too many may be of a start that is missing in its own lane, so what lanes explain alone comes first.
        pass(false);
        if (!across_) return;
        for (uint32_t at = 0; at < events_.size(); ++at) {
            if (partner_[place(at)] == no_partner) is_ambiguous_[place(at)] = 0;
        }
        pass(true);
    }

  private:
    void forget_all() noexcept {
        for (uint32_t at = 0; at < events_.size(); ++at) {
            partner_[place(at)] = no_partner;
            is_ambiguous_[place(at)] = 0;
        }
    }

    bool every_end_has_a_start() const noexcept {
        for (uint32_t at = 0; at < events_.size(); ++at) {
            if (events_[at].is_end && partner_[place(at)] == no_partner) return false;
        }
        return true;
    }

    void pass(bool leaves_lane) noexcept {
        leaves_lane_ = leaves_lane, contested_ = false;
        waiting_ = nothing, oldest_ = 0, open_ = 0;
        for (auto& event : events_) event.is_open = false;
        for (uint32_t at = 0; at < events_.size(); ++at) {
            if (at > 0 && events_[at].ts != events_[at - 1].ts) waiting_ = nothing;
            if (partner_[place(at)] == no_partner) events_[at].is_end ? end(at) : begin(at);
        }
        for (const auto& event : events_) first_[event.lane] = nothing;
    }

    size_t place(uint32_t at) const noexcept { return static_cast<size_t>(base_) + events_[at].order; }

    void join(uint32_t start, uint32_t end) noexcept {
        partner_[place(start)] = static_cast<int64_t>(place(end));
        partner_[place(end)] = static_cast<int64_t>(place(start));
    }

    void begin(uint32_t at) noexcept {
        const auto lane = events_[at].lane;
        // Lanes rise among records of one time, so if the first that waits is of this lane, all are.
        if (waiting_ != nothing && events_[waiting_].lane != lane) return join(at, pop(events_, waiting_));
        if (first_[lane] != nothing) {
            if (rules_.is_open_once) {
                partner_[place(at)] = repeated_start;
                return;
            }
            is_ambiguous_[place(at)] = is_ambiguous_[place(last_[lane])] = 1;
        }
        push(events_, first_[lane], last_[lane], at);
        events_[at].is_open = true;
        ++open_;
    }

    void end(uint32_t at) noexcept {
        const auto lane = events_[at].lane;
        if (first_[lane] != nothing) return close(pop(events_, first_[lane]), at);
        if (!leaves_lane_ || open_ == 0) {
            if (leaves_lane_ && rules_.starts_first) push(events_, waiting_, last_waiting_, at);
            return;
        }
        while (!events_[oldest_].is_open) ++oldest_;
        contested_ = contested_ || open_ > 1;
        if (contested_) is_ambiguous_[place(oldest_)] = 1;
        // The oldest of all is the oldest of its lane.
        close(pop(events_, first_[events_[oldest_].lane]), at);
    }

    void close(uint32_t start, uint32_t at) noexcept {
        join(start, at);
        events_[start].is_open = false;
        if (--open_ == 0) contested_ = false;
    }

    RegionRules rules_;
    bool across_, leaves_lane_ = false;
    int64_t base_;
    std::span<RegionEvent> events_;
    std::span<uint32_t> first_, last_;
    std::span<int64_t> partner_;
    std::span<uint8_t> is_ambiguous_;
    uint32_t oldest_ = 0;
    size_t open_ = 0;
    bool contested_ = false;  // an end had a choice of lanes, so those that are still open may be the right ones
    uint32_t waiting_ = nothing, last_waiting_ = nothing;
};

void fill(const RegionRecords& records, size_t from, std::span<RegionEvent> events) noexcept {
    const auto base = events.empty() ? 0 : records.lane[from];
    for (size_t i = 0; i < events.size(); ++i) {
        const auto at = from + i;
        const bool follows = i > 0 && records.lane[at] == records.lane[at - 1] && records.launch[at] == records.launch[at - 1];
        // The order of a lane's records is that in which they were written, whatever its clock says.
        const auto ts = follows ? std::max(records.ts[at], events[i - 1].ts) : records.ts[at];
        const auto owner = records.across[at] != 0 ? nothing : records.lane[at];
        events[i] = {records.key[at], ts,      owner, records.lane[at] - base, static_cast<uint32_t>(i),
                     nothing,         records.is_end[at] != 0, false};
    }
}

}  // namespace

void pair_regions(const RegionRecords& records, const RegionRules& rules, std::span<int64_t> partner,
                  std::span<uint8_t> is_ambiguous, std::span<RegionEvent> events, std::span<uint32_t> first,
                  std::span<uint32_t> last) noexcept {
    std::fill(first.begin(), first.end(), nothing);
    for (size_t block = 0; block + 1 < records.start.size(); ++block) {
        const auto from = static_cast<size_t>(records.start[block]);
        const auto found = events.first(static_cast<size_t>(records.start[block + 1]) - from);
        fill(records, from, found);
        std::sort(found.begin(), found.end(), [](const RegionEvent& a, const RegionEvent& b) {
            if (a.key != b.key) return a.key < b.key;
            if (a.owner != b.owner) return a.owner < b.owner;
            return a.ts != b.ts ? a.ts < b.ts : a.order < b.order;
        });
        for (size_t at = 0; at < found.size();) {
            size_t end = at + 1;
            while (end < found.size() && found[end].key == found[at].key && found[end].owner == found[at].owner) ++end;
            KeyPairing(rules, found[at].owner == nothing, records.start[block], found.subspan(at, end - at), first, last,
                       partner, is_ambiguous)
                .run();
            at = end;
        }
    }
}

}  // namespace lanescope::cuda
