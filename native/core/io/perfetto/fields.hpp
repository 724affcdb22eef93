// Field numbers of the messages, and what the encoder's sources share.
// Source: google/perfetto, protos/perfetto/trace/.
#pragma once
#include <cstddef>
#include <cstdint>

#include "core/io/perfetto/wire.hpp"

namespace lanescope::perfetto {

// Trace
inline constexpr uint32_t kPacket = 1;
// TracePacket
inline constexpr uint32_t kTimestamp = 8;
inline constexpr uint32_t kSequenceId = 10;
inline constexpr uint32_t kTrackEvent = 11;
inline constexpr uint32_t kInternedData = 12;
inline constexpr uint32_t kSequenceFlags = 13;
inline constexpr uint32_t kDefaults = 59;
// TracePacketDefaults
inline constexpr uint32_t kDefaultEvent = 11;
inline constexpr uint32_t kDefaultClock = 58;
// InternedData, and the messages in it
inline constexpr uint32_t kCategories = 1;
inline constexpr uint32_t kNames = 2;
inline constexpr uint32_t kArgumentNames = 3;
inline constexpr uint32_t kArgumentTexts = 29;
inline constexpr uint32_t kIid = 1;
inline constexpr uint32_t kText = 2;
// TrackEvent
inline constexpr uint32_t kCategoryIid = 3;
inline constexpr uint32_t kArgument = 4;
inline constexpr uint32_t kType = 9;
inline constexpr uint32_t kNameIid = 10;
inline constexpr uint32_t kTrackUuid = 11;
inline constexpr uint32_t kCounterInteger = 30;
inline constexpr uint32_t kCounterDouble = 44;
inline constexpr uint32_t kFlow = 47;
inline constexpr uint32_t kTerminatingFlow = 48;
inline constexpr uint8_t kSliceBegin = 1;
inline constexpr uint8_t kSliceEnd = 2;
inline constexpr uint8_t kInstant = 3;
inline constexpr uint8_t kCounter = 4;
// DebugAnnotation
inline constexpr uint32_t kArgumentNameIid = 1;
inline constexpr uint32_t kBool = 2;
inline constexpr uint32_t kUnsigned = 3;
inline constexpr uint32_t kSigned = 4;
inline constexpr uint32_t kDouble = 5;
inline constexpr uint32_t kString = 6;
inline constexpr uint32_t kArray = 12;
inline constexpr uint32_t kStringIid = 17;

inline constexpr uint8_t kPacketTag = tag(kPacket, Wire::bytes);
inline constexpr uint8_t kTimestampTag = tag(kTimestamp, Wire::varint);

// What the packet of a slice that carries nothing, or one known word, takes at most.
inline constexpr size_t kMaxPlainPacket = 64;

// What a slice carries, if it is more than nothing or a known word.
inline constexpr size_t kMore = ~size_t{0};

inline bool outside(int64_t index, size_t size) { return static_cast<uint64_t>(index) >= size; }

inline bool valid_range(int64_t from, int64_t to, size_t size) {
    return from >= 0 && from <= to && static_cast<uint64_t>(to) <= size;
}

}  // namespace lanescope::perfetto
