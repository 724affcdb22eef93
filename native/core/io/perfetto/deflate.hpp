// Zlib streams of packets that resemble one another, in half the time of a search for matches.
//
// Nearly all bytes of a large trace are packets of few shapes: size, time since the packet before, and a tail that says
// what happens. The tail, with the head of the packet behind it, stands once more where its shape came last; between them is
// only the time, a varint. So one look for each packet finds nearly all that there is to find. Nothing rests on
// the shape but the size of what comes out: bytes of any kind come back as they were.
// Source: RFC 1950 (zlib), RFC 1951 (deflate).
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace lanescope::perfetto {

struct Deflated {
    std::unique_ptr<uint8_t[]> bytes;
    size_t size = 0;
};

// Return the zlib stream of whole packets; nothing where too few of them have a shape that came before, so that a search
// is worth its time. `checksum` is the Adler-32 of the packets.
Deflated deflate_packets(std::span<const uint8_t> packets, uint32_t checksum);

}  // namespace lanescope::perfetto
