// Events of tracks: one message each.
#include <algorithm>
#include <optional>

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
    use_clock(clock);
    samples.ts.push_back(ts);
    samples.clock.push_back(clock);
    samples.track.push_back(track);
    samples.bits.push_back(bits);
    samples.is_double.push_back(is_double ? 1 : 0);
    samples.series.push_back(sequence.series);
}

[[gnu::always_inline]] inline int64_t Reader::add_event(Sequence& sequence, const Event& event) {
    use_clock(event.clock);
    sequence.last_ts = event.ts;
    sequence.last_clock = event.clock;
    if (sequence.open_loss >= 0) [[unlikely]] {
        const auto loss = static_cast<size_t>(sequence.open_loss);
        losses.after[loss] = event.ts;
        losses.after_clock[loss] = event.clock;
        sequence.open_loss = -1;
    }
    if (!keeps_events_) return pairs.add(event);
    events.ts.push_back(event.ts);
    events.clock.push_back(event.clock);
    events.track.push_back(event.track);
    events.type.push_back(static_cast<uint8_t>(event.type));
    events.name.push_back(event.name);
    events.category.push_back(event.category);
    return static_cast<int64_t>(events.ts.size()) - 1;
}

// The annotations of an event are in the arena, from `offset` on.
void Reader::annotate(const Sequence& sequence, int64_t event, size_t offset) {
    annotated.event.push_back(event);
    annotated.offset.push_back(offset);
    annotated.generation.push_back(sequence.generation);
    look_at(sequence, {arena.data() + offset, arena.size() - offset});
}

namespace {

// A tag of one or two bytes; 0 where it has more.
[[gnu::always_inline]] inline uint32_t quick_tag(const uint8_t*& p) {
    const uint32_t first = *p++;
    if (first < 0x80) [[likely]] return first;
    const uint32_t second = *p++;
    return second < 0x80 ? (first & 0x7F) | second << 7 : 0;
}

// The less frequent parts of an event.
struct Extras {
    const uint8_t* name = nullptr;
    const uint8_t* category = nullptr;
    const uint8_t* notes = nullptr;  // annotations that follow each other
    const uint8_t* notes_end = nullptr;
    size_t name_size = 0, category_size = 0;
    uint64_t correlation = 0, flow = 0;
    bool has_correlation = false, has_flow = false, is_terminating = false;

    // Read the value of a field that begins at `field`; return what follows it, null where it is none of these.
    [[gnu::noinline]] const uint8_t* read(uint32_t tag, const uint8_t* field, const uint8_t* p, const uint8_t* end) {
        if (tag == (kFlow << 3 | kFixed64) || tag == (kTerminating << 3 | kFixed64)) {
            if (has_flow || end - p < 8) return nullptr;
            std::memcpy(&flow, p, 8);
            has_flow = true;
            is_terminating = tag == (kTerminating << 3 | kFixed64);
            return p + 8;
        }
        uint64_t value = 0;
        if (!quick_varint(p, value) || p > end) return nullptr;
        if (tag == kCorrelation << 3) {
            correlation = value;
            has_correlation = true;
            return p;
        }
        if (value > static_cast<uint64_t>(end - p)) return nullptr;
        const auto size = static_cast<size_t>(value);
        switch (tag) {
            case kName << 3 | kBytes:
                name = p;
                name_size = size;
                break;
            case kCategory << 3 | kBytes:
                if (category != nullptr) return nullptr;
                category = p;
                category_size = size;
                break;
            case kAnnotation << 3 | kBytes:
                if (notes != nullptr && field != notes_end) return nullptr;
                if (notes == nullptr) notes = field;
                notes_end = p + size;
                break;
            default: return nullptr;
        }
        return p + size;
    }
};

}  // namespace

// The packet that most are: of a known sequence, with an event of the newer form that has a type, and whose parts come
// once; maybe with the texts that it is the first to use. Nothing is changed where it is another one.
Reader::Plain Reader::plain_event(ByteSpan body, const uint8_t* behind) {
    const uint8_t* p = body.data();
    const uint8_t* end = p + body.size();
    if (behind - end < kSlack) return Plain::no;
    uint64_t step = 0, id = 0, flags = 0, clock_id = 0, size = 0, texts_size = 0;
    bool has_ts = false, has_clock = false;
    const uint8_t* event = nullptr;
    const uint8_t* new_texts = nullptr;
    // Writers put fields in an order of their own, each always in the same one: tests one after another are foreseen.
    const auto is_next = [&](uint32_t tag) { return p < end && *p == tag && (++p, true); };
    const auto message = [&](const uint8_t*& found, uint64_t& bytes) {
        if (found != nullptr || !quick_varint(p, bytes) || p > end || bytes > static_cast<uint64_t>(end - p)) return false;
        found = p;
        p += bytes;
        return true;
    };
    while (p < end) {
        const uint8_t* const before = p;
        if (is_next(kTimestamp << 3)) {
            has_ts = true;
            if (!steady_varint(p, step)) return Plain::no;
        }
        if (is_next(kSequenceId << 3) && !quick_varint(p, id)) return Plain::no;
        if (is_next(kSequenceFlags << 3) && !quick_varint(p, flags)) return Plain::no;
        if (is_next(kInternedData << 3 | kBytes) && !message(new_texts, texts_size)) return Plain::no;
        if (is_next(kTrackEvent << 3 | kBytes) && !message(event, size)) return Plain::no;
        if (p == before) {
            if (quick_tag(p) != kPacketClock << 3) return Plain::no;
            has_clock = true;
            if (!quick_varint(p, clock_id)) return Plain::no;
        }
    }
    if (p != end) return Plain::no;
    if (event == nullptr || !has_ts) return Plain::no;
    Sequence* const sequence = known_sequence(id);
    if (sequence == nullptr || (flags != 0 && (flags != kNeedsState || !sequence->is_valid))) return Plain::no;
    if (!has_clock) clock_id = sequence->default_clock;
    Clock* const clock = clock_id == 0 ? nullptr : sequence->used;
    if (clock_id != 0 && (clock == nullptr || clock->id != clock_id)) return Plain::no;
    uint64_t type = 0, name_id = 0, category_id = 0, uuid = 0;
    bool has_uuid = false, has_category = false;
    std::optional<Extras> extras;  // hardly half of them have any
    end = event + size;
    if (size == 2 && event[0] == kType << 3) {  // the end of a slice
        type = event[1];
    } else {
        for (p = event; p < end;) {
            const uint8_t* const before = p;
            if (is_next(kType << 3) && !quick_varint(p, type)) return Plain::no;
            if (is_next(kNameIid << 3) && !quick_varint(p, name_id)) return Plain::no;
            if (is_next(kTrackUuid << 3)) {
                if (!quick_varint(p, uuid)) return Plain::no;
                has_uuid = true;
            }
            if (is_next(kCategoryIid << 3)) {
                if (has_category || !quick_varint(p, category_id)) return Plain::no;
                has_category = true;
            }
            if (p != before) continue;
            if (!extras) extras.emplace();
            const uint32_t tag = quick_tag(p);
            p = extras->read(tag, before, p, end);
            if (p == nullptr) return Plain::no;
        }
        if (p != end) return Plain::no;
    }
    if (type < 1 || type > 3) return Plain::no;
    if (extras && ((extras->name != nullptr && name_id != 0) || (extras->category != nullptr && has_category))) {
        return Plain::no;
    }
    if (new_texts != nullptr && !sequence->is_valid) return Plain::no;
    ++packets;
    if (new_texts != nullptr && !intern(*sequence, {new_texts, static_cast<size_t>(texts_size)})) {
        note(Fault::invalid);
        return Plain::lost;
    }
    int32_t name = -1, category = -1;
    int64_t unknown = 0;
    if (name_id != 0) unknown += (name = sequence->names.find(name_id)) < 0;
    if (has_category) unknown += (category = sequence->categories.find(category_id)) < 0;
    if (unknown != 0) [[unlikely]] note(Fault::unknown_text, unknown);
    if (extras) {
        if (extras->name != nullptr) name = names.code(text_of({extras->name, extras->name_size}));
        if (extras->category != nullptr) category = categories.code(text_of({extras->category, extras->category_size}));
    }
    uint64_t ts = step;
    if (clock != nullptr) {
        ts *= clock->multiplier;
        if (clock->is_incremental) ts = clock->last += ts;
    }
    const int32_t track = !has_uuid && sequence->default_number >= 0 ? sequence->default_number
                                                                     : track_number(*sequence, has_uuid, uuid);
    const int64_t place = add_event(*sequence, {static_cast<int64_t>(ts), clock == nullptr ? 0 : clock->number, track, name,
                                                category, static_cast<EventType>(type)});
    if (!extras) return Plain::read;
    if (extras->notes != nullptr) {
        const size_t offset = arena.size();
        arena.append_slack(extras->notes, static_cast<size_t>(extras->notes_end - extras->notes));
        annotate(*sequence, place, offset);
    }
    if (extras->has_correlation) {
        correlations.event.push_back(place);
        correlations.number.push_back(extras->correlation);
        correlations.text.push_back(-1);
    }
    if (extras->has_flow) {
        flows.event.push_back(place);
        flows.id.push_back(extras->flow);
        flows.role.push_back(extras->is_terminating ? 1 : 0);
    }
    return Plain::read;
}

Reader::Kind Reader::event(Sequence& sequence, ByteSpan body, bool has_ts, int64_t ts, int32_t clock) {
    const Marks marks{arena.size(), flows.event.size()};
    const auto forget = [&] {
        arena.shorten(marks.arena);
        flows.event.shorten(marks.flows);
        flows.id.shorten(marks.flows);
        flows.role.shorten(marks.flows);
    };
    const auto undo = [&](Fault fault) {
        forget();
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
        if (!is_joined) joined_.assign(categories[static_cast<size_t>(category)]);
        is_joined = true;
        joined_ += ',';
        joined_ += categories[static_cast<size_t>(code)];
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
                name = names.code(text_of(field.bytes));
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
                add_category(categories.code(text_of(field.bytes)));
                break;
            case kTrackUuid:
                if (!field.is_varint()) return undo(Fault::invalid);
                has_uuid = true;
                uuid = field.value;
                break;
            case kAnnotation: {
                if (!field.is_bytes()) return undo(Fault::invalid);
                uint8_t head[11] = {kAnnotation << 3 | kBytes};
                size_t used = 1;
                uint64_t size = field.bytes.size();
                for (; size >= 0x80; size >>= 7) head[used++] = static_cast<uint8_t>(size | 0x80);
                head[used++] = static_cast<uint8_t>(size);
                arena.append(head, used);
                arena.append(field.bytes.data(), field.bytes.size());
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
                flows.event.push_back(kNoPlace);
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
    if (is_joined) category = categories.code(joined_);
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
        forget();
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
    needs_events_ = needs_events_ || has_old;
    const int64_t number = add_event(sequence, {ts, clock, track, name, category, static_cast<EventType>(type)});
    for (size_t i = marks.flows; i < flows.event.size(); ++i) flows.event[i] = number;
    if (arena.size() != marks.arena) annotate(sequence, number, marks.arena);
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
    return Kind::read;
}

}  // namespace lanescope::foreign_perfetto
