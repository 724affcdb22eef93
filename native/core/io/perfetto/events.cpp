// The packets of single events: with flows, arguments and texts that are new to the sequence.
#include <algorithm>

#include "core/io/perfetto/encoder.hpp"
#include "core/io/perfetto/fields.hpp"

namespace lanescope::perfetto {

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
        category = events.category[i];
        const auto code = static_cast<size_t>(category);
        if (code >= categories_.size()) return fail(Status::bad_index);
        if (const auto text = categories_[code]; !text.empty()) {
            add_varint_field(event_, kCategoryIid, intern(interned_categories_[code], kCategories, text));
        }
    }
    const size_t slot = name * tails_a_name_;
    if (is_slice) remember_tail(slot, category, event_);
    const size_t first = is_slice ? 0 : slices_.arguments.size();
    for (size_t a = 0; a < events.arguments.size(); ++a) {
        add_argument(events.arguments[a], interned_values_[first + a], interned_arguments_[first + a], index);
    }
    if (is_slice && word_ != nullptr) {
        if (const size_t word = carried(index); word != 0 && word != kMore) remember_tail(slot + word, category, event_);
    }
    add_flows(events, index, false);
    packet(events.begin[static_cast<size_t>(position)], event_);
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

void Encoder::packet(int64_t ts, std::span<const uint8_t> event) {
    if (ts < last_ts_) return fail(Status::bad_nesting);
    const auto delta = static_cast<uint64_t>(ts - last_ts_);
    last_ts_ = ts;
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
    at_ = std::copy(event.begin(), event.end(), p);
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
    const int64_t k = index - argument.base;
    if (k < 0 || k >= argument.count) return;
    int64_t from = k;
    int64_t to = k + 1;
    if (!argument.first.empty()) {
        from = argument.first[static_cast<size_t>(k)];
        to = argument.first[static_cast<size_t>(k) + 1];
        if (!valid_range(from, to, argument.row.empty() ? argument.rows : argument.row.size())) return fail(Status::bad_index);
    }
    argument_.clear();
    if (to - from == 1) {
        if (!add_value(argument, texts, from, argument_)) return;
    } else {  // readers keep one value a name, so several rows of a table become an array
        for (int64_t position = from; position < to; ++position) {
            element_.clear();
            if (add_value(argument, texts, position, element_)) add_bytes_field(argument_, kArray, element_);
        }
        if (argument_.empty()) return;
    }
    element_.clear();
    add_varint_field(element_, kArgumentNameIid, intern(name, kArgumentNames, argument.name));
    add_varint(event_, tag(kArgument, Wire::bytes));
    add_varint(event_, element_.size() + argument_.size());
    event_.append(element_);
    event_.append(argument_);
}

bool Encoder::add_value(const Argument& argument, std::vector<Interned>& texts, int64_t position, Bytes& out) {
    const int64_t row = argument.row.empty() ? position : argument.row[static_cast<size_t>(position)];
    if (outside(row, argument.rows)) {
        fail(Status::bad_index);
        return false;
    }
    const auto i = static_cast<size_t>(row);
    if (!argument.known.empty() && argument.known[i] == 0) return false;
    const auto read = [&]<class T>(T) { return static_cast<const T*>(argument.values)[i]; };
    const auto as_signed = [&](int64_t value) { add_varint_field(out, kSigned, static_cast<uint64_t>(value)); };
    const auto as_unsigned = [&](uint64_t value) { add_varint_field(out, kUnsigned, value); };
    switch (argument.type) {
        case ValueType::i64: as_signed(read(int64_t{})); break;
        case ValueType::i32: as_signed(read(int32_t{})); break;
        case ValueType::u64: as_unsigned(read(uint64_t{})); break;
        case ValueType::u32: as_unsigned(read(uint32_t{})); break;
        case ValueType::u16: as_unsigned(read(uint16_t{})); break;
        case ValueType::u8: as_unsigned(read(uint8_t{})); break;
        case ValueType::f64: add_fixed64_field(out, kDouble, std::bit_cast<uint64_t>(read(double{}))); break;
        case ValueType::boolean: add_varint_field(out, kBool, read(uint8_t{}) != 0 ? 1 : 0); break;
        case ValueType::text: {
            const auto code = static_cast<size_t>(read(int32_t{}));
            if (code >= argument.texts.size()) {
                fail(Status::bad_index);
                return false;
            }
            add_varint_field(out, kStringIid, intern(texts[code], kArgumentTexts, argument.texts[code]));
            break;
        }
        case ValueType::utf8: add_bytes_field(out, kString, argument.texts[i]); break;
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
