// Any bytes as a stream: nothing outside of it is read, every byte is accounted for, and fields lie within it.
#include <cstdlib>
#include <cstring>
#include <vector>

#include "core/wire/ctf/stream_reader.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace lanescope::ctf;
    const Layout layout{48, 0, 4, 20, absent, 28, 36, absent, absent, 44, absent, 5, 0, 1, 1, 4};
    const Field fields[] = {{Kind::integer, 8, 0}, {Kind::integer, 1, 0}, {Kind::sequence, 2, 0},
                            {Kind::text, 1, 0},    {Kind::nothing, 1, 0}, {Kind::text, 1, 0}};
    const uint32_t first[] = {0, 0, 1, 4, 5, 6};
    const Classes classes{fields, first};
    // The first bytes of packets are given, so that most inputs hold some; byte 43 says how far behind one the next is.
    std::vector<uint8_t> bytes(data, data + size);
    for (size_t at = 0, next; at + layout.packet_header <= bytes.size(); at = next) {
        next = at + layout.packet_header + bytes[at + 43];
        std::memcpy(&bytes[at], &magic, 4);
        std::memset(&bytes[at + 4], 7, 16);
        std::memset(&bytes[at + 30], 0, 6);
        std::memset(&bytes[at + 38], 0, 6);
        std::memset(&bytes[at + 24], 0, 4);
    }
    uint8_t uuid[16];
    std::memset(uuid, 7, sizeof uuid);
    const auto counts = scan(bytes, layout, uuid, classes, {});
    if (counts.decoded + counts.padding + counts.lost != bytes.size()) std::abort();
    std::vector<Packet> packets(counts.packets);
    std::vector<DiscardedRange> losses(counts.losses);
    std::vector<uint16_t> ids(counts.events);
    std::vector<uint64_t> times(counts.events), payloads(counts.events);
    const auto again = scan(bytes, layout, uuid, classes, {packets, losses, ids, times, payloads});
    if (std::memcmp(&counts, &again, sizeof counts) != 0) std::abort();
    for (size_t i = 0; i < ids.size(); ++i) {
        const auto of = classes.fields.subspan(first[ids[i]], first[ids[i] + 1] - first[ids[i]]);
        std::vector<uint64_t> values(2 * of.size());
        if (!columns(bytes, of, std::span(payloads).subspan(i, 1), values)) std::abort();
    }
    return 0;
}
