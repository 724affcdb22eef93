#include "core/io/perfetto/encoder.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "core/io/perfetto/fields.hpp"

namespace lanescope::perfetto {
namespace {

using layout::kForever;

// Readers copy what is interned for every lane that shares it, and get it anew for every turn: few lanes take a turn each,
// more take about so many between them.
constexpr size_t kTurns = 126;
constexpr size_t kMostLanesATurn = 64;

// Behind the timestamp of every END packet that carries nothing.
static_assert(Encoder::kSequence < 128);
constexpr size_t kEndTailSize = 6;
constexpr uint8_t kEndTail[8] = {tag(kSequenceId, Wire::varint), Encoder::kSequence, tag(kTrackEvent, Wire::bytes), 2,
                                 tag(kType, Wire::varint),       kSliceEnd};

// One slice that begins ends at most all that are open.
constexpr size_t kSlack = (layout::kMaxDepth + 2) * kMaxPlainPacket;

// Instants of one moment stack in the viewer; a crowd would pass its limit of depth, so the rest lies side by side.
constexpr int64_t kMaxStackedInstants = 16;

// More tails than this would leave the processor's caches, and a text beyond that many is a rare one.
constexpr size_t kMaxTails = size_t{1} << 14;
constexpr size_t kMaxWords = 31;

// What a slice holds beside its times is fetched this far ahead: the slices of a lane lie scattered over the table.
constexpr int64_t kAhead = 24;

// A plain packet: time since the last one, then a tail that is known already. Touches kMaxPlainPacket bytes.
template <size_t kTailRoom>
uint8_t* put_plain(uint8_t* p, uint64_t delta, const uint8_t* tail, size_t tail_size) {
    uint8_t* const behind_time = put_varint(p + 3, delta);
    p[0] = kPacketTag;
    p[1] = static_cast<uint8_t>(static_cast<size_t>(behind_time - p) - 2 + tail_size);
    p[2] = kTimestampTag;
    std::memcpy(behind_time, tail, kTailRoom);
    return behind_time + tail_size;
}

}  // namespace

Encoder::Encoder(Events slices, Events instants, Samples samples, Texts names, Texts categories,
                 std::vector<Lane> lanes, int64_t origin, bool is_part, uint64_t flow_base)
    : slices_(std::move(slices)),
      instants_(std::move(instants)),
      samples_(samples),
      names_(names),
      categories_(categories),
      lanes_(std::move(lanes)),
      last_lane_(lanes_.size()),
      open_(static_cast<size_t>(layout::kMaxDepth) + 1, Open{kForever, -1}),
      last_ts_(origin),
      origin_(origin),
      is_part_(is_part),
      flow_base_(flow_base),
      slice_groups_(groups_of(slices_.arguments)),
      instant_groups_(groups_of(instants_.arguments)),
      interned_names_(names.size()),
      interned_categories_(categories.size()) {
    for (const Events* events : {&slices_, &instants_}) {
        for (const Argument& argument : events->arguments) {
            interned_arguments_.emplace_back();
            interned_values_.emplace_back(argument.type == ValueType::text ? argument.texts.size() : 0);
        }
    }
    for (const Lane& lane : lanes_) {
        if (!valid_range(lane.slices_from, lane.slices_to, slices_.size()) ||
            !valid_range(lane.instants_from, lane.instants_to, instants_.size()) ||
            !valid_range(lane.samples_from, lane.samples_to, samples_.order.size())) {
            fail(Status::bad_index);
        }
    }
    find_word();
    tails_.resize(names.size() * tails_a_name_);
    const size_t shared = is_part ? kMostLanesATurn : (lanes_.size() + kTurns - 1) / kTurns;
    lanes_a_turn_ = static_cast<uint32_t>(std::clamp<size_t>(shared, 1, kMostLanesATurn));
}

std::vector<Encoder::Group> Encoder::groups_of(const std::vector<Argument>& arguments) {
    std::vector<Group> found;
    for (size_t a = 0; a < arguments.size(); ++a) {
        const auto& [base, count] = std::pair(arguments[a].base, std::max<int64_t>(arguments[a].count, 0));
        if (found.empty() || found.back().base != base || found.back().count != count) found.push_back({base, count, a, a});
        found.back().last = a + 1;
    }
    return found;
}

std::vector<Encoder::Part> Encoder::parts(size_t events) const {
    std::vector<Part> found(1);
    found[0].start = origin_;
    events = std::max(events, 4 * tails_.size());  // every part remembers its texts anew
    for (size_t i = 0; i < lanes_.size(); ++i) {
        if (found.back().events >= events && i % lanes_a_turn_ == 0) {
            found.push_back({i, i, 0, last_time(lanes_[i - 1])});
        }
        const Lane& lane = lanes_[i];
        found.back().last = i + 1;
        found.back().events += static_cast<size_t>(lane.slices_to - lane.slices_from + lane.instants_to - lane.instants_from +
                                                   lane.samples_to - lane.samples_from);
    }
    return found;
}

void Encoder::restrict_to(const Part& part) {
    lane_ = part.first;
    last_lane_ = part.last;
    last_ts_ = part.start;
}

// The time of the last packet of a lane.
int64_t Encoder::last_time(const Lane& lane) const {
    int64_t last = 0;
    for (auto k = static_cast<size_t>(lane.slices_from); k < static_cast<size_t>(lane.slices_to); ++k) {
        if (outside(slices_.index(k), slices_.size())) return 0;  // which encoding refuses
        const int64_t end = slices_.end_at(k);
        last = std::max(last, end == kForever ? slices_.begin[k] : end);
    }
    if (lane.instants_from < lane.instants_to) last = std::max(last, instants_.begin[static_cast<size_t>(lane.instants_to) - 1]);
    if (lane.samples_from < lane.samples_to) last = std::max(last, samples_.ts[static_cast<size_t>(lane.samples_to) - 1]);
    return last;
}

std::span<const uint8_t> Encoder::fill(size_t target, bool keeps_last) {
    if (keeps_last) std::swap(out_, last_);
    if (out_.size() < target + kSlack) out_ = LargeMemory(target + kSlack);
    at_ = begin();
    while (status_ == Status::ok && lane_ < last_lane_ && used() < target) {
        const Lane& lane = lanes_[lane_];
        if (!std::exchange(inside_, true)) start_lane(lane);
        if (!run_lane(lane, target) || !run_samples(lane, target)) break;
        ++lane_;
        inside_ = false;
    }
    if (status_ != Status::ok) return {};
    if (is_part_ && lane_ == lanes_.size() && last_ts_ != origin_) move_clock(origin_, {});
    return {begin(), used()};
}

void Encoder::ensure(size_t bytes) {
    const size_t have = used();
    if (out_.size() - have < bytes + kSlack) {
        LargeMemory wider(2 * out_.size() + bytes + kSlack);
        std::memcpy(wider.data(), begin(), have);
        out_ = std::move(wider);
        at_ = begin() + have;
    }
}

// The packet in front of a lane: its track becomes the default of the sequence, and the clock goes to its first time.
void Encoder::start_lane(const Lane& lane) {
    next_slice_ = lane.slices_from;
    next_instant_ = lane.instants_from;
    next_sample_ = lane.samples_from;
    depth_ = 0;
    last_instant_ts_ = -1;
    instants_at_once_ = 0;

    int64_t start = kForever;
    if (lane.slices_from < lane.slices_to) start = std::min(start, slices_.begin[static_cast<size_t>(lane.slices_from)]);
    if (lane.instants_from < lane.instants_to) start = std::min(start, instants_.begin[static_cast<size_t>(lane.instants_from)]);
    if (lane.samples_from < lane.samples_to) start = std::min(start, samples_.ts[static_cast<size_t>(lane.samples_from)]);
    if (start < 0) fail(Status::bad_time);
    if (status_ != Status::ok) return;

    Bytes& rest = event_;
    rest.clear();
    if (lane_ % lanes_a_turn_ == 0) {
        ++turn_;
        std::fill(std::begin(next_iid_), std::end(next_iid_), 0);
        add_varint_field(rest, kSequenceFlags, 1);  // nothing interned before is needed to read on from here
    }
    Bytes& message = argument_;
    Bytes& part = element_;
    part.clear();
    add_varint_field(part, kTrackUuid, lane.uuid);
    message.clear();
    add_varint_field(message, kDefaultClock, kClock);
    add_bytes_field(message, kDefaultEvent, part);
    add_bytes_field(rest, kDefaults, message);
    move_clock(start, rest);
}

// A packet without an event that moves the clock, back too: readers add up what 64 bits hold, with a sign.
void Encoder::move_clock(int64_t ts, std::span<const uint8_t> rest) {
    const auto delta = static_cast<uint64_t>(ts) - static_cast<uint64_t>(last_ts_);
    last_ts_ = ts;
    const size_t size = 1 + varint_size(delta) + 2 + rest.size();
    ensure(size + kMaxPlainPacket);
    *at_++ = kPacketTag;
    at_ = put_varint(at_, size);
    *at_++ = kTimestampTag;
    at_ = put_varint(at_, delta);
    *at_++ = tag(kSequenceId, Wire::varint);
    *at_++ = kSequence;
    at_ = std::copy(rest.begin(), rest.end(), at_);
}

bool Encoder::run_lane(const Lane& lane, size_t target) {
    while (status_ == Status::ok && next_slice_ < lane.slices_to) {
        if (used() >= target) return false;
        if (slices_.flow_first.empty() && (slices_.arguments.empty() || has_only_word_) && next_instant_ == lane.instants_to) {
            run_plain<true>(lane, target);
        } else {
            run_plain<false>(lane, target);
        }
        if (status_ != Status::ok || next_slice_ == lane.slices_to || used() >= target) continue;
        // What stopped it: an instant, arguments or flows, or a text that this sequence has not seen yet.
        const int64_t ts = slices_.begin[static_cast<size_t>(next_slice_)];
        while (open_[depth_].end <= ts) end_slice(lane);
        instants_before(lane, ts);
        begin_slice();
        ++next_slice_;
    }
    while (status_ == Status::ok && open_[depth_].end != kForever) {
        if (used() >= target) return false;
        end_slice(lane);
    }
    while (status_ == Status::ok && next_instant_ < lane.instants_to) {
        if (used() >= target) return false;
        instants_before(lane, instants_.begin[static_cast<size_t>(next_instant_)] + 1);
    }
    return status_ == Status::ok;
}

// Slices that carry nothing but a name, a category and a word, with all state in registers; stops at the first that is not
// so. `kBare`: nothing in sight can stop it but a new text, which saves looking.
template <bool kBare>
void Encoder::run_plain(const Lane& lane, size_t target) {
    const int64_t* const order = slices_.order.empty() ? nullptr : slices_.order.data();
    const int64_t* const begins = slices_.begin.data();
    const int64_t* const ends = slices_.end.data();
    const int64_t from_begin = slices_.end_is_length ? -1 : 0;
    const int32_t* const names = slices_.name.data();
    const int32_t* const categories = slices_.category.size() > 1 ? slices_.category.data() : nullptr;
    const bool may_carry = !slices_.arguments.empty() || !slices_.flow_first.empty();
    const int32_t* const words = kBare && has_only_word_ ? static_cast<const int32_t*>(word_->values) : nullptr;
    const uint8_t* const words_known = words != nullptr && !word_->known.empty() ? word_->known.data() : nullptr;
    const Tail* const tails = tails_.data();
    const size_t count = slices_.name.size();
    const size_t name_count = names_.size();
    const size_t tails_a_name = tails_a_name_;
    const uint8_t* const stop = begin() + target;
    const int64_t last_slice = lane.slices_to - 1;
    const uint32_t turn = turn_;
    const int64_t instant =
        next_instant_ < lane.instants_to ? instants_.begin[static_cast<size_t>(next_instant_)] : kForever;

    Open* const open = open_.data();  // open[0] is a floor that never ends
    size_t depth = depth_;
    Open top = open[depth];
    int64_t last = last_ts_;
    int64_t k = next_slice_;
    uint8_t* p = at_;
    for (; k <= last_slice && p < stop; ++k) {
        int64_t index = k;
        if (order != nullptr) {
            index = order[k];
            __builtin_prefetch(names + order[std::min(k + kAhead, last_slice)]);
        }
        if (outside(index, count)) [[unlikely]] {
            fail(Status::bad_index);
            break;
        }
        const int64_t ts = begins[k];
        const int64_t end = ends[k + ((index - k) & from_begin)] + (ts & from_begin);
        bool blocked = false;
        while (top.end <= ts) {
            if constexpr (!kBare) {
                blocked = top.end > instant || (may_carry && has_flows(top.index));
                if (blocked) break;
            }
            p = put_plain<sizeof kEndTail>(p, static_cast<uint64_t>(top.end - last), kEndTail, kEndTailSize);
            last = top.end;
            top = open[--depth];
        }
        if constexpr (!kBare) {
            if (blocked || ts > instant) break;
        }
        const auto name = static_cast<uint32_t>(names[index]);
        const bool crosses = (ts < last) | (end < ts) | (end > top.end) | (depth >= static_cast<size_t>(layout::kMaxDepth));
        if (crosses | (name >= name_count)) [[unlikely]] {
            fail(crosses ? Status::bad_nesting : Status::bad_index);
            break;
        }
        size_t slot = name * tails_a_name;
        if constexpr (kBare) {
            if (words != nullptr && (words_known == nullptr || words_known[index] != 0)) {
                const auto code = static_cast<size_t>(words[index]);
                if (code + 1 >= tails_a_name) break;
                slot += code + 1;
            }
        } else if (may_carry) {
            const size_t word = carried(index);
            if (word == kMore) break;
            slot += word;
        }
        const Tail& tail = tails[slot];
        if (tail.owner != turn || (categories != nullptr && tail.category != categories[index])) break;
        p = put_plain<sizeof tail.bytes>(p, static_cast<uint64_t>(ts - last), tail.bytes, tail.size);
        last = ts;
        top = {end, index};
        open[++depth] = top;
    }
    at_ = p;
    last_ts_ = last;
    depth_ = depth;
    next_slice_ = k;
}

bool Encoder::run_samples(const Lane& lane, size_t target) {
    for (; next_sample_ < lane.samples_to && status_ == Status::ok; ++next_sample_) {
        if (used() >= target) return false;
        const int64_t index = samples_.order[static_cast<size_t>(next_sample_)];
        if (outside(index, samples_.value.size())) {
            fail(Status::bad_index);
            break;
        }
        event_.clear();
        interned_.clear();
        add_varint_field(event_, kType, kCounter);
        const double value = samples_.value[static_cast<size_t>(index)];
        // An integer is shorter as a varint, and reads back as the same double below 2^53.
        if (std::fabs(value) < 0x1p53 && value == std::trunc(value) && !(value == 0 && std::signbit(value))) {
            add_varint_field(event_, kCounterInteger, static_cast<uint64_t>(static_cast<int64_t>(value)));
        } else {
            add_fixed64_field(event_, kCounterDouble, std::bit_cast<uint64_t>(value));
        }
        packet(samples_.ts[static_cast<size_t>(next_sample_)]);
    }
    return status_ == Status::ok;
}

void Encoder::begin_slice() {
    const auto k = static_cast<size_t>(next_slice_);
    if (outside(slices_.index(k), slices_.name.size())) return fail(Status::bad_index);
    const int64_t end = slices_.end_at(k);
    if (end < slices_.begin[k] || end > open_[depth_].end || depth_ >= static_cast<size_t>(layout::kMaxDepth)) {
        return fail(Status::bad_nesting);
    }
    event(slices_, next_slice_, kSliceBegin);
    open_[++depth_] = {end, slices_.index(k)};
}

void Encoder::end_slice(const Lane& lane) {
    const Open top = open_[depth_--];
    instants_before(lane, top.end);
    if (status_ != Status::ok) return;
    if (top.end >= last_ts_ && !has_flows(top.index)) {
        ensure(kMaxPlainPacket);
        at_ = put_plain<sizeof kEndTail>(at_, static_cast<uint64_t>(top.end - last_ts_), kEndTail, kEndTailSize);
        last_ts_ = top.end;
        return;
    }
    interned_.clear();
    event_.clear();
    add_varint_field(event_, kType, kSliceEnd);
    add_flows(slices_, top.index, true);
    packet(top.end);
}

void Encoder::instants_before(const Lane& lane, int64_t ts) {
    for (; next_instant_ < lane.instants_to && status_ == Status::ok; ++next_instant_) {
        const int64_t at = instants_.begin[static_cast<size_t>(next_instant_)];
        if (at >= ts) return;
        instants_at_once_ = at == std::exchange(last_instant_ts_, at) ? instants_at_once_ + 1 : 0;
        if (instants_at_once_ < kMaxStackedInstants) {
            event(instants_, next_instant_, kInstant);
            continue;
        }
        event(instants_, next_instant_, kSliceBegin);
        interned_.clear();
        event_.clear();
        add_varint_field(event_, kType, kSliceEnd);
        packet(at);
    }
}

// Choose the argument whose texts get tails: one with few texts, that has a value for every slice it may concern.
void Encoder::find_word() {
    for (const Argument& argument : slices_.arguments) {
        const size_t tails = argument.texts.size() + 1;
        const bool is_direct = argument.type == ValueType::text && argument.first.empty() && argument.row.empty();
        if (!is_direct || argument.texts.size() > kMaxWords || names_.size() * tails > kMaxTails) continue;
        word_ = &argument;
        tails_a_name_ = tails;
        has_only_word_ = slices_.arguments.size() == 1 && argument.base == 0 &&
                         std::min(static_cast<size_t>(argument.count), argument.rows) >= slices_.name.size();
        return;
    }
}

// Return what a slice carries: 0 for nothing, 1 + its code for nothing but a word, else kMore.
size_t Encoder::carried(int64_t slice) const {
    if (has_flows(slice)) return kMore;
    size_t found = 0;
    for (const Group& group : slice_groups_) {
        if (!group.concerns(slice)) continue;
        const auto at = static_cast<size_t>(slice - group.base);
        for (size_t a = group.first; a < group.last; ++a) {
            const Argument& argument = slices_.arguments[a];
            if (argument.first.empty() ? !argument.known.empty() && argument.known[at] == 0
                                       : argument.first[at] == argument.first[at + 1]) {
                continue;
            }
            if (&argument != word_ || at >= argument.rows) return kMore;
            const auto code = static_cast<size_t>(static_cast<const int32_t*>(argument.values)[at]);
            if (code >= argument.texts.size()) return kMore;
            found = 1 + code;
        }
    }
    return found;
}

}  // namespace lanescope::perfetto
