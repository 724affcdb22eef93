// Field numbers of the messages that are read. Source: google/perfetto, protos/perfetto/trace/.
#pragma once
#include <cstdint>

namespace lanescope::foreign_perfetto {

inline constexpr uint8_t kPacketTag = 0x0A;  // Trace.packet
// TracePacket
inline constexpr uint32_t kTrustedUid = 3, kChromeEvents = 5, kClockSnapshot = 6, kTimestamp = 8, kSequenceId = 10, kTrackEvent = 11,
                          kInternedData = 12, kSequenceFlags = 13, kTraceStats = 35, kStateCleared = 41,
                          kPacketDropped = 42, kProcessDescriptor = 43, kThreadDescriptor = 44, kCompressed = 50,
                          kPacketClock = 58, kDefaults = 59, kTrackDescriptor = 60, kTrustedPid = 79, kFirstPacket = 87,
                          kMachineId = 98, kZstdCompressed = 133;
// ChromeEventBundle, ChromeMetadata
inline constexpr uint32_t kBundleMetadata = 2, kMetadataName = 1;
// Bits of sequence_flags
inline constexpr uint64_t kCleared = 1, kNeedsState = 2;
// ClockSnapshot, and which clocks are of one sequence
inline constexpr uint32_t kClockReading = 1, kPrimaryClock = 2;
inline constexpr uint32_t kFirstOwnClock = 64, kLastOwnClock = 127, kMonotonic = 3;
// InternedData
inline constexpr uint32_t kCategories = 1, kNames = 2, kArgumentNames = 3, kArgumentTexts = 29, kCorrelationTexts = 43;
// TracePacketDefaults
inline constexpr uint32_t kDefaultEvent = 11, kDefaultClock = 58;
// ThreadDescriptor
inline constexpr uint32_t kReferenceTime = 6;
// TrackEvent
inline constexpr uint32_t kDeltaUs = 1, kThreadDeltaUs = 2, kCategoryIid = 3, kAnnotation = 4, kLegacyEvent = 6,
                          kInstructionDelta = 8, kType = 9, kNameIid = 10, kTrackUuid = 11, kExtraValues = 12,
                          kAbsoluteUs = 16, kThreadAbsoluteUs = 17, kInstructionAbsolute = 20, kCategory = 22, kName = 23,
                          kCounterValue = 30, kExtraTracks = 31, kFlowOld = 36, kTerminatingOld = 42,
                          kDoubleCounterValue = 44, kExtraDoubleTracks = 45, kExtraDoubleValues = 46, kFlow = 47,
                          kTerminating = 48, kCorrelation = 52, kCorrelationText = 53, kCorrelationIid = 54;
// LegacyEvent
inline constexpr uint32_t kLegacyNameIid = 1, kPhase = 2, kDurationUs = 3, kUnscopedId = 6, kIdScope = 7, kBindId = 8,
                          kLocalId = 10, kGlobalId = 11, kBindEnclosing = 12, kFlowDirection = 13, kPidOverride = 18,
                          kTidOverride = 19;
// DebugAnnotation
inline constexpr uint32_t kValueNameIid = 1, kBool = 2, kUnsigned = 3, kSigned = 4, kDouble = 5, kString = 6, kPointer = 7,
                          kNested = 8, kLegacyJson = 9, kValueName = 10, kDictEntry = 11, kArrayValue = 12,
                          kProtoValue = 14, kStringIid = 17;
// DebugAnnotation.NestedValue
inline constexpr uint32_t kNestedKey = 2, kNestedDict = 3, kNestedArray = 4, kNestedInt = 5, kNestedDouble = 6,
                          kNestedBool = 7, kNestedString = 8;

}  // namespace lanescope::foreign_perfetto
