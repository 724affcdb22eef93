// Threads that carry out programs of markers: each lane's program is a row of numbers that the test makes up.
#include "cuda_on_host.hpp"

#define LANESCOPE_MACHINE "machine.hpp"
#define private public    // a test sets how far a lane has come
#define protected public
#include <lanescope/probe.cuh>

namespace {

enum Verb : std::int64_t {
    begin, end, instant, counter, async_begin, async_end, flow_out, flow_in, finalize, consume, jump
};
unsigned last_position;

enum Type : std::int64_t { i32, u32, i64, u64, f32, f64 };

struct Op {
    std::int64_t verb, event, token, type, time, bits;
};

template <unsigned words, unsigned stamps>
struct Chosen : lanescope::Options {
    enum : unsigned { record_words = words };
    enum : unsigned { clock = stamps };
};
struct Off : lanescope::Options {
    enum : unsigned { enabled = 0 };
};

template <class Lane>
void value(Lane& lane, unsigned event, const Op& op) {
    const auto bits = op.bits;
    switch (op.type) {
    case i32: return lane.value(event, static_cast<int>(bits));
    case u32: return lane.value(event, static_cast<unsigned>(bits));
    case i64: return lane.value(event, static_cast<long long>(bits));
    case u64: return lane.value(event, static_cast<unsigned long long>(bits));
    case f32: return lane.value(event, static_cast<float>(std::bit_cast<double>(bits)));
    default: return lane.value(event, std::bit_cast<double>(bits));
    }
}

template <unsigned words, class Lane>
void perform(Lane& lane, const Op& op) {
    const auto event = static_cast<unsigned>(op.event), token = static_cast<unsigned>(op.token);
    const auto payload = static_cast<lanescope::Word>(op.bits);
    // Without a payload both buffers take the same call.
    const bool plain = words == 1 || op.type == 0;
#define EITHER(verb)                                                             \
    if constexpr (words == 2)                                                    \
        return plain ? lane.verb(event, token) : lane.verb(event, token, payload); \
    else                                                                         \
        return lane.verb(event, token)
    switch (op.verb) {
    case begin: EITHER(begin);
    case end: EITHER(end);
    case instant: EITHER(instant);
    case async_begin: EITHER(async_begin);
    case async_end: EITHER(async_end);
    case flow_out: EITHER(flow_out);
    case flow_in: EITHER(flow_in);
    case counter: return value(lane, event, op);
    case finalize:
        if (lane.leader_) last_position = lane.position_;
        return lane.finalize();
    case consume: return lane.consume(op.bits, op.time);
    default:
        if (!lane.leader_) return;
        lane.head_[1] = op.bits & ~63;
        // A lane that drops never comes further than this.
        lane.position_ = lane.last_ != lane.mask_ || op.bits >> 31 == 0 ? op.bits : op.bits % 64 + (1u << 30);
    }
}

// Where each lane's program stands in the ops, and who carries it out.
struct Plan {
    const Op* ops;
    const std::int64_t* starts;  // [lanes + 1]; a program's first op is its init
    std::int64_t groups, group_threads, leader, every;
};

template <class Lane, class Start, class Act>
void thread(const Plan& plan, Start start, Act act) {
    const auto group = lanescope::thread() / plan.group_threads;
    const auto lane_number = lanescope::block() * plan.groups + group;
    const Op* op = plan.ops + plan.starts[lane_number];
    const Op* stop = plan.ops + plan.starts[lane_number + 1];
    if (op == stop) return;
    on_host::now_ns = on_host::now_cycles = op->time;
    const bool leads = lanescope::thread() % plan.group_threads == plan.leader;
    Lane lane = start(static_cast<unsigned>(group), leads, lanescope::every(plan.every));
    for (++op; op != stop; ++op) {
        on_host::now_ns = on_host::now_cycles = op->time;
        act(lane, *op);
    }
}

template <class Options>
void ls2(dim3 grid, dim3 block, std::uint64_t* buffer, const Plan& plan) {
    using Lane = lanescope::Ls2Lane<Options>;
    for_each_thread(grid, block, [&] {
        thread<Lane>(
            plan, [&](unsigned group, bool leads, bool on) { return lanescope::init<Options>(buffer, group, leads, on); },
            [](Lane& lane, const Op& op) { perform<Options::record_words>(lane, op); });
    });
}

}  // namespace

extern "C" {

void run_ls2(
    int words, int clock, const unsigned* grid_block, std::uint64_t* buffer, const Op* ops, const std::int64_t* starts,
    std::int64_t groups, std::int64_t group_threads, std::int64_t leader, std::int64_t every) {
    const dim3 grid{grid_block[0], grid_block[1], grid_block[2]}, block{grid_block[3], grid_block[4], grid_block[5]};
    const Plan plan{ops, starts, groups, group_threads, leader, every};
    using lanescope::Clock;
    on_host::fences = on_host::uses = 0;
    if (words == 0) return ls2<Off>(grid, block, buffer, plan);
    if (words == 1 && clock == 0) return ls2<Chosen<1, Clock::globaltimer>>(grid, block, buffer, plan);
    if (words == 1) return ls2<Chosen<1, Clock::clock64>>(grid, block, buffer, plan);
    if (clock == 0) return ls2<Chosen<2, Clock::globaltimer>>(grid, block, buffer, plan);
    return ls2<Chosen<2, Clock::clock64>>(grid, block, buffer, plan);
}

void run_tirx(
    const unsigned* grid_block, std::uint64_t* buffer, std::int64_t slots, const Op* ops, const std::int64_t* starts,
    std::int64_t groups, std::int64_t group_threads, std::int64_t leader, std::int64_t every) {
    const dim3 grid{grid_block[0], grid_block[1], grid_block[2]}, block{grid_block[3], grid_block[4], grid_block[5]};
    const Plan plan{ops, starts, groups, group_threads, leader, every};
    using Lane = lanescope::TirxLane<>;
    for_each_thread(grid, block, [&] {
        thread<Lane>(
            plan,
            [&](unsigned group, bool leads, bool on) {
                return lanescope::init_tirx(buffer, slots, static_cast<unsigned>(groups), group, leads, on);
            },
            [](Lane& lane, const Op& op) {
                switch (op.verb) {
                case begin: return lane.begin(op.event);
                case end: return lane.end(op.event);
                case instant: return lane.instant(op.event);
                case finalize: return lane.finalize();
                }
            });
    });
}

// Two threads lead one lane: the second begins while the first is at it.
void run_two_leaders(std::uint64_t* buffer) {
    gridDim = blockDim = {1, 1, 1};
    blockIdx = threadIdx = {0, 0, 0};
    auto first = lanescope::init(buffer, 0, true);
    first.begin(0);
    auto second = lanescope::init(buffer, 0, true);
    second.begin(1);
    first.end(0);
    second.end(1);
    second.finalize();
    first.finalize();
}

std::uint64_t lay_out(unsigned blocks, unsigned groups, std::uint64_t capacity, int ring, int words, lanescope::Word* to) {
    using lanescope::Clock;
    auto fill = [&](auto buffer) {
        buffer.header(*reinterpret_cast<lanescope::Word(*)[16]>(to));
        return buffer.words();
    };
    if (words == 1) return fill(lanescope::Buffer<Chosen<1, Clock::globaltimer>>{blocks, groups, capacity, ring != 0, 5, 3});
    return fill(lanescope::Buffer<Chosen<2, Clock::clock64>>{blocks, groups, capacity, ring != 0, 5, 3});
}

unsigned position_of_last_lane() { return last_position; }
std::uint64_t count_fences() { return on_host::fences; }
std::uint64_t count_uses() { return on_host::uses; }
}
