// The packets of single events: with flows, arguments and texts that are new to the sequence.
#include <algorithm>

#include "core/io/perfetto/encoder.hpp"
#include "core/io/perfetto/fields.hpp"

namespace lanescope::perfetto {
namespace {

// What an argument of one value takes at most: tags, ids and a varint, or the head of its bytes.
constexpr size_t kArgumentRoom = 64;

// Few bytes without a call: touches as many behind them, at both places, as fill the last of the steps.
constexpr size_t kStep = 32;

uint8_t* put_bytes(uint8_t* to, const uint8_t* from, size_t size) {
    if (size > 8 * kStep) [[unlikely]] {
        std::memcpy(to, from, size);
        return to + size;
    }
    for (size_t i = 0; i < size; i += kStep) std::memcpy(to + i, from + i, kStep);
    return to + size;
}

uint8_t* put_value(uint8_t* p, uint32_t tag, uint64_t bits) {
    p = put_varint(p, tag);
    if (static_cast<Wire>(tag & 7) == Wire::varint) return put_varint(p, bits);
    std::memcpy(p, &bits, sizeof bits);
    return p + sizeof bits;
}

}  // namespace

// A BEGIN or INSTANT packet with all that belongs to it.
void Encoder::event(const Events& events, int64_t position, uint8_t type) {
    const int64_t index = events.index(static_cast<size_t>(position));
    if (outside(index, events.name.size())) return fail(Status::bad_index);
    const auto i = static_cast<size_t>(index);
    const auto name = static_cast<size_t>(events.name[i]);
    if (name >= names_.size()) return fail(Status::bad_index);
    const bool is_slice = &events == &slices_;
    interned_.clear();
    event_.clear();
    add_varint_field(event_, kType, type);
    add_varint_field(event_, kNameIid, intern(interned_names_[name], kNames, names_[name]));
    int32_t category = -1;
    if (!events.category.empty()) {
        category = events.category_at(i);
        const auto code = static_cast<size_t>(category);
        if (code >= categories_.size()) return fail(Status::bad_index);
        if (const auto text = categories_[code]; !text.empty()) {
            add_varint_field(event_, kCategoryIid, intern(interned_categories_[code], kCategories, text));
        }
    }
    const size_t slot = name * tails_a_name_;
    if (is_slice) remember_tail(slot, category, event_);
    const size_t first = is_slice ? 0 : slices_.arguments.size();
    for (const Group& group : is_slice ? slice_groups_ : instant_groups_) {
        if (!group.concerns(index)) continue;
        for (size_t a = group.first; a < group.last; ++a) {
            add_argument(events.arguments[a], interned_values_[first + a], interned_arguments_[first + a], index);
        }
    }
    if (is_slice && word_ != nullptr) {
        if (const size_t word = carried(index); word != 0 && word != kMore) remember_tail(slot + word, category, event_);
    }
    add_flows(events, index, false);
    packet(events.begin[static_cast<size_t>(position)]);
}

void Encoder::remember_tail(size_t slot, int32_t category, std::span<const uint8_t> event) {
    Tail& tail = tails_[slot];
    if (event.size() > sizeof tail.bytes - kVarintRoom) return;
    uint8_t* p = tail.bytes;
    *p++ = tag(kSequenceId, Wire::varint);
    *p++ = kSequence;
    *p++ = tag(kTrackEvent, Wire::bytes);
    *p++ = static_cast<uint8_t>(event.size());
    p = std::copy(event.begin(), event.end(), p);
    tail.size = static_cast<uint32_t>(p - tail.bytes);
    tail.owner = turn_;
    tail.category = category;
}

// The packet of the event that was put together.
void Encoder::packet(int64_t ts) {
    if (ts < last_ts_) return fail(Status::bad_nesting);
    const auto delta = static_cast<uint64_t>(ts - last_ts_);
    last_ts_ = ts;
    event_.reserve(kStep);  // which `put_bytes` may read behind it
    const std::span<const uint8_t> event{event_.begin(), event_.size()};
    size_t size = 1 + varint_size(delta) + 2 + 1 + varint_size(event.size()) + event.size();
    if (!interned_.empty()) size += 1 + varint_size(interned_.size()) + interned_.size();
    ensure(size + kMaxPlainPacket);
    uint8_t* p = at_;
    *p++ = kPacketTag;
    p = put_varint(p, size);
    *p++ = kTimestampTag;
    p = put_varint(p, delta);
    *p++ = tag(kSequenceId, Wire::varint);
    *p++ = kSequence;
    if (!interned_.empty()) {
        *p++ = tag(kInternedData, Wire::bytes);
        p = put_varint(p, interned_.size());
        p = std::copy(interned_.begin(), interned_.end(), p);
    }
    *p++ = tag(kTrackEvent, Wire::bytes);
    p = put_varint(p, event.size());
    at_ = put_bytes(p, event.data(), event.size());
}

void Encoder::add_flows(const Events& events, int64_t index, bool at_end) {
    if (events.flow_first.empty()) return;
    const auto i = static_cast<size_t>(index);
    const size_t from = events.flow_first[i];
    const size_t to = events.flow_first[i + 1];
    if (from > to || to > events.flow_id.size()) return fail(Status::bad_index);
    for (size_t f = from; f < to; ++f) {
        const auto role = static_cast<FlowEnd>(events.flow_end[f]);
        if ((role == FlowEnd::enters_end) != at_end) continue;
        add_fixed64_field(event_, role == FlowEnd::leaves_begin ? kFlow : kTerminatingFlow,
                          events.flow_id[f] + flow_base_);
    }
}

void Encoder::add_argument(const Argument& argument, std::vector<Interned>& texts, Interned& name, int64_t index) {
    int64_t from = index - argument.base;
    if (!argument.first.empty()) {
        const auto k = static_cast<size_t>(from);
        const int64_t to = argument.first[k + 1];
        from = argument.first[k];
        if (!valid_range(from, to, argument.row.empty() ? argument.rows : argument.row.size())) return fail(Status::bad_index);
        if (to - from != 1) return add_rows(argument, texts, name, from, to);
    }
    Value value;
    if (!read_value(argument, texts, from, &value)) return;
    const uint32_t iid = intern(name, kArgumentNames, argument.name);
    if (static_cast<Wire>(value.tag & 7) == Wire::bytes) {
        element_.clear();
        add_varint_field(element_, kArgumentNameIid, iid);
        add_bytes_field(element_, value.tag >> 3, value.bytes);
        return add_bytes_field(event_, kArgument, element_);
    }
    uint8_t* const head = event_.reserve(kArgumentRoom);
    uint8_t* p = head + 2;
    *p++ = tag(kArgumentNameIid, Wire::varint);
    p = put_value(put_varint(p, iid), value.tag, value.bits);
    head[0] = tag(kArgument, Wire::bytes);
    head[1] = static_cast<uint8_t>(p - head - 2);  // below 128, as the room is
    event_.advance(p);
}

// Readers keep one value a name, so several rows of a table become an array.
void Encoder::add_rows(const Argument& argument, std::vector<Interned>& texts, Interned& name, int64_t from, int64_t to) {
    argument_.clear();
    for (int64_t position = from; position < to; ++position) {
        Value value;
        if (!read_value(argument, texts, position, &value)) continue;
        element_.clear();
        if (static_cast<Wire>(value.tag & 7) == Wire::bytes) {
            add_bytes_field(element_, value.tag >> 3, value.bytes);
        } else {
            element_.advance(put_value(element_.reserve(kArgumentRoom), value.tag, value.bits));
        }
        add_bytes_field(argument_, kArray, element_);
    }
    if (argument_.empty()) return;
    element_.clear();
    add_varint_field(element_, kArgumentNameIid, intern(name, kArgumentNames, argument.name));
    element_.append(argument_);
    add_bytes_field(event_, kArgument, element_);
}

// The value of an argument at a position; false: it is not known.
bool Encoder::read_value(const Argument& argument, std::vector<Interned>& texts, int64_t position, Value* out) {
    const int64_t row = argument.row.empty() ? position : argument.row[static_cast<size_t>(position)];
    if (outside(row, argument.rows)) {
        fail(Status::bad_index);
        return false;
    }
    const auto i = static_cast<size_t>(row);
    if (!argument.known.empty() && argument.known[i] == 0) return false;
    const auto read = [&]<class T>(T) { return static_cast<const T*>(argument.values)[i]; };
    const auto as_signed = [&](int64_t value) { *out = {tag(kSigned, Wire::varint), static_cast<uint64_t>(value), {}}; };
    const auto as_unsigned = [&](uint64_t value) { *out = {tag(kUnsigned, Wire::varint), value, {}}; };
    switch (argument.type) {
        case ValueType::i64: as_signed(read(int64_t{})); break;
        case ValueType::i32: as_signed(read(int32_t{})); break;
        case ValueType::u64: as_unsigned(read(uint64_t{})); break;
        case ValueType::u32: as_unsigned(read(uint32_t{})); break;
        case ValueType::u16: as_unsigned(read(uint16_t{})); break;
        case ValueType::u8: as_unsigned(read(uint8_t{})); break;
        case ValueType::f64: *out = {tag(kDouble, Wire::fixed64), std::bit_cast<uint64_t>(read(double{})), {}}; break;
        case ValueType::boolean: *out = {tag(kBool, Wire::varint), read(uint8_t{}) != 0 ? uint64_t{1} : 0, {}}; break;
        case ValueType::text: {
            const auto code = static_cast<size_t>(read(int32_t{}));
            if (code >= argument.texts.size()) {
                fail(Status::bad_index);
                return false;
            }
            *out = {tag(kStringIid, Wire::varint), intern(texts[code], kArgumentTexts, argument.texts[code]), {}};
            break;
        }
        case ValueType::utf8: *out = {tag(kString, Wire::bytes), 0, argument.texts[i]}; break;
    }
    return true;
}

// Return the id of a text in this turn; the first time it goes out with the packet that uses it.
uint32_t Encoder::intern(Interned& entry, uint32_t field, std::span<const uint8_t> text) {
    if (entry.owner == turn_) return entry.iid;
    uint32_t& next = next_iid_[field == kArgumentTexts ? 0 : field];
    entry = {turn_, ++next};
    entry_.clear();
    add_varint_field(entry_, kIid, entry.iid);
    add_bytes_field(entry_, kText, text);
    add_bytes_field(interned_, field, entry_);
    return entry.iid;
}

}  // namespace lanescope::perfetto
