// The common path of mode 0 (see fast_path.cpp) for processors that know AVX-512: all words of a packet at the same time,
// then all of their frames. It takes fewer packets than the one for any processor, and says the same of those.
#include "core/devices/aie/timeline.hpp"

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>

#if !defined(__clang__)
// gcc 12 fills what an instruction leaves alone with a variable that is set to itself.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

// Of a function, not of this file: what other files use too must run anywhere.
#define WIDE [[gnu::target("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,bmi,bmi2,lzcnt,popcnt")]]

namespace lanescope::aie {
namespace {

using Mask = __mmask16;

constexpr size_t kLanes = 16;
constexpr size_t kMostFrames = 4;  // in a word
constexpr uint32_t kBehind = 0xF8F9FAFB;  // follows on a word; no frame begins with F8
constexpr uint32_t kSyncByte = 0xFF;
constexpr int kTimeBits = 24;  // no packet tells a longer time
static_assert(kMostFrames * kPayloadWords * (kSyncCycles + 1) < 1 << kTimeBits);
constexpr size_t kLeastUnit = 16;  // least idle cycles are multiples of it
constexpr uint32_t kLargestRepeat = 0xDBFF;  // the highest bits of a Repeat of kMaxRepeat

// How many of the largest Repeats there are in so many.
constexpr uint32_t largest_in(uint32_t repeats) { return ((repeats + 1) * (kMaxRepeat + 2)) >> 20; }
static_assert([] {
    for (uint32_t n = 0; n <= kMostFrames * kPayloadWords * kMaxRepeat; ++n) {
        if (largest_in(n) != n / kMaxRepeat) return false;
    }
    return true;
}());

enum Kind : uint8_t { kEvent = 1, kMultiple = 2, kShort = 4, kLong = 8 };

// What has to be known of a frame, by its highest six bits: nothing but Sync needs more to be told from others.
using Bytes = std::array<uint8_t, 64>;
struct alignas(64) Tables {
    Bytes size{};        // bits; 0: no frame, or none of this path
    Bytes above{};       // bits above the cycles or repeats
    Bytes clear{};       // bits that these lack to 32
    Bytes mask_shift{};  // where a mask lies, if it tells one
    Bytes single{};      // mask of the slot that it names
    Bytes least{};       // idle cycles below which a unit takes a shorter frame, in units
    Bytes kind{};
};
constexpr Tables kTables = [] {
    Tables made;
    for (size_t i = 0; i < 64; ++i) {
        const Code& code = kCodes[4 * i];
        made.clear[i] = 32;
        if (!code.is_common) continue;
        const Frame frame = code.frame;
        made.size[i] = code.bits;
        made.above[i] = static_cast<uint8_t>(code.bits - code.value_bits);
        made.clear[i] = static_cast<uint8_t>(32 - code.value_bits);
        made.mask_shift[i] = static_cast<uint8_t>((32 - code.bits + code.value_bits) & 31);
        made.single[i] = code.single;
        if (frame == Frame::single1 || frame == Frame::multiple1) made.least[i] = (1 << 4) / kLeastUnit;
        if (frame == Frame::single2 || frame == Frame::multiple2) made.least[i] = (1 << 10) / kLeastUnit;
        made.kind[i] = code.multiple != 0             ? kEvent | kMultiple
                       : frame == Frame::repeat0 ? kShort
                       : frame == Frame::repeat1 ? kLong
                                                 : kEvent;
    }
    return made;
}();
static_assert([] {
    for (size_t byte = 0; byte < 0xFC; ++byte) {
        const Code &code = kCodes[byte], &first = kCodes[byte & ~size_t{3}];
        if (code.is_common != first.is_common) return false;
        if (code.is_common && (code.frame != first.frame || code.single != first.single)) return false;
    }
    return !kCodes[0xFC].is_common && !kCodes[0xFD].is_common && kCodes[kSyncByte].frame == Frame::sync;
}());

// The slots of a mask, in order, a byte each.
constexpr std::array<uint64_t, 256> kSlots = [] {
    std::array<uint64_t, 256> made{};
    for (uint32_t mask = 0; mask < made.size(); ++mask) {
        unsigned at = 0;
        for (uint64_t slot = 0; slot < 8; ++slot) {
            if ((mask >> slot & 1) == 0) continue;
            made[mask] |= slot << at;
            at += 8;
        }
    }
    return made;
}();

constexpr uint32_t both(Mask first, Mask second) { return static_cast<uint32_t>(second) << 16 | first; }

WIDE inline __m512i look_up_words(const Bytes& table, __m512i index) {
    return _mm512_maskz_permutexvar_epi8(0x1111111111111111, index, _mm512_load_si512(table.data()));
}
WIDE inline __m512i look_up_pairs(const Bytes& table, __m512i index) {
    return _mm512_maskz_permutexvar_epi8(0x0101010101010101, index, _mm512_load_si512(table.data()));
}

// What 16 frames tell.
struct Told {
    __m512i begin;  // after them, cycles since the packet began
    __m512i end;    // before them, and the mask in the highest bits
    Mask moments;   // events and Syncs
    Mask shorts;
    Mask longs;
    Mask largest;   // of the longs
    Mask fault;
};
WIDE inline Told tell(__m512i frames, __m512i t) {
    const __m512i index = _mm512_srli_epi32(frames, 26);
    const __m512i kind = look_up_words(kTables.kind, index);
    const __m512i value = _mm512_srlv_epi32(_mm512_sllv_epi32(frames, look_up_words(kTables.above, index)),
                                            look_up_words(kTables.clear, index));
    const Mask syncs = _mm512_cmpge_epu32_mask(frames, _mm512_set1_epi32(static_cast<int>(kSyncByte << 24)));
    const Mask events = _mm512_test_epi32_mask(kind, _mm512_set1_epi32(kEvent));
    const Mask multiples = _mm512_test_epi32_mask(kind, _mm512_set1_epi32(kMultiple));
    const __m512i many = _mm512_maskz_and_epi32(multiples, _mm512_set1_epi32(0xFF),
                                                _mm512_srlv_epi32(frames, look_up_words(kTables.mask_shift, index)));
    const __m512i mask = _mm512_or_si512(many, look_up_words(kTables.single, index));
    const __m512i one = _mm512_set1_epi32(1);
    __m512i passed = _mm512_mask_add_epi32(value, events, value, one);
    passed = _mm512_mask_mov_epi32(passed, syncs, _mm512_set1_epi32(kSyncCycles));
    // Too few cycles for the frame, or a mask of less than two slots.
    const __m512i least = _mm512_slli_epi32(look_up_words(kTables.least, index), std::countr_zero(kLeastUnit));
    const __m512i none = _mm512_setzero_si512();
    Mask fault = _mm512_cmplt_epu32_mask(value, least);
    fault |= _mm512_mask_testn_epi32_mask(multiples, many, _mm512_sub_epi32(many, one));
    __m512i sum = _mm512_add_epi32(passed, _mm512_alignr_epi32(passed, none, 15));
    sum = _mm512_add_epi32(sum, _mm512_alignr_epi32(sum, none, 14));
    sum = _mm512_add_epi32(sum, _mm512_alignr_epi32(sum, none, 12));
    sum = _mm512_add_epi32(sum, _mm512_alignr_epi32(sum, none, 8));
    sum = _mm512_add_epi32(sum, t);
    return {.begin = sum,
            .end = _mm512_or_si512(_mm512_sub_epi32(sum, passed), _mm512_slli_epi32(mask, kTimeBits)),
            .moments = static_cast<Mask>(events | syncs),
            .shorts = _mm512_test_epi32_mask(kind, _mm512_set1_epi32(kShort)),
            .longs = _mm512_test_epi32_mask(kind, _mm512_set1_epi32(kLong)),
            .largest = _mm512_cmpeq_epi32_mask(_mm512_srli_epi32(frames, 16), _mm512_set1_epi32(kLargestRepeat)),
            .fault = fault};
}

// Moments at which events begin, as `Timestamps` of fast_path.cpp.
struct Moments {
    __m512i begin, mask, cycles;
};
struct alignas(64) Changes {
    std::array<uint32_t, 2 * kLanes> end, begin;
    std::array<uint8_t, 2 * kLanes> closing, opening, mask;
};
struct Verdict {
    Mask fault = 0;
    int some = 0;   // Repeats that a unit would have written, but for the largest
    int longs = 0;  // of them
};

// Judge up to 16 moments, of which `valid` are some, behind others.
WIDE inline Moments judge(__m512i begin, __m512i end_mask, const Moments& behind, Mask valid, uint32_t watch, size_t at,
                          Changes& changes, Verdict& verdict) {
    const __m512i end = _mm512_and_si512(end_mask, _mm512_set1_epi32((1 << kTimeBits) - 1));
    const __m512i mask = _mm512_srli_epi32(end_mask, kTimeBits);
    const __m512i cycles = _mm512_sub_epi32(begin, end);
    const __m512i before = _mm512_alignr_epi32(mask, behind.mask, 15);
    const __m512i one = _mm512_set1_epi32(1);
    const __m512i kept = _mm512_maskz_and_epi32(_mm512_cmpeq_epi32_mask(cycles, one), before, mask);
    const __m512i closing = _mm512_xor_si512(before, kept), opening = _mm512_xor_si512(mask, kept);
    const Mask was_near = _mm512_cmpeq_epi32_mask(_mm512_alignr_epi32(cycles, behind.cycles, 15), one);
    const __m512i repeats = _mm512_sub_epi32(end, _mm512_alignr_epi32(begin, behind.begin, 15));
    const __m512i next = _mm512_add_epi32(repeats, one);
    const __m512i largest = _mm512_srli_epi32(_mm512_add_epi32(next, _mm512_slli_epi32(next, 10)), 20);  // largest_in
    const __m512i rest = _mm512_add_epi32(_mm512_sub_epi32(repeats, _mm512_slli_epi32(largest, 10)), largest);
    const __m512i change = _mm512_or_si512(closing, opening);
    const Mask is_same = _mm512_testn_epi32_mask(change, change);
    verdict.fault |= static_cast<Mask>((is_same & was_near) | (_mm512_test_epi32_mask(repeats, repeats) & ~was_near) |
                                       _mm512_test_epi32_mask(mask, _mm512_set1_epi32(static_cast<int>(watch))));
    verdict.some += std::popcount(_mm512_test_epi32_mask(rest, rest));
    verdict.longs += std::popcount(_mm512_cmpgt_epi32_mask(rest, _mm512_set1_epi32(15)));
    _mm512_store_si512(&changes.end[at], end);
    _mm512_store_si512(&changes.begin[at], begin);
    _mm_store_si128(reinterpret_cast<__m128i*>(&changes.closing[at]), _mm512_maskz_cvtepi32_epi8(valid, closing));
    _mm_store_si128(reinterpret_cast<__m128i*>(&changes.opening[at]), _mm512_maskz_cvtepi32_epi8(valid, opening));
    _mm_store_si128(reinterpret_cast<__m128i*>(&changes.mask[at]), _mm512_cvtepi32_epi8(mask));
    return {begin, mask, cycles};
}

}  // namespace

bool Timeline::has_wide_path() {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("bmi") &&
           __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt");
}

WIDE bool Timeline::whole_wide(Source& s, const uint32_t* payload, Output& out) {
    if (s.watch >> kFlagged != 0) return false;
    // Words to frames. A word that is not there holds padding.
    const __m512i words = _mm512_cvtepu32_epi64(_mm256_mask_loadu_epi32(_mm256_set1_epi32(static_cast<int>(kFillerWord)), 0x7F, payload));
    __m512i rest = _mm512_or_si512(_mm512_slli_epi64(words, 32), _mm512_set1_epi64(kBehind));
    __m512i left[kMostFrames];
    __m512i first_size{}, used = _mm512_setzero_si512();
    for (size_t k = 0; k < kMostFrames; ++k) {
        left[k] = rest;
        const Mask syncs = _mm512_cmpge_epu64_mask(rest, _mm512_set1_epi64(static_cast<int64_t>(uint64_t{kSyncByte} << 56)));
        __m512i size = look_up_pairs(kTables.size, _mm512_srli_epi64(rest, 58));
        size = _mm512_mask_mov_epi64(size, static_cast<__mmask8>(syncs), _mm512_set1_epi64(8));
        if (k == 0) first_size = size;
        rest = _mm512_sllv_epi64(rest, size);
        used = _mm512_add_epi64(used, size);
    }
    // Behind the last frame there is padding, if anything; a frame has room for itself, but none in the word before.
    const __m512i padding = _mm512_set1_epi64(static_cast<int64_t>(uint64_t{kFillerWord} << 32 | kBehind));
    const __m512i bits = _mm512_set1_epi64(32);
    const __m512i room = _mm512_sub_epi64(bits, used);
    const __m512i room_before = _mm512_alignr_epi64(room, _mm512_set1_epi64(s.room), 7);
    __mmask8 wrong = _mm512_cmpneq_epi64_mask(rest, _mm512_sllv_epi64(padding, used)) |
                     _mm512_cmpge_epu64_mask(room, bits) | _mm512_cmple_epi64_mask(first_size, room_before);
    wrong &= 0x7F;

    const __m512i low = _mm512_mask_shuffle_epi32(left[1], 0x5555, left[0], _MM_PERM_DDBB);
    const __m512i high = _mm512_mask_shuffle_epi32(left[3], 0x5555, left[2], _MM_PERM_DDBB);
    const __m512i first = _mm512_permutex2var_epi64(low, _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11), high);
    const __m512i second = _mm512_permutex2var_epi64(low, _mm512_setr_epi64(4, 12, 5, 13, 6, 14, 7, 15), high);
    const __m512i last_lane = _mm512_set1_epi32(15);
    const Told a = tell(first, _mm512_setzero_si512());
    const Told b = tell(second, _mm512_permutexvar_epi32(last_lane, a.begin));
    const auto count_a = static_cast<size_t>(std::popcount(a.moments));
    const size_t count = count_a + static_cast<size_t>(std::popcount(b.moments));
    if ((wrong | a.fault | b.fault) != 0 || count == 0) [[unlikely]] return false;

    // Frames to moments; behind them nothing happens at the end of the packet.
    const __m512i total = _mm512_permutexvar_epi32(last_lane, b.begin);
    const __m512i begins = _mm512_maskz_compress_epi32(b.moments, b.begin), ends = _mm512_maskz_compress_epi32(b.moments, b.end);
    const auto behind_a = static_cast<Mask>(0xFFFFu << count_a);
    const uint32_t valid = (1u << count) - 1;
    __m512i begin = _mm512_mask_expand_epi32(_mm512_maskz_compress_epi32(a.moments, a.begin), behind_a, begins);
    __m512i end = _mm512_mask_expand_epi32(_mm512_maskz_compress_epi32(a.moments, a.end), behind_a, ends);
    begin = _mm512_mask_mov_epi32(total, static_cast<Mask>(valid), begin);
    end = _mm512_mask_mov_epi32(total, static_cast<Mask>(valid), end);
    Changes changes;
    Verdict verdict;
    const uint32_t before = s.mask & 0xFF, watch = s.watch;
    const Moments state{_mm512_setzero_si512(), _mm512_set1_epi32(static_cast<int>(before)),
                        _mm512_set1_epi32(static_cast<int>(s.idle + 1))};
    const Moments judged = judge(begin, end, state, static_cast<Mask>(valid), watch, 0, changes, verdict);
    if (count >= kLanes) {
        const auto beyond = static_cast<Mask>(0xFFFF0000u >> count_a);
        const auto more = static_cast<Mask>(valid >> kLanes);
        begin = _mm512_mask_mov_epi32(total, more, _mm512_maskz_compress_epi32(beyond, begins));
        end = _mm512_mask_mov_epi32(total, more, _mm512_maskz_compress_epi32(beyond, ends));
        judge(begin, end, judged, more, watch, kLanes, changes, verdict);
    }
    // Repeats are told by as many of the largest as there can be and at most one more, which comes last. A long one
    // weighs less than two short ones, and what comes in place of a largest one more than what may follow it: whatever
    // else repeats as often weighs more.
    const uint32_t shorts = both(a.shorts, b.shorts), longs = both(a.longs, b.longs), largest = both(a.largest, b.largest);
    const uint32_t repeats = shorts | longs, smaller = repeats & ~largest;
    const uint32_t frames = both(a.moments, b.moments) | repeats;
    const bool is_behind = (_pext_u32(largest, frames) >> 1 & _pext_u32(smaller, frames)) != 0;
    const int weight = 2 * std::popcount(shorts) + 3 * std::popcount(longs & ~largest);
    const uint8_t last = changes.mask[count - 1];
    if (verdict.fault != 0 || last == 0 || is_behind || 2 * verdict.some + verdict.longs != weight) [[unlikely]] return false;
    if (changes.end[0] != 0 && !may_repeat(s)) return false;

    // Moments to slices.
    int64_t* const slice_begins = out.slices.begin.data();
    int64_t* const durations = out.slices.duration.data();
    uint32_t* const tags = out.slices.tag.data();
    size_t row = out.slice;
    const int64_t base = s.t;
    const __m256i tag = _mm256_set1_epi32(static_cast<int>(s.tag_base));
    __m512i open = _mm512_loadu_si512(s.begin.data());
    for (size_t i = 0; i < count; ++i) {
        const uint8_t closing = changes.closing[i];
        const __m512i since = _mm512_maskz_compress_epi64(closing, open);
        const __m256i slots = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(static_cast<int64_t>(kSlots[closing])));
        _mm512_storeu_si512(slice_begins + row, since);
        _mm512_storeu_si512(durations + row, _mm512_sub_epi64(_mm512_set1_epi64(base + 1 + changes.end[i]), since));
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(tags + row), _mm256_or_si256(tag, slots));
        row += static_cast<size_t>(std::popcount(closing));
        open = _mm512_mask_set1_epi64(open, changes.opening[i], base + changes.begin[i]);
    }
    _mm512_storeu_si512(s.begin.data(), open);
    out.slice = row;
    const uint32_t end_of_packet = static_cast<uint32_t>(_mm_cvtsi128_si32(_mm512_castsi512_si128(total)));
    s.mask = last;
    s.idle = changes.begin[count - 1] - changes.end[count - 1] - 1;
    s.t += end_of_packet;
    s.frames += std::popcount(frames);
    s.is_whole = true;
    s.repeats = end_of_packet - changes.begin[count - 1];
    s.last_word = payload[kPayloadWords - 1];
    s.room = static_cast<int32_t>(_mm_extract_epi64(_mm512_extracti64x2_epi64(room, 3), 0));
    return true;
}

}  // namespace lanescope::aie

#else

namespace lanescope::aie {

bool Timeline::has_wide_path() { return false; }
bool Timeline::whole_wide(Source&, const uint32_t*, Output&) { return false; }

}  // namespace lanescope::aie

#endif
