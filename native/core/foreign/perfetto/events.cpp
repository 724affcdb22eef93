// Events of tracks: one message each.
#include <algorithm>

#include "core/foreign/perfetto/fields.hpp"
#include "core/foreign/perfetto/reader.hpp"

namespace lanescope::foreign_perfetto {

// The older form of an event, inside of the newer one.
struct Reader::OldParts {
    uint64_t name_iid = 0;
    int32_t phase = 0;
    int64_t dur = -1;
    uint64_t id = 0;
    uint8_t id_kind = 0;
    ByteSpan scope;
    bool has_scope = false;
    uint64_t bind_id = 0;
    uint8_t flow = 0;
    int64_t pid = -1, tid = -1;
};

// How long the columns were before an event, so that half of one leaves nothing behind.
struct Reader::Marks {
    size_t arena, flows;
};

bool Reader::old_event(ByteSpan body, OldParts& parts) const {
    Fields fields(body);
    Field field;
    while (fields.next(field)) {
        if (field.number == kIdScope) {
            if (!field.is_bytes()) return false;
            parts.scope = field.bytes;
            parts.has_scope = true;
            continue;
        }
        if (!field.is_varint()) continue;
        const uint64_t value = field.value;
        switch (field.number) {
            case kLegacyNameIid: parts.name_iid = value; break;
            case kPhase: parts.phase = static_cast<int32_t>(value); break;
            case kDurationUs: parts.dur = static_cast<int64_t>(value * 1000); break;
            case kUnscopedId: parts.id = value; parts.id_kind = 1; break;
            case kLocalId: parts.id = value; parts.id_kind = 2; break;
            case kGlobalId: parts.id = value; parts.id_kind = 3; break;
            case kBindId: parts.bind_id = value; break;
            case kBindEnclosing: parts.flow |= value != 0 ? 4 : 0; break;
            case kFlowDirection: parts.flow |= static_cast<uint8_t>(value & 3); break;
            case kPidOverride: parts.pid = static_cast<int32_t>(value); break;
            case kTidOverride: parts.tid = static_cast<int32_t>(value); break;
            default: break;
        }
    }
    return fields.is_whole();
}

void Reader::sample(Sequence& sequence, int64_t ts, int32_t clock, int32_t track, uint64_t bits, bool is_double) {
    if (sequence.series < 0) sequence.series = series_count_++;
    samples.ts.push_back(ts);
    samples.clock.push_back(clock);
    samples.track.push_back(track);
    samples.bits.push_back(bits);
    samples.is_double.push_back(is_double ? 1 : 0);
    samples.series.push_back(sequence.series);
}

Reader::Kind Reader::event(Sequence& sequence, ByteSpan body, bool has_ts, int64_t ts, int32_t clock) {
    const Marks marks{arena.size(), flows.event.size()};
    const auto number = static_cast<int64_t>(events.ts.size());
    const auto undo = [&](Fault fault) {
        arena.resize(marks.arena);
        flows.event.resize(marks.flows);
        flows.id.resize(marks.flows);
        flows.role.resize(marks.flows);
        return fail(fault);
    };
    uint64_t type = 0;
    int32_t name = -1;
    int32_t category = -1;
    bool is_joined = false;
    bool has_uuid = false, has_old = false, has_delta = false, has_absolute = false;
    uint64_t uuid = 0;
    int64_t delta = 0;
    bool has_value = false, is_double = false;
    uint64_t bits = 0;
    bool has_correlation = false;
    uint64_t correlation = 0;
    int32_t correlation_text = -1;
    int64_t unknown = 0;
    OldParts old;
    std::vector<uint64_t>* extra_tracks = nullptr;
    std::vector<uint64_t> own_extra, own_extra_double, extra_values, extra_doubles;
    const auto add_category = [&](int32_t code) {
        if (category < 0) {
            category = code;
            return;
        }
        if (!is_joined) joined_.assign(texts[static_cast<size_t>(category)]);
        is_joined = true;
        joined_ += ',';
        joined_ += texts[static_cast<size_t>(code)];
    };
    Fields fields(body);
    Field field;
    while (fields.next(field)) {
        switch (field.number) {
            case kType:
                if (!field.is_varint()) return undo(Fault::invalid);
                type = field.value;
                break;
            case kNameIid:
                if (!field.is_varint()) return undo(Fault::invalid);
                if (name < 0 && field.value != 0) {
                    name = sequence.names.find(field.value);
                    unknown += name < 0;
                }
                break;
            case kName:
                if (!field.is_bytes()) return undo(Fault::invalid);
                name = texts.code(text_of(field.bytes));
                break;
            case kCategoryIid:
                if (!field.is_varint()) return undo(Fault::invalid);
                if (const int32_t code = sequence.categories.find(field.value); code >= 0) {
                    add_category(code);
                } else {
                    ++unknown;
                }
                break;
            case kCategory:
                if (!field.is_bytes()) return undo(Fault::invalid);
                add_category(texts.code(text_of(field.bytes)));
                break;
            case kTrackUuid:
                if (!field.is_varint()) return undo(Fault::invalid);
                has_uuid = true;
                uuid = field.value;
                break;
            case kAnnotation: {
                if (!field.is_bytes()) return undo(Fault::invalid);
                uint8_t head[10];
                size_t used = 0;
                uint64_t size = field.bytes.size();
                for (; size >= 0x80; size >>= 7) head[used++] = static_cast<uint8_t>(size | 0x80);
                head[used++] = static_cast<uint8_t>(size);
                arena.insert(arena.end(), head, head + used);
                arena.insert(arena.end(), field.bytes.begin(), field.bytes.end());
                break;
            }
            case kCounterValue:
            case kDoubleCounterValue:
                if (field.number == kCounterValue ? !field.is_varint() : !field.is_fixed64()) return undo(Fault::invalid);
                has_value = true;
                is_double = field.number == kDoubleCounterValue;
                bits = field.value;
                break;
            case kFlow:
            case kTerminating:
            case kFlowOld:
            case kTerminatingOld:
                if (!field.is_fixed64() && !field.is_varint()) return undo(Fault::invalid);
                flows.event.push_back(number);
                flows.id.push_back(field.value);
                flows.role.push_back(field.number == kTerminating || field.number == kTerminatingOld ? 1 : 0);
                break;
            case kExtraTracks: own_extra.push_back(field.value); break;
            case kExtraValues: extra_values.push_back(field.value); break;
            case kExtraDoubleTracks: own_extra_double.push_back(field.value); break;
            case kExtraDoubleValues: extra_doubles.push_back(field.value); break;
            case kCorrelation:
                has_correlation = true;
                correlation = field.value;
                break;
            case kCorrelationText:
                if (!field.is_bytes()) return undo(Fault::invalid);
                has_correlation = true;
                correlation_text = texts.code(text_of(field.bytes));
                break;
            case kCorrelationIid:
                correlation_text = sequence.correlations.find(field.value);
                has_correlation = has_correlation || correlation_text >= 0;
                unknown += correlation_text < 0;
                break;
            case kDeltaUs:
                has_delta = true;
                delta = static_cast<int64_t>(field.value * 1000);
                break;
            case kAbsoluteUs:
                has_absolute = true;
                delta = static_cast<int64_t>(field.value * 1000);
                break;
            case kLegacyEvent:
                if (!field.is_bytes() || !old_event(field.bytes, old)) return undo(Fault::invalid);
                has_old = true;
                break;
            default: ++unread[field.number]; break;
        }
    }
    if (!fields.is_whole()) return undo(Fault::invalid);
    if (is_joined) category = texts.code(joined_);
    if (has_absolute) {
        ts = delta;
        sequence.delta_ns = ts;
        sequence.has_delta = true;
        clock = clock_number(0, kMonotonic);
    } else if (has_delta) {
        if (!sequence.has_delta) return undo(Fault::untimed);
        ts = sequence.delta_ns = static_cast<int64_t>(static_cast<uint64_t>(sequence.delta_ns) + static_cast<uint64_t>(delta));
        clock = clock_number(0, kMonotonic);
    } else if (!has_ts) {
        return undo(Fault::untimed);
    }
    if (has_old && name < 0 && old.name_iid != 0) {
        name = sequence.names.find(old.name_iid);
        unknown += name < 0;
    }
    const int32_t track = track_number(sequence, has_uuid, uuid);
    for (const bool doubles : {false, true}) {
        const auto& values = doubles ? extra_doubles : extra_values;
        if (values.empty()) continue;
        auto& own = doubles ? own_extra_double : own_extra;
        extra_tracks = !own.empty() ? &own : doubles ? &sequence.extra_double : &sequence.extra;
        const size_t paired = std::min(values.size(), extra_tracks->size());
        for (size_t i = 0; i < paired; ++i) sample(sequence, ts, clock, track_of_uuid((*extra_tracks)[i]), values[i], doubles);
        if (paired < values.size()) note(Fault::no_value, static_cast<int64_t>(values.size() - paired));
    }
    const bool is_counter = type == static_cast<uint64_t>(EventType::counter);
    if (is_counter) {
        if (!has_value) return undo(Fault::no_value);
        sample(sequence, ts, clock, track, bits, is_double);
        arena.resize(marks.arena);
        flows.event.resize(marks.flows);
        flows.id.resize(marks.flows);
        flows.role.resize(marks.flows);
        return Kind::read;
    }
    if (type == 0 && has_old) {
        switch (old.phase) {
            case 'B': case 'b': case 'S': type = static_cast<uint64_t>(EventType::begin); break;
            case 'E': case 'e': case 'F': type = static_cast<uint64_t>(EventType::end); break;
            case 'X': type = static_cast<uint64_t>(EventType::complete); break;
            case 'I': case 'i': case 'R': case 'n': case 'T': case 'p': case 's': case 't': case 'f':
                type = static_cast<uint64_t>(EventType::instant);
                break;
            default: break;
        }
    }
    const bool is_own_type = type >= 1 && type <= 6 && (type != 6 || (has_old && old.phase == 'X'));
    if (!is_own_type) {
        if (type == 0 && !has_old && (!extra_values.empty() || !extra_doubles.empty())) return Kind::read;
        return undo(Fault::untyped);
    }
    if (unknown != 0) note(Fault::unknown_text, unknown);
    events.ts.push_back(ts);
    events.clock.push_back(clock);
    events.track.push_back(track);
    events.type.push_back(static_cast<uint8_t>(type));
    events.name.push_back(name);
    events.category.push_back(category);
    if (arena.size() != marks.arena) {
        annotated.event.push_back(number);
        annotated.offset.push_back(marks.arena);
        annotated.size.push_back(arena.size() - marks.arena);
        annotated.generation.push_back(sequence.generation);
    }
    if (has_correlation) {
        correlations.event.push_back(number);
        correlations.number.push_back(correlation);
        correlations.text.push_back(correlation_text);
    }
    if (has_old) {
        legacy.event.push_back(number);
        legacy.phase.push_back(old.phase);
        legacy.dur.push_back(old.dur);
        legacy.id.push_back(old.id);
        legacy.id_kind.push_back(old.id_kind);
        legacy.scope.push_back(old.has_scope ? texts.code(text_of(old.scope)) : -1);
        legacy.bind_id.push_back(old.bind_id);
        legacy.flow.push_back(old.flow);
        legacy.pid.push_back(old.pid);
        legacy.tid.push_back(old.tid);
    }
    sequence.last_event = number;
    if (sequence.open_loss >= 0) {
        losses.after[static_cast<size_t>(sequence.open_loss)] = number;
        sequence.open_loss = -1;
    }
    return Kind::read;
}

}  // namespace lanescope::foreign_perfetto
