// How the software driver behaves. Every switch is an environment variable, read once, listed here.
//
// What the driver writes
//   FAKE_ZE_TRUTH=PATH      one JSON object a line for every command that ran (truth.hpp); %p is the process id
//   FAKE_ZE_STATS=PATH      at exit, one JSON object of counts (stats.hpp); %p is the process id
//
// The real driver's quirks
//   FAKE_ZE_QUERY_ON_COPY=  an in-list timestamp query on a copy-only engine: reject (default), abort, allow
//   FAKE_ZE_HOST_RESET=     zeEventHostReset of an event with timestamps: works (default), sticky (stays signalled), view
//                           (the device sees it reset, the host goes on seeing it signalled until a command resets it).
//   FAKE_ZE_RESET_CLEARS=0|1  a reset that works clears the ticks, as in the open driver (default 0: the old ones stay
//                           readable)
//   FAKE_ZE_QUERY_BYTES=N   memory that each timestamp query takes in its list until reset (default 10240)
//   FAKE_ZE_QUERY_LIMIT=N   queries a list can hold; one more is ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY (default none)
//   FAKE_ZE_RECYCLE=0|1     the address of a destroyed handle is the next one handed out (default 1)
//   FAKE_ZE_LATE=US         timestamp queries run that many microseconds after they could, and write their words one
//                           by one, so pollers see cells that are empty or half written (default 0)
//   FAKE_ZE_TORN=US         an end tick that is not the last one is visible for that many microseconds before a command
//                           ends, as of a command in several packets (default 0)
//   FAKE_ZE_STATUS_NS=N     a status query of an event with timestamps takes that long (default 0)
//   FAKE_ZE_UNSIGNALLED=    ticks of an event that is not signalled: poison (default: 0xDEAD..., or the old ones
//                           after a reset), not_ready (ZE_RESULT_NOT_READY)
//   FAKE_ZE_ORDER=          when a command may start: free (any that the API allows), list (default: starts in order on
//                           each queue and immediate list), engine (in order on each engine, so one that waits blocks
//                           all behind it)
//   FAKE_ZE_SEED=N          which of several commands that may start does: 0 (default) the oldest, else at random
//   FAKE_ZE_LOST=N          the device is lost after N commands (default never)
//   FAKE_ZE_FAIL=LIST       calls that fail: FUNCTION:FIRST[-LAST][=CODE], comma separated, counted from 1; LAST may be
//                           missing (`3-`: all from the third on); CODE is hexadecimal, without it 0x70000002
//                           (ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY). Example: zeMemAllocHost:1,zeEventPoolCreate:2-3
//
// Mistakes of the caller (a destroyed handle, two threads appending to one list, an event destroyed in use ...)
//   FAKE_ZE_MISTAKES=       abort (default), report (a line on stderr and in the truth, and an error code)
//
// The machine
//   FAKE_ZE_API=1.N         the newest API version that the driver knows (default 1.17)
//   FAKE_ZE_DEVICES=N       devices (default 1);  FAKE_ZE_SUBDEVICES=N  sub-devices of each (default 0)
//   FAKE_ZE_EXECUTE=        threads (default: a thread an engine), inline (commands run in the thread that submits or
//                           waits: one thread, one result, whatever the machine's load)
//   FAKE_ZE_WORKERS=N       threads an engine, so that unordered commands overlap (default 1)
//
// Sensors (sysman.cpp)
//   FAKE_ZE_ABSENT=LIST     kinds of sensors that there are none of: power,frequency,engine,memory,temperature
//   FAKE_ZE_SAMPLES=N       a context is destroyed once the energy of each device was read so often, however late that is
//   FAKE_ZE_ENERGY_START=N  the energy counter at its first reading; a negative N means 2^64 - |N| (default 1000000)
//
// The clock (clock.hpp)
//   FAKE_ZE_CLOCK=          real (default: host time, scaled), virtual (a counter that commands advance)
//   FAKE_ZE_FREQUENCY=HZ    ticks a second (default 12500000)
//   FAKE_ZE_PPM=N           how much faster the device runs than it says, in parts per million (default 0)
//   FAKE_ZE_BITS=N          valid bits of kernel timestamps (default 32)
//   FAKE_ZE_GLOBAL_BITS=N   valid bits of zeDeviceGetGlobalTimestamps (default 36)
//   FAKE_ZE_START=N         ticks when the clock is first read, by a command or a call; a negative N
//                           means 2^FAKE_ZE_BITS - |N|, shortly before the wrap (default 123456789)
//   FAKE_ZE_SKEW=N          ticks that each further device is ahead of the one before it (default 1000003)
#pragma once

#include <level_zero/ze_api.h>

#include <cstdint>
#include <string>
#include <vector>

namespace fake_ze {

enum class QueryOnCopy { reject, abort, allow };
enum class HostReset { works, sticky, view };
enum class Order { free, list, engine };

struct Failure {
    std::string function;
    uint64_t first, last;
    ze_result_t code;
};

struct Quirks {
    std::string truth, stats;
    QueryOnCopy query_on_copy = QueryOnCopy::reject;
    HostReset host_reset = HostReset::works;
    uint64_t query_bytes = 10240, query_limit = UINT64_MAX;
    bool recycle = true, reset_clears = false;
    uint64_t late_us = 0, torn_us = 0, status_ns = 0;
    bool unsignalled_not_ready = false;
    Order order = Order::list;
    uint64_t seed = 0, lost_after = UINT64_MAX;
    std::vector<Failure> failures;
    bool abort_on_mistake = true;
    uint32_t api_minor = 17;
    uint32_t devices = 1, subdevices = 0;
    bool inline_execution = false;
    uint32_t workers = 1;
    bool virtual_clock = false;
    uint64_t frequency = 12'500'000;
    int64_t ppm = 0;
    uint32_t bits = 32, global_bits = 36;
    uint64_t start = 123'456'789, skew = 1'000'003;
};

// The quirks of this process. A value that makes no sense ends it: a test must not run under another quirk unawares.
const Quirks& quirks();

// Waits as FAKE_ZE_SAMPLES says.
void await_samples();

}  // namespace fake_ze
