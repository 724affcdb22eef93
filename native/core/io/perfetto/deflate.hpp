// Compression of blocks of packets. A packet repeats what is in front of and behind its time, so that it is known where
// matches are: they are not searched for byte by byte.
// Source: RFC 1951 (the format), google/perfetto, protos/perfetto/trace/trace.proto and trace_packet.proto (the packets).
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace lanescope::perfetto {

// Compress whole packets to a deflate stream, which `out` becomes. False, with nothing of use in `out`, where too much of them
// repeats nothing that is found so: then another compressor makes less of them. Any bytes are read as packets as far as they go,
// and come back as they are.
bool deflate_packets(std::span<const uint8_t> packets, std::vector<uint8_t>& out);

}  // namespace lanescope::perfetto
