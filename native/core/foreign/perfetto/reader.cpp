#include "core/foreign/perfetto/reader.hpp"

#include <algorithm>

#include "core/foreign/perfetto/fields.hpp"

namespace lanescope::foreign_perfetto {

namespace {

// What lanescope says of a trace of its own, in a packet of another data source.
bool is_of_lanescope(ByteSpan bundle) {
    Fields entries(bundle);
    Field entry, name;
    if (!entries.next(entry) || entry.number != kBundleMetadata || !entry.is_bytes()) return false;
    Fields fields(entry.bytes);
    return fields.next(name) && name.number == kMetadataName && name.is_bytes() && text_of(name.bytes).starts_with("lanescope.");
}

}  // namespace

// What is found in a packet. Its parts take effect in an order of their own, whatever the order of the fields.
struct Reader::Parts {
    bool has_ts = false, has_clock = false, is_cleared = false;
    uint64_t ts = 0;
    uint32_t clock = 0;
    uint32_t sequence = 0;
    uint64_t flags = 0;
    uint64_t dropped = 0;
    bool has_event = false, has_defaults = false, has_interned = false, has_snapshot = false;
    ByteSpan event, defaults, interned, snapshot, packed, message;
    uint32_t packed_field = 0;
    uint32_t message_field = 0;
    uint32_t other = 0;  // the field of another data source
};

void Reader::expect(uint64_t bytes) {
    // Two packets make a slice, and few are shorter than 12 bytes.
    const auto count = static_cast<size_t>(bytes / 24);
    if (!keeps_events_) return pairs.expect(count);
    events.ts.expect(2 * count);
    events.clock.expect(2 * count);
    events.track.expect(2 * count);
    events.type.expect(2 * count);
    events.name.expect(2 * count);
    events.category.expect(2 * count);
}

void Reader::note(Fault fault, int64_t count) {
    Found& found = faults[static_cast<size_t>(fault)];
    if (found.count == 0) found.offset = static_cast<int64_t>(offset_);
    found.count += count;
}

Reader::Kind Reader::fail(Fault fault) {
    note(fault);
    return Kind::lost;
}

void Reader::lose(uint64_t offset, uint64_t size) {
    if (size == 0) return;
    lost += size;
    if (!bad.offset.empty() && static_cast<uint64_t>(bad.offset.back() + bad.size.back()) == offset) {
        bad.size.back() += static_cast<int64_t>(size);
    } else {
        bad.offset.push_back(static_cast<int64_t>(offset));
        bad.size.push_back(static_cast<int64_t>(size));
    }
}

// --- framing ---------------------------------------------------------------------------------------------------------

size_t Reader::scan(ByteSpan data, size_t at, uint64_t offset, bool is_last) {
    packed_ = {};
    const uint8_t* const begin = data.data();
    const uint8_t* const end = begin + data.size();
    while (at < data.size()) {
        if (is_searching_) {
            at = search(data, at, offset, is_last);
            if (is_searching_) return at;
            continue;
        }
        const uint8_t* p = begin + at;
        offset_ = offset + at;
        if (*p != kPacketTag) {
            is_searching_ = skips_first_ = true;
            continue;
        }
        ++p;
        uint64_t size = 0;
        const bool has_size = read_varint(p, end, size);
        if (!has_size && end - begin - static_cast<ptrdiff_t>(at) > 10) {
            is_searching_ = skips_first_ = true;
            continue;
        }
        const auto left = static_cast<uint64_t>(end - p);
        if (has_size && size > kMaxPacket) {
            is_searching_ = skips_first_ = true;
            continue;
        }
        if (!has_size || size > left) {
            if (!is_last) return at;
            // The last packet is cut; or its length is damaged, and there are others behind it.
            truncated_at = static_cast<int64_t>(offset_);
            is_searching_ = skips_first_ = true;
            continue;
        }
        const ByteSpan body{p, static_cast<size_t>(size)};
        const size_t next = static_cast<size_t>(p - begin) + body.size();
        const uint64_t whole = next - at;
        if (const Plain found = plain_event(body, end); found != Plain::no) {
            (found == Plain::lost ? lost : decoded) += whole;
            at = next;
            continue;
        }
        Parts parts;
        const bool is_sound = parse(body, parts);
        if (!is_sound && next == data.size() && !is_last) return at;
        if (!is_sound && next < data.size() && data[next] != kPacketTag) {
            // Nor does a packet follow it: its length is none.
            is_searching_ = skips_first_ = true;
            continue;
        }
        switch (is_sound ? packet(body, parts, false) : fail(Fault::invalid)) {
            case Kind::read: decoded += whole; break;
            case Kind::other: padding += whole; break;
            case Kind::packed:
                packed_size_ = whole;
                return next;
            case Kind::lost: lost += whole; break;
        }
        at = next;
    }
    if (is_last && truncated_at >= 0 && !is_searching_) truncated_at = -1;
    return at;
}

// Go on to the next bytes that are a packet beyond doubt; what is left out is lost. Where more bytes are needed to tell,
// return the place from which they are.
size_t Reader::search(ByteSpan data, size_t at, uint64_t offset, bool is_last) {
    const size_t from = at;
    const uint8_t* const begin = data.data();
    const uint8_t* const end = begin + data.size();
    for (size_t place = at + (skips_first_ ? 1 : 0); place < data.size(); ++place) {
        if (begin[place] != kPacketTag) continue;
        const uint8_t* p = begin + place + 1;
        uint64_t size = 0;
        const bool has_size = read_varint(p, end, size);
        const auto left = static_cast<uint64_t>(end - p);
        bool is_short = !has_size && end - begin - static_cast<ptrdiff_t>(place) <= 10;
        if (has_size && (size == 0 || size > kMaxSearched)) continue;
        // The byte behind it is looked at, too.
        is_short = is_short || (has_size && size >= left && !(is_last && size == left));
        if (is_short) {
            if (is_last) continue;
            lose(offset + from, place - from);
            skips_first_ = false;  // it is looked at again
            return place;
        }
        if (!has_size) continue;
        const ByteSpan body{p, static_cast<size_t>(size)};
        Parts parts;
        if ((body.data() + body.size() == end || body.data()[body.size()] == kPacketTag) && parse(body, parts) &&
            (parts.sequence != 0 || parts.packed_field != 0)) {
            lose(offset + from, place - from);
            is_searching_ = false;
            if (truncated_at >= 0) truncated_at = -1;
            return place;
        }
    }
    lose(offset + from, data.size() - from);
    skips_first_ = false;
    return data.size();
}

void Reader::unpacked(ByteSpan content) {
    packed_ = {};
    uint64_t good = 0, bad_bytes = 0;
    size_t at = 0;
    const uint8_t* const end = content.data() + content.size();
    while (at < content.size()) {
        const uint8_t* p = content.data() + at;
        uint64_t size = 0;
        if (*p++ != kPacketTag || !read_varint(p, end, size) || size > static_cast<uint64_t>(end - p)) {
            note(Fault::compressed);
            bad_bytes += content.size() - at;
            break;
        }
        const ByteSpan body{p, static_cast<size_t>(size)};
        const size_t next = static_cast<size_t>(p - content.data()) + body.size();
        if (const Plain found = plain_event(body, end); found != Plain::no) {
            (found == Plain::lost ? bad_bytes : good) += next - at;
            at = next;
            continue;
        }
        Parts parts;
        const Kind kind = parse(body, parts) ? packet(body, parts, true) : fail(Fault::invalid);
        (kind == Kind::lost ? bad_bytes : good) += next - at;
        at = next;
    }
    // Of the bytes in the file, the share that was lost inside.
    const uint64_t all = good + bad_bytes;
    const uint64_t share = all == 0 ? 0 : std::min<uint64_t>(packed_size_, static_cast<uint64_t>(
        static_cast<double>(packed_size_) * static_cast<double>(bad_bytes) / static_cast<double>(all) + (bad_bytes != 0 ? 1 : 0)));
    lost += share;
    decoded += packed_size_ - share;
}

void Reader::not_unpacked(bool is_counted_elsewhere) {
    packed_ = {};
    if (!is_counted_elsewhere) note(Fault::compressed);
    lost += packed_size_;
}

// --- packets ---------------------------------------------------------------------------------------------------------

bool Reader::parse(ByteSpan body, Parts& parts) const {
    Fields fields(body);
    Field field;
    while (fields.next(field)) {
        switch (field.number) {
            case kTimestamp:
                if (!field.is_varint()) return false;
                parts.has_ts = true;
                parts.ts = field.value;
                break;
            case kSequenceId:
                if (!field.is_varint()) return false;
                parts.sequence = static_cast<uint32_t>(field.value);
                break;
            case kTrackEvent:
                if (!field.is_bytes()) return false;
                parts.has_event = true;
                parts.event = field.bytes;
                break;
            case kSequenceFlags:
                if (!field.is_varint()) return false;
                parts.flags |= field.value;
                break;
            case kInternedData:
                if (!field.is_bytes()) return false;
                parts.has_interned = true;
                parts.interned = field.bytes;
                break;
            case kPacketClock:
                if (!field.is_varint()) return false;
                parts.has_clock = true;
                parts.clock = static_cast<uint32_t>(field.value);
                break;
            case kStateCleared:
                if (!field.is_varint()) return false;
                parts.is_cleared = field.value != 0;
                break;
            case kPacketDropped:
                if (!field.is_varint()) return false;
                parts.dropped = field.value;
                break;
            case kDefaults:
                if (!field.is_bytes()) return false;
                parts.has_defaults = true;
                parts.defaults = field.bytes;
                break;
            case kClockSnapshot:
                if (!field.is_bytes()) return false;
                parts.has_snapshot = true;
                parts.snapshot = field.bytes;
                break;
            case kCompressed:
            case kZstdCompressed:
                if (!field.is_bytes()) return false;
                parts.packed = field.bytes;
                parts.packed_field = field.number;
                break;
            case kProcessDescriptor:
            case kThreadDescriptor:
            case kTrackDescriptor:
            case kTraceStats:
                if (!field.is_bytes()) return false;
                parts.message = field.bytes;
                parts.message_field = field.number;
                break;
            case kChromeEvents:
                if (field.is_bytes() && is_of_lanescope(field.bytes)) {
                    parts.message = field.bytes;
                    parts.message_field = field.number;
                } else {
                    parts.other = field.number;
                }
                break;
            case kTrustedUid:
            case kTrustedPid:
            case kFirstPacket:
            case kMachineId: break;  // who wrote it
            default: parts.other = field.number; break;
        }
    }
    return fields.is_whole();
}

Reader::Kind Reader::packet(ByteSpan body, const Parts& parts, bool is_nested) {
    ++packets;
    if (parts.packed_field != 0) {
        if (is_nested) return fail(Fault::compressed);
        packed_ = parts.packed;
        packed_zstd_ = parts.packed_field == kZstdCompressed;
        return Kind::packed;
    }
    Sequence* const sequence = parts.sequence == 0 ? nullptr : &sequence_of(parts.sequence);
    bool is_faulty = false;
    if (sequence != nullptr) {
        if (parts.dropped != 0) {
            sequence->is_valid = false;
            lose_packet(*sequence, true);
        }
        if ((parts.flags & kCleared) != 0 || parts.is_cleared) {
            sequence->is_valid = true;
            sequence->generation = -1;
            sequence->series = -1;
            sequence->names.clear();
            sequence->categories.clear();
            sequence->correlations.clear();
            sequence->default_clock = 0;
            sequence->used = nullptr;
            sequence->has_default_track = false;
            sequence->default_number = -1;
            sequence->extra.clear();
            sequence->extra_double.clear();
        }
        if ((parts.flags & kNeedsState) != 0 && !sequence->is_valid) {
            lose_packet(*sequence, false);
            return fail(Fault::needs_state);
        }
        if (parts.has_defaults && !defaults(*sequence, parts.defaults)) return fail(Fault::invalid);
        if (parts.has_interned) {
            if (!sequence->is_valid) {
                note(Fault::stateless_text);
                is_faulty = true;
            } else if (!intern(*sequence, parts.interned)) {
                return fail(Fault::invalid);
            }
        }
    } else if (parts.has_interned || parts.has_defaults) {
        note(Fault::no_sequence);
        is_faulty = true;
    }
    if (parts.has_snapshot) {
        return snapshot(sequence, parts.snapshot) ? Kind::read : fail(Fault::invalid);
    }
    int64_t ts = 0;
    int32_t clock = 0;
    if (parts.has_ts) {
        const uint32_t id = parts.has_clock ? parts.clock : sequence != nullptr ? sequence->default_clock : 0;
        uint64_t value = parts.ts;
        if (id != 0) {
            // One without a reading so far counts in nanoseconds.
            Clock* found = sequence != nullptr && sequence->used != nullptr && sequence->used->id == id
                               ? sequence->used
                               : clock_of(sequence, id, true);
            if (found != nullptr) {
                if (sequence != nullptr) sequence->used = found;
                value *= found->multiplier;
                if (found->is_incremental) value = found->last += value;
                clock = found->number;
            } else {
                clock = clock_number(id >= kFirstOwnClock && id <= kLastOwnClock ? parts.sequence : 0, id);
            }
        }
        ts = static_cast<int64_t>(value);
    }
    if (parts.message_field != 0) {
        message(static_cast<int32_t>(parts.message_field), parts.sequence, parts.message);
        if (parts.message_field == kThreadDescriptor && sequence != nullptr && !thread(*sequence, parts.message)) {
            return fail(Fault::invalid);
        }
    }
    if (parts.has_event) {
        if (sequence == nullptr) return fail(Fault::no_sequence);
        return event(*sequence, parts.event, parts.has_ts, ts, clock);
    }
    if (is_faulty) return Kind::lost;
    if (parts.other != 0) {
        auto& [count, bytes] = other[parts.other];
        ++count;
        bytes += static_cast<int64_t>(body.size());
        return Kind::other;
    }
    return Kind::read;
}

Reader::Sequence& Reader::sequence_of(uint32_t id) {
    if (Sequence* const known = known_sequence(id); known != nullptr) return *known;
    auto& found = sequences_[id];
    if (found == nullptr) {
        found = std::make_unique<Sequence>();
        found->id = id;
    }
    if (id < kMostListed) {
        if (id >= sequence_by_id_.size()) sequence_by_id_.resize(id + size_t{1}, nullptr);
        sequence_by_id_[id] = found.get();
    }
    return *found;
}

void Reader::lose_packet(Sequence& sequence, bool is_dropped) {
    if (sequence.open_loss < 0) {
        sequence.open_loss = static_cast<int64_t>(losses.sequence.size());
        losses.sequence.push_back(sequence.id);
        losses.packets.push_back(0);
        losses.dropped.push_back(0);
        losses.offset.push_back(static_cast<int64_t>(offset_));
        losses.before.push_back(sequence.last_ts);
        losses.before_clock.push_back(sequence.last_clock);
        losses.after.push_back(0);
        losses.after_clock.push_back(-1);
    }
    ++(is_dropped ? losses.dropped : losses.packets)[static_cast<size_t>(sequence.open_loss)];
}

void Reader::message(int32_t field, uint32_t sequence, ByteSpan body) {
    messages.field.push_back(field);
    messages.sequence.push_back(sequence);
    messages.offset.push_back(static_cast<int64_t>(message_bytes.size()));
    messages.size.push_back(static_cast<int64_t>(body.size()));
    message_bytes.insert(message_bytes.end(), body.begin(), body.end());
}

// --- clocks ----------------------------------------------------------------------------------------------------------

int32_t Reader::clock_number(uint32_t sequence, uint32_t id) {
    const auto [place, is_new] = clock_numbers_.try_emplace({sequence, id}, static_cast<int32_t>(clocks.id.size() + 1));
    if (is_new) {
        clocks.id.push_back(id);
        clocks.sequence.push_back(sequence);
    }
    return place->second;
}

Reader::Clock* Reader::clock_of(Sequence* sequence, uint32_t id, bool is_made) {
    const bool is_own = id >= kFirstOwnClock && id <= kLastOwnClock;
    if (is_own && sequence == nullptr) return nullptr;
    auto& known = is_own ? sequence->clocks : global_clocks_;
    for (const auto& each : known) {
        if (each->id == id) return each.get();
    }
    if (!is_made) return nullptr;
    known.push_back(std::make_unique<Clock>());
    known.back()->id = id;
    known.back()->number = clock_number(is_own ? sequence->id : 0, id);
    return known.back().get();
}

bool Reader::snapshot(Sequence* sequence, ByteSpan body) {
    Fields fields(body);
    Field field;
    const int64_t number = snapshot_count_++;
    const size_t mark = snapshots.number.size();
    const auto undo = [&] {
        snapshots.number.resize(mark);
        snapshots.clock.resize(mark);
        snapshots.ts.resize(mark);
        return false;
    };
    while (fields.next(field)) {
        if (field.number == kPrimaryClock && field.is_varint()) primary_clock = static_cast<uint32_t>(field.value);
        if (field.number != kClockReading) continue;
        if (!field.is_bytes()) return undo();
        Fields parts(field.bytes);
        Field part;
        uint64_t id = 0, ts = 0, multiplier = 1;
        bool is_incremental = false;
        while (parts.next(part)) {
            if (part.number <= 4 && !part.is_varint()) return undo();
            if (part.number == 1) id = part.value;
            if (part.number == 2) ts = part.value;
            if (part.number == 3) is_incremental = part.value != 0;
            if (part.number == 4) multiplier = part.value;
        }
        if (!parts.is_whole()) return undo();
        if (id == 0 || id > UINT32_MAX) continue;
        // Only clocks of a sequence count in steps, or in other units.
        if ((is_incremental || multiplier > 1) && (id < kFirstOwnClock || id > kLastOwnClock)) return undo();
        Clock* const clock = clock_of(sequence, static_cast<uint32_t>(id), true);
        if (clock == nullptr) {  // of a sequence, and there is none
            note(Fault::no_sequence);
            continue;
        }
        clock->is_incremental = is_incremental;
        clock->multiplier = multiplier == 0 ? 1 : multiplier;
        clock->last = ts * clock->multiplier;
        snapshots.number.push_back(number);
        snapshots.clock.push_back(clock->number);
        snapshots.ts.push_back(static_cast<int64_t>(clock->last));
    }
    return fields.is_whole() || undo();
}

}  // namespace lanescope::foreign_perfetto
