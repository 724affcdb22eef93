// Markers inside CUDA kernels, for nvcc and NVRTC, C++17 and newer. Nothing else is included.
//
//     enum Event { LOAD, COMPUTE };
//
//     __global__ void kernel(const float* in, float* out, void* probes) {
//         auto lane = lanescope::init(probes);
//         lane.begin(LOAD);
//         const float x = in[threadIdx.x];
//         lane.consume(x);
//         lane.end(LOAD);
//         ...
//         lane.finalize();
//     }
//
// A lane is the stream of one thread, its leader; a block has one for each of its groups of threads. Every thread of a
// group calls the verbs, the leader alone stores. The host lays out and zeroes the buffer (lanescope::Buffer at the end,
// layout LS2 of docs/adr/0004, 0007 and 0013); a null pointer records nothing. No verb stores outside of its lane, whatever
// it is called with: what has no room is dropped, or overwrites the oldest, and is counted; so are lanes that have no
// room at all.
//
// -DLANESCOPE_PROBES=0 leaves nothing of it in the generated code.

#pragma once

#ifndef LANESCOPE_PROBES
#define LANESCOPE_PROBES 1
#endif

namespace lanescope {
#if LANESCOPE_PROBES
inline namespace probes_on {
#else
inline namespace probes_off {
#endif

using Word = unsigned long long;

// Constants are enumerators here, because NVRTC makes a global variable of every other kind.

// What stamps are read from. The timer is common to all SMs of a GPU, in nanoseconds and coarse; the cycle counter is
// of one SM and fine.
struct Clock {
    enum : unsigned { globaltimer = 0, clock64 = 1 };
};

// What is done about memory operations still in flight. cta: a fence for the block behind the stamp of verbs that open
// something (begin, async_begin, flow_in), before the stamp of all others. It orders; it does not wait for loads.
struct Fence {
    enum : unsigned { none = 0, cta = 1 };
};

// What is settled when the kernel is compiled. Derive from it to choose otherwise:
//     struct Fine : lanescope::Options { enum : unsigned { clock = lanescope::Clock::clock64 }; };
//     auto lane = lanescope::init<Fine>(probes);
// record_words and clock must be those of the buffer; a lane of another buffer stores nothing, and is marked so.
struct Options {
    enum : unsigned { enabled = LANESCOPE_PROBES != 0 };
    enum : unsigned { record_words = 1 };  // 2: every record has a payload of 64 bits
    enum : unsigned { clock = Clock::globaltimer };
    enum : unsigned { fence = Fence::cta };
};

// Registers and instructions that C++ has no words for. Volatile, and with a clobber of memory: the compiler keeps their
// order among themselves and to every access of memory that may be seen from elsewhere.
namespace machine {
#ifdef LANESCOPE_MACHINE  // a header with these functions for something that is no GPU
#include LANESCOPE_MACHINE
#else
__device__ __forceinline__ unsigned globaltimer_low() {
    unsigned value;
    asm volatile("mov.u32 %0, %%globaltimer_lo;" : "=r"(value)::"memory");
    return value;
}
__device__ __forceinline__ Word globaltimer() {
    Word value;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(value)::"memory");
    return value;
}
__device__ __forceinline__ unsigned clock_low() {
    unsigned value;
    asm volatile("mov.u32 %0, %%clock;" : "=r"(value)::"memory");
    return value;
}
__device__ __forceinline__ Word clock() {
    Word value;
    asm volatile("mov.u64 %0, %%clock64;" : "=l"(value)::"memory");
    return value;
}
__device__ __forceinline__ unsigned sm() {
    unsigned value;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(value));
    return value;
}
__device__ __forceinline__ unsigned cluster_rank() {
    unsigned value = 0;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(value));
#endif
    return value;
}
__device__ __forceinline__ Word grid_id() {
    Word value;
    asm("mov.u64 %0, %%gridid;" : "=l"(value));
    return value;
}
// Waits for the value. An empty statement that names it would emit nothing and wait for nothing. The comparison reads
// it; the event that it may fire is one of the profiler's counters, and no harm where the value is the constant.
__device__ __forceinline__ void use(unsigned bits) {
    asm volatile("{\n\t.reg .pred same;\n\tsetp.eq.u32 same, %0, 0x7fedcba9;\n\t@same pmevent 1;\n\t}" ::"r"(bits)
                 : "memory");
}
#endif
}  // namespace machine

// The number of the block, its three dimensions in one.
__device__ __forceinline__ Word block() {
    return (static_cast<Word>(blockIdx.z) * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
}

// How many blocks there are.
__device__ __forceinline__ Word blocks_of_grid() {
    return static_cast<Word>(gridDim.x) * gridDim.y * gridDim.z;
}

// The number of the thread in its block, likewise.
__device__ __forceinline__ unsigned thread() {
    return (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
}

// Whether the block is an n-th one: the usual choice of blocks to record.
__device__ __forceinline__ bool every(unsigned n) { return block() % n == 0; }

namespace detail {

enum Kind : unsigned { begin, end, instant, counter, async_begin, async_end, flow_out, flow_in };
enum TirxKind : unsigned { finalize = 3 };  // the first three are the same

enum Magic : Word { magic = 0x3245424F5250534CULL };  // "LSPROBE2"
enum Size : unsigned {
    version = 4, file_words = 16, lane_words = 8, count_every = 64, max_capacity = 1u << 30, max_lanes = 1u << 20
};
// Words of the file header that kernels write.
enum Refused : unsigned { refused = 12, wanted_blocks = 13, wanted_groups = 14 };
enum State : Word { unused = 0, running = 1, spoiled = 2, finalized = 3 };

// All bits of a value in 32, by instructions that need all of them.
template <class Value>
__device__ __forceinline__ unsigned fold(const Value& value) {
    constexpr unsigned count = (sizeof(Value) + 3) / 4;
    unsigned words[count] = {};
    memcpy(words, &value, sizeof(Value));
    unsigned bits = 0;
    for (unsigned i = 0; i < count; ++i) bits ^= words[i];
    return bits;
}

// What lanes of all layouts share.
template <class Options>
class Lane {
  public:
    // Let the next stamp wait until the leader has these values: a load into a register, all elements of an array.
    template <class... Values>
    __device__ __forceinline__ void consume(const Values&... values) {
        if constexpr (Options::enabled) {
            if (leader_) machine::use((0u ^ ... ^ fold(values)));
        }
    }

  protected:
    __device__ __forceinline__ void fence() const {
        if constexpr (Options::enabled && unsigned{Options::fence} == Fence::cta) {
            if (on_) __threadfence_block();
        }
    }

    __device__ __forceinline__ static unsigned stamp() {
        if constexpr (unsigned{Options::clock} == Clock::globaltimer) return machine::globaltimer_low();
        else return machine::clock_low();
    }

    bool on_ = false;      // this block is recorded
    bool leader_ = false;  // and this thread stores
};

}  // namespace detail

// A lane of an LS2 buffer. ``event`` is an index into the caller's list of names, 0..65535, a number or an enumerator;
// ``token`` joins the two records of an asynchronous region or a flow, and is taken modulo 4096.
template <class Options = lanescope::Options>
class Ls2Lane : public detail::Lane<Options> {
    using Base = detail::Lane<Options>;
    enum : unsigned { width = Options::record_words };
    static_assert(width == 1 || width == 2, "a record has one word, or two with a payload");

  public:
    // See lanescope::init.
    __device__ __forceinline__ Ls2Lane(void* buffer, unsigned group, bool leader, bool sampled) {
        if constexpr (Options::enabled) {
            on_ = buffer != nullptr && sampled;
            if (on_ && leader) open(static_cast<Word*>(buffer), group);
        }
    }

    // A region of this lane: regions nest or cross as they like; an end closes the innermost open one of its event.
    template <class Event>
    __device__ __forceinline__ void begin(Event event, unsigned token = 0) { opening<detail::begin>(event, token); }
    template <class Event>
    __device__ __forceinline__ void end(Event event, unsigned token = 0) { closing<detail::end>(event, token); }

    // A point in time.
    template <class Event>
    __device__ __forceinline__ void instant(Event event, unsigned token = 0) { closing<detail::instant>(event, token); }

    // A sample of a counter. Where records have one word, it takes two of them, and integers beyond 62 bits become the
    // nearest float64, of which the upper 62 bits are kept.
    template <class Event, class Number>
    __device__ __forceinline__ void value(Event event, Number number) {
        if constexpr (Options::enabled) {
            this->fence();
            if (leader_) sample(static_cast<unsigned>(event), number);
        }
    }

    // A region of its own that may overlap anything; its begin and end share the token, which the caller chooses. With
    // one other than 0, another lane of the block may end it: begin where work is issued, end where it is awaited. The
    // token has to be free again before it begins the next region, and the two lanes need no memory in common.
    template <class Event>
    __device__ __forceinline__ void async_begin(Event event, unsigned token) {
        opening<detail::async_begin>(event, token);
    }
    template <class Event>
    __device__ __forceinline__ void async_end(Event event, unsigned token) { closing<detail::async_end>(event, token); }

    // An arrow to another lane of the block: from where the cause was done to where the effect could go on.
    template <class Event>
    __device__ __forceinline__ void flow_out(Event event, unsigned token) { closing<detail::flow_out>(event, token); }
    template <class Event>
    __device__ __forceinline__ void flow_in(Event event, unsigned token) { opening<detail::flow_in>(event, token); }

    // The same with a payload, for buffers with records of two words.
    template <class Event>
    __device__ __forceinline__ void begin(Event event, unsigned token, Word payload) {
        opening<detail::begin>(event, token, payload);
    }
    template <class Event>
    __device__ __forceinline__ void end(Event event, unsigned token, Word payload) {
        closing<detail::end>(event, token, payload);
    }
    template <class Event>
    __device__ __forceinline__ void instant(Event event, unsigned token, Word payload) {
        closing<detail::instant>(event, token, payload);
    }
    template <class Event>
    __device__ __forceinline__ void async_begin(Event event, unsigned token, Word payload) {
        opening<detail::async_begin>(event, token, payload);
    }
    template <class Event>
    __device__ __forceinline__ void async_end(Event event, unsigned token, Word payload) {
        closing<detail::async_end>(event, token, payload);
    }
    template <class Event>
    __device__ __forceinline__ void flow_out(Event event, unsigned token, Word payload) {
        closing<detail::flow_out>(event, token, payload);
    }
    template <class Event>
    __device__ __forceinline__ void flow_in(Event event, unsigned token, Word payload) {
        opening<detail::flow_in>(event, token, payload);
    }

    // The last verb: closes the lane, and its count is exact from now on. Verbs behind it do nothing.
    __device__ __forceinline__ void finalize() {
        if constexpr (Options::enabled) {
            this->fence();
            if (!leader_) return;
            head_[4] = machine::globaltimer();
            head_[5] = machine::clock();
            atomicAdd(head_ + 1, Word{position_ % detail::count_every});
            if (head_[0] == detail::running) head_[0] = detail::finalized;
            leader_ = false;
        }
    }

  private:
    using Base::leader_;
    using Base::on_;

    __device__ __forceinline__ void open(Word* buffer, unsigned group) {
        const Word format = buffer[1], grid = buffer[2], capacity = buffer[3], mine = block();
        const Word blocks = grid & 0xFFFFFFFF, groups = grid >> 32, words = format >> 8 & 0xFF;
        const bool is_sound = buffer[0] == detail::magic && (format & 0xFF) == detail::version && words - 1 < 2 &&
                              capacity - 1 < detail::max_capacity && (capacity & (capacity - 1)) == 0 &&
                              blocks * groups - 1 < detail::max_lanes;
        if (!is_sound) return;
        if (mine >= blocks || group >= groups) return refuse(buffer, mine >= blocks, group >= groups, group);
        head_ = buffer + detail::file_words + (mine * groups + group) * (detail::lane_words + capacity * words);
        const bool fits = words == width && (format >> 16 & 0xFF) == Word{Options::clock};
        if (!fits || head_[0] != detail::unused) {
            // Compiled for another buffer, two leaders, or a buffer used before: the reader reports the lane.
            head_[0] = detail::spoiled;
            return;
        }
        mask_ = static_cast<unsigned>(capacity - 1);
        const bool is_ring = (format >> 24 & 0xFF) != 0;
        last_ = is_ring ? ~0u : mask_;
        head_[0] = detail::running;
        head_[6] = (machine::sm() & 0xFFFF) | (thread() / 32 & 0xFFFF) << 16 | Word{machine::cluster_rank()} << 32;
        head_[7] = machine::grid_id();
        head_[2] = machine::globaltimer();
        head_[3] = machine::clock();
        leader_ = true;
    }

    // Nothing of this lane will be there. The header says so: how many such lanes, and what would have held them.
    __device__ __forceinline__ static void refuse(Word* buffer, bool no_block, bool no_group, unsigned group) {
        atomicAdd(buffer + detail::refused, Word{1});
        if (no_block) atomicMax(buffer + detail::wanted_blocks, blocks_of_grid());
        if (no_group) atomicMax(buffer + detail::wanted_groups, Word{group} + 1);
    }

    template <detail::Kind kind, class Event, class... Payload>
    __device__ __forceinline__ void opening(Event event, unsigned token, Payload... payload) {
        mark<kind>(static_cast<unsigned>(event), token, payload...);
        this->fence();
    }

    template <detail::Kind kind, class Event, class... Payload>
    __device__ __forceinline__ void closing(Event event, unsigned token, Payload... payload) {
        this->fence();
        mark<kind>(static_cast<unsigned>(event), token, payload...);
    }

    template <detail::Kind kind>
    __device__ __forceinline__ void mark(unsigned event, unsigned token) { store<kind>(event, token, 0); }

    template <detail::Kind kind>
    __device__ __forceinline__ void mark(unsigned event, unsigned token, Word payload) {
        static_assert(width == 2, "records of one word have no payload: set record_words = 2 in the options");
        store<kind>(event, token, payload);
    }

    template <detail::Kind kind>
    __device__ __forceinline__ void store(unsigned event, unsigned token, Word payload) {
        if constexpr (Options::enabled) {
            if (!leader_) return;
            const Word word = record(kind, event, token);
            if (position_ <= last_) {
                Word* at = slot(position_);
                at[0] = word;
                if constexpr (width == 2) at[1] = payload;
            }
            advance(1);
        }
    }

    template <class Number>
    __device__ __forceinline__ void sample(unsigned event, Number number) {
        constexpr bool is_integer = static_cast<Number>(0.5) == static_cast<Number>(0);
        constexpr unsigned bits = width == 2 ? 64 : 62;
        if constexpr (!is_integer) {
            put(event, 1, static_cast<Word>(__double_as_longlong(static_cast<double>(number))));
        } else if constexpr (sizeof(Number) < 8) {
            put(event, 0, static_cast<Word>(static_cast<long long>(number)) << (64 - bits));
        } else {
            const Word whole = static_cast<Word>(number), shifted = whole << (64 - bits);
            const bool fits = static_cast<Number>(static_cast<long long>(shifted) >> (64 - bits)) == number &&
                              (number < 0) == (static_cast<long long>(shifted) < 0);
            if (fits) put(event, 0, shifted);
            else put(event, 1, static_cast<Word>(__double_as_longlong(static_cast<double>(number))));
        }
    }

    // Store a counter: both of its words or none.
    __device__ __forceinline__ void put(unsigned event, unsigned type, Word bits) {
        const Word word = record(detail::counter, event, type);
        if constexpr (width == 2) {
            if (position_ <= last_) {
                slot(position_)[0] = word;
                slot(position_)[1] = bits;
            }
            advance(1);
        } else {
            if (position_ + 1 <= last_) {
                *slot(position_) = word;
                *slot(position_ + 1) = (bits & ~Word{3}) | 2;
            }
            advance(2);
        }
    }

    __device__ __forceinline__ static Word record(unsigned kind, unsigned event, unsigned token) {
        // The shift drops what an event has beyond 16 bits.
        return Word{Base::stamp()} << 32 | (event << 16 | kind << 13 | (token & 0xFFF) << 1 | 1);
    }

    __device__ __forceinline__ Word* slot(unsigned position) const {
        return head_ + detail::lane_words + Word{position & mask_} * width;
    }

    // Count, so that a kernel that is killed leaves a bound behind. The whole count lives in memory, in 64 bits.
    __device__ __forceinline__ void advance(unsigned positions) {
        position_ += positions;
        if (position_ % detail::count_every >= positions) return;
        atomicAdd(head_ + 1, Word{detail::count_every});
        // A lane that drops must not come round to 0 and begin again.
        if (position_ >> 31 && last_ == mask_) position_ = position_ % detail::count_every + detail::max_capacity;
    }

    Word* head_ = nullptr;   // the lane header; records follow it
    unsigned position_ = 0;  // the next one
    unsigned mask_ = 0;      // capacity - 1
    unsigned last_ = 0;      // the last position that is stored
};

// A lane of a TIRx v1 buffer, for the tools that read it. There are begin, end and instant of events 0..1023; what has no
// room is dropped, and the layout has no place to count it.
template <class Options = lanescope::Options>
class TirxLane : public detail::Lane<Options> {
    using Base = detail::Lane<Options>;
    static_assert(unsigned{Options::clock} == Clock::globaltimer, "TIRx v1 has stamps of the global timer only");

  public:
    // See lanescope::init_tirx.
    __device__ __forceinline__ TirxLane(
        void* buffer, Word slots, unsigned groups, unsigned group, bool leader, bool sampled) {
        if constexpr (Options::enabled) {
            on_ = buffer != nullptr && sampled;
            if (on_ && leader) open(static_cast<Word*>(buffer), slots, groups, group);
        }
    }

    template <class Event>
    __device__ __forceinline__ void begin(Event event) {
        store(static_cast<unsigned>(event), detail::begin);
        this->fence();
    }
    template <class Event>
    __device__ __forceinline__ void end(Event event) {
        this->fence();
        store(static_cast<unsigned>(event), detail::end);
    }
    template <class Event>
    __device__ __forceinline__ void instant(Event event) {
        this->fence();
        store(static_cast<unsigned>(event), detail::instant);
    }
    __device__ __forceinline__ void finalize() {
        this->fence();
        store(0, detail::finalize);
        leader_ = false;
    }

  private:
    using Base::leader_;
    using Base::on_;

    __device__ __forceinline__ void open(Word* buffer, Word slots, unsigned groups, unsigned group) {
        const Word blocks = blocks_of_grid();
        if (blocks > detail::max_lanes || groups > detail::max_lanes || group >= groups || slots == 0) return;
        stride_ = static_cast<unsigned>(blocks * groups);
        if (blocks * groups > detail::max_lanes) return;
        // Every lane stores it, so it is there whichever blocks are recorded.
        buffer[0] = Word{groups} << 32 | blocks;
        const unsigned lane = static_cast<unsigned>(block()) * groups + group;
        buffer_ = buffer;
        slots_ = slots;
        at_ = Word{1} + lane;
        tag_ = lane << 12;
        leader_ = true;
    }

    __device__ __forceinline__ void store(unsigned event, unsigned kind) {
        if constexpr (Options::enabled) {
            if (!leader_) return;
            const unsigned tag = tag_ | (event & 0x3FF) << 2 | kind;
            unsigned time = Base::stamp();
            if (event == 0 && kind == 0 && tag == 0 && time == 0) time = 1;  // a word of zeros is an empty slot
            if (at_ < slots_) buffer_[at_] = Word{time} << 32 | tag;
            at_ += stride_;
        }
    }

    Word* buffer_ = nullptr;
    Word slots_ = 0;       // words of the buffer
    Word at_ = 0;          // the next slot of this lane
    unsigned stride_ = 0;  // lanes of the grid
    unsigned tag_ = 0;
};

// Begin a lane of an LS2 buffer. Every thread of the group calls it, once.
//     buffer   what the host laid out; nullptr: nothing is recorded, at the price of a test per verb.
//     group    which lane of the block, below the num_groups of the buffer.
//     leader   true in the one thread of the group whose stamps are taken.
//     sampled  the same in all threads of the block: false leaves the block out, fences included. lanescope::every(n)
//              takes each n-th block. A lane that the buffer has no room for, of a block that is not left out, is
//              counted in the header.
template <class Options = lanescope::Options>
__device__ __forceinline__ Ls2Lane<Options> init(
    void* buffer, unsigned group = 0, bool leader = thread() == 0, bool sampled = true) {
    return {buffer, group, leader, sampled};
}

// Begin a lane of a TIRx v1 buffer: ``slots`` words, zeroed, at least 1 + lanes of the whole grid. ``groups`` lanes a
// block; at most 2^20 lanes in all.
template <class Options = lanescope::Options>
__device__ __forceinline__ TirxLane<Options> init_tirx(
    void* buffer, Word slots, unsigned groups = 1, unsigned group = 0, bool leader = thread() == 0,
    bool sampled = true) {
    return {buffer, slots, groups, group, leader, sampled};
}

// What the host does about an LS2 buffer: allocate ``words()``, zero them, and store ``header`` at their begin.
//     lanescope::Buffer<> buffer{blocks, groups, capacity};
template <class Options = lanescope::Options>
struct Buffer {
    unsigned blocks;        // of the grid; lanes of further ones are lost, and counted as such
    unsigned groups = 1;    // lanes of a block; blocks * groups is at most 2^20
    Word capacity = 64;     // records of a lane, a power of two, at most 2^30
    bool is_ring = false;   // a full lane keeps the newest records, not the oldest
    Word launch = 0;        // numbers of the launch and of the GPU, for whoever reads the trace
    Word device = 0;

    __host__ __device__ Word words() const {
        return detail::file_words + Word{blocks} * groups * (detail::lane_words + capacity * Options::record_words);
    }

    __host__ __device__ void header(Word (&to)[16]) const {
        for (unsigned i = 0; i < 16; ++i) to[i] = 0;
        to[0] = detail::magic;
        to[1] = detail::version | Options::record_words << 8 | Options::clock << 16 | Word{is_ring} << 24;
        to[2] = Word{groups} << 32 | blocks;
        to[3] = capacity;
        to[4] = launch;
        to[5] = device;
    }
};

}  // namespace probes_on or probes_off
}  // namespace lanescope
