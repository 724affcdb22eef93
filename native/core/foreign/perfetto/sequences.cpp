// What the packets of one sequence share: texts by id, defaults, the thread that writes it, numbers of tracks.
#include <algorithm>

#include "core/foreign/perfetto/fields.hpp"
#include "core/foreign/perfetto/reader.hpp"

namespace lanescope::foreign_perfetto {

bool Reader::intern(Sequence& sequence, ByteSpan body) {
    Fields fields(body);
    Field field;
    while (fields.next(field)) {
        const uint32_t kind = field.number;
        if (kind != kCategories && kind != kNames && kind != kArgumentNames && kind != kArgumentTexts &&
            kind != kCorrelationTexts) {
            continue;  // what only other data sources use
        }
        if (!field.is_bytes()) return false;
        Fields parts(field.bytes);
        Field part;
        uint64_t iid = 0;
        ByteSpan text;
        while (parts.next(part)) {
            if (part.number == 1 && part.is_varint()) iid = part.value;
            if (part.number == 2 && part.is_bytes()) text = part.bytes;
        }
        if (!parts.is_whole()) return false;
        const int32_t code = (kind == kNames ? names : kind == kCategories ? categories : texts).code(text_of(text));
        bool is_first = true;
        if (kind == kArgumentNames || kind == kArgumentTexts) {
            if (sequence.generation < 0) {
                sequence.generation = static_cast<int32_t>(generations.size());
                generations.emplace_back();
            }
            Generation& generation = generations[static_cast<size_t>(sequence.generation)];
            is_first = (kind == kArgumentNames ? generation.names : generation.values).add(iid, code);
        } else {
            Ids& ids = kind == kNames ? sequence.names : kind == kCategories ? sequence.categories : sequence.correlations;
            is_first = ids.add(iid, code);
        }
        if (!is_first) note(Fault::redefined_text);
    }
    return fields.is_whole();
}

bool Reader::defaults(Sequence& sequence, ByteSpan body) {
    sequence.default_clock = 0;
    sequence.used = nullptr;
    sequence.has_default_track = false;
    sequence.default_number = -1;
    sequence.extra.clear();
    sequence.extra_double.clear();
    Fields fields(body);
    Field field;
    while (fields.next(field)) {
        if (field.number == kDefaultClock && field.is_varint()) sequence.default_clock = static_cast<uint32_t>(field.value);
        if (field.number != kDefaultEvent) continue;
        if (!field.is_bytes()) return false;
        Fields parts(field.bytes);
        Field part;
        while (parts.next(part)) {
            if (!part.is_varint()) continue;
            if (part.number == kTrackUuid) {
                sequence.has_default_track = true;
                sequence.default_track = part.value;
            }
            if (part.number == kExtraTracks) sequence.extra.push_back(part.value);
            if (part.number == kExtraDoubleTracks) sequence.extra_double.push_back(part.value);
        }
        if (!parts.is_whole()) return false;
    }
    return fields.is_whole();
}

// The older descriptor of the thread that writes a sequence: the times of its events count on from its own.
bool Reader::thread(Sequence& sequence, ByteSpan body) {
    Fields fields(body);
    Field field;
    while (fields.next(field)) {
        if (field.number == kReferenceTime && field.is_varint()) {
            sequence.delta_ns = static_cast<int64_t>(field.value * 1000);
            sequence.has_delta = true;
        }
    }
    return fields.is_whole();
}

void Reader::use_other_clock(int32_t clock) {
    last_clock_ = clock;
    if (std::find(used_clocks.begin(), used_clocks.end(), clock) == used_clocks.end()) used_clocks.push_back(clock);
}

int32_t Reader::track_of_uuid(uint64_t uuid) {
    const auto [place, is_new] = track_numbers_.try_emplace(uuid, static_cast<int32_t>(tracks.uuid.size()));
    if (is_new) {
        tracks.uuid.push_back(uuid);
        tracks.sequence.push_back(0);
    }
    return place->second;
}

int32_t Reader::track_number(Sequence& sequence, bool has_uuid, uint64_t uuid) {
    if (!has_uuid && sequence.has_default_track) {
        if (sequence.default_number < 0 && sequence.default_track != 0) {
            sequence.default_number = track_of_uuid(sequence.default_track);
        }
        if (sequence.default_number >= 0) return sequence.default_number;
        uuid = sequence.default_track;
    }
    if (uuid == 0) {
        if (sequence.own_track < 0) {
            sequence.own_track = static_cast<int32_t>(tracks.uuid.size());
            tracks.uuid.push_back(0);
            tracks.sequence.push_back(sequence.id);
        }
        return sequence.own_track;
    }
    const size_t place = static_cast<size_t>(uuid * 0x9E37'79B9'7F4A'7C15u >> 59);
    static_assert(Sequence::kRecent == 32);
    if (sequence.recent[place] != uuid) {  // that of no track is 0
        sequence.recent[place] = uuid;
        sequence.recent_number[place] = track_of_uuid(uuid);
    }
    return sequence.recent_number[place];
}

}  // namespace lanescope::foreign_perfetto
