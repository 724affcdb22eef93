// What is not timed, and what fails: counted, told in the trace, and said once.
#include <cstdio>
#include <cstdlib>

#include "stream/events.hpp"
#include "tracer/state/internal.hpp"
#include "tracer/tracer.hpp"

namespace lanescope::levelzero::tracer {

void count_untimed(List& list, Reason reason, Result code) {
    ++list.untimed_count[static_cast<size_t>(reason)];
    if (code != 0) list.reason_code[static_cast<size_t>(reason)] = code;
}

Degradations degradations_of(State& all, List& list) {
    constexpr auto plain = static_cast<size_t>(Reason::not_timed);
    const u32 appends = list.plain_appends.load(std::memory_order_relaxed);
    list.untimed_count[plain] += appends - list.told_appends;
    all.untimed[plain] += appends - list.told_appends;
    list.told_appends = appends;
    Degradations found;
    found.list = list.id;
    for (size_t i = 0; i < reason_count; ++i) {
        found.count[i] = list.untimed_count[i];
        found.code[i] = list.reason_code[i];
    }
    return found;
}

void Degradations::write() const {
    for (size_t i = 0; i < reason_count; ++i) {
        if (count[i] == 0) continue;
        emit<Record::degraded>(host_ns(), Scope::list, u64{list}, static_cast<Reason>(i), u32{code[i]}, u32{count[i]});
    }
}

std::string untimed_operations() {
    std::string lines;
    if (local.holds) return lines;
    const StateLock lock;
    for (size_t i = 0; i < reason_count; ++i) {
        const u64 count = state().untimed[i];
        if (count != 0) lines += std::string(reason_names[i]) + ' ' + std::to_string(count) + '\n';
    }
    return lines;
}

void report_failure(State& all, Reason reason, const char* what, Result code) {
    if (all.options.abort) {
        std::fprintf(stderr, "lanescope: error: %s failed with 0x%x (%s)\n", what, code, reason_names[static_cast<size_t>(reason)]);
        std::fflush(stderr);
        std::abort();
    }
    if (all.has_reported[static_cast<size_t>(reason)]) return;
    all.has_reported[static_cast<size_t>(reason)] = true;
    if (code == device_lost) {
        std::fprintf(stderr, "lanescope: warning: the device is lost; operations that had not ended have no timestamps\n");
        return;
    }
    std::fprintf(stderr,
                 "lanescope: warning: %s failed with 0x%x; the program continues, operations of this command list will"
                 " have no timestamps\n",
                 what, code);
}

}  // namespace lanescope::levelzero::tracer
