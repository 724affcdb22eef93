#include "core/wire/ctf/stream_reader.hpp"

#include <algorithm>
#include <cstring>

namespace lanescope::ctf {

namespace {

template <class T>
T load(const uint8_t* at) {
    T value;
    std::memcpy(&value, at, sizeof value);
    return value;
}

uint64_t integer(const uint8_t* at, size_t size) {
    switch (size) {
        case 1: return *at;
        case 2: return load<uint16_t>(at);
        case 4: return load<uint32_t>(at);
        default: return load<uint64_t>(at);
    }
}

// Steps over the fields of an event, which begin after its header and so not at 0; returns where they end, 0 if that
// lies beyond `end`. `f(field, offset, value or count)` is told each one.
template <class F>
size_t walk(std::span<const uint8_t> data, std::span<const Field> fields, size_t at, size_t end, F&& f) {
    uint64_t values[most_fields];
    for (size_t i = 0; i < fields.size(); ++i) {
        const Field& field = fields[i];
        uint64_t count = field.size;
        if (field.kind == Kind::nothing) {
            return 0;
        } else if (field.kind == Kind::integer) {
            if (end - at < count) return 0;
            values[i] = integer(data.data() + at, field.size);
            f(i, at, values[i]);
        } else if (field.kind == Kind::text) {
            const auto* zero = static_cast<const uint8_t*>(std::memchr(data.data() + at, 0, end - at));
            if (zero == nullptr) return 0;
            count = static_cast<size_t>(zero - data.data()) - at + 1;
            f(i, at, count - 1);
        } else {
            const uint64_t length = values[field.length];
            if (length > (end - at) / field.size) return 0;
            count = length * field.size;
            f(i, at, length);
        }
        at += count;
    }
    return at;
}

struct Scanner {
    std::span<const uint8_t> data;
    const Layout& layout;
    std::span<const uint8_t, 16> uuid;
    const Classes& classes;
    const Output& output;
    Counts counts{};

    bool is_packet(size_t at) const {
        if (data.size() - at < layout.packet_header) return false;
        return load<uint32_t>(data.data() + at + layout.magic) == magic &&
               std::memcmp(data.data() + at + layout.uuid, uuid.data(), uuid.size()) == 0;
    }

    // The next place in [at, end) where a packet seems to begin, `end` if there is none.
    size_t next_packet(size_t at, size_t end) const {
        uint8_t mark[4];
        std::memcpy(mark, &magic, sizeof mark);
        const size_t stop = std::min(data.size(), end + layout.magic);
        for (; at < end; ++at) {
            const size_t from = at + layout.magic;
            if (from >= stop) return end;
            const auto* found = static_cast<const uint8_t*>(std::memchr(data.data() + from, mark[0], stop - from));
            if (found == nullptr) return end;
            at = static_cast<size_t>(found - data.data()) - layout.magic;
            if (is_packet(at)) return at;
        }
        return end;
    }

    uint64_t context(size_t at, uint16_t where, uint64_t otherwise) const {
        return where == absent ? otherwise : load<uint64_t>(data.data() + at + where);
    }
    uint64_t small(size_t at, uint16_t where, uint64_t otherwise) const {
        return where == absent ? otherwise : load<uint32_t>(data.data() + at + where);
    }

    void leave(size_t begin, size_t end) {
        if (begin == end) return;
        const bool is_zero = std::all_of(data.begin() + static_cast<ptrdiff_t>(begin),
                                         data.begin() + static_cast<ptrdiff_t>(end), [](uint8_t b) { return b == 0; });
        if (is_zero) {
            counts.padding += end - begin;
            return;
        }
        if (counts.losses < output.losses.size()) output.losses[counts.losses] = {begin, end - begin};
        ++counts.losses;
        counts.lost += end - begin;
    }

    // Reads the packet at `at`; returns its end, 0 if its header cannot be believed.
    size_t packet(size_t at) {
        const uint64_t left = data.size() - at;
        const uint64_t size_bits = context(at, layout.size, 8 * left), content_bits = context(at, layout.content, size_bits);
        const uint64_t begin = context(at, layout.begin, 0);
        const uint64_t size = size_bits / 8, content = content_bits / 8;
        if (size_bits % 8 != 0 || content_bits % 8 != 0 || content < layout.packet_header || size < content ||
            begin >> 62 != 0) {
            return 0;
        }
        size_t end = at + std::min(size, left);
        uint64_t cut = size > left;
        if (size > left || (end != data.size() && !is_packet(end))) {
            const size_t next = next_packet(at + layout.packet_header, end);
            cut |= next != end;
            end = next;
        }
        const size_t content_end = std::min<size_t>(end, at + content);
        Packet packet{at, end - at, content_end - at, begin, context(at, layout.end, 0),
                      context(at, layout.discarded, 0), context(at, layout.sequence, 0), small(at, layout.thread, 0),
                      small(at, layout.complete, 1), counts.events, 0, 0, cut};
        const size_t events_end = events(at + layout.packet_header, content_end, begin);
        packet.events = counts.events - packet.first_event;
        packet.lost = content_end - events_end;
        counts.decoded += events_end - at;
        counts.lost += packet.lost;
        counts.padding += end - content_end;
        if (counts.packets < output.packets.size()) output.packets[counts.packets] = packet;
        ++counts.packets;
        return end;
    }

    // Reads events from `at` on; returns where the first one begins that cannot be read, or `end`.
    size_t events(size_t at, size_t end, uint64_t time) {
        const uint64_t mask = layout.time_size == 8 ? ~uint64_t{0} : (uint64_t{1} << 8 * layout.time_size) - 1;
        while (end - at >= layout.event_header) {
            const uint64_t id = integer(data.data() + at + layout.id, layout.id_size);
            if (id >= classes.count()) break;
            const auto fields = classes.fields.subspan(classes.first[id], classes.first[id + 1] - classes.first[id]);
            const size_t payload = at + layout.event_header;
            const size_t next = walk(data, fields, payload, end, [](size_t, size_t, uint64_t) {});
            if (next == 0) break;
            const uint64_t low = integer(data.data() + at + layout.time, layout.time_size);
            time += (low - time) & mask;
            note(id, time, payload);
            at = next;
        }
        return at;
    }

    void note(uint64_t id, uint64_t time, size_t payload) {
        if (counts.events < output.classes.size()) {
            output.classes[counts.events] = static_cast<uint16_t>(id);
            output.times[counts.events] = time;
            output.payloads[counts.events] = payload;
        }
        ++counts.events;
    }

    Counts run() {
        size_t at = 0, unread = 0;
        while ((at = next_packet(at, data.size())) < data.size()) {
            const size_t end = packet(at);
            if (end == 0) {
                ++at;
                continue;
            }
            leave(unread, at);
            at = unread = end;
        }
        leave(unread, data.size());
        return counts;
    }
};

}  // namespace

Counts scan(std::span<const uint8_t> data, const Layout& layout, std::span<const uint8_t, 16> uuid,
            const Classes& classes, const Output& output) {
    return Scanner{data, layout, uuid, classes, output}.run();
}

bool columns(std::span<const uint8_t> data, std::span<const Field> fields, std::span<const uint64_t> payloads,
             std::span<uint64_t> columns) {
    bool all = true;
    const size_t count = payloads.size();
    for (size_t i = 0; i < count; ++i) {
        const uint64_t at = payloads[i];
        if (at == 0 || at > data.size()) {
            all = false;
            continue;
        }
        const auto keep = [&](size_t field, size_t offset, uint64_t value) {
            const bool is_integer = fields[field].kind == Kind::integer;
            columns[2 * field * count + i] = is_integer ? value : offset;
            columns[(2 * field + 1) * count + i] = is_integer ? 0 : value;
        };
        all = walk(data, fields, at, data.size(), keep) != 0 && all;
    }
    return all;
}

}  // namespace lanescope::ctf
