// Streams written with chosen times and under chosen circumstances, into the folder that LANESCOPE_ZE_OUTPUT names.
//   streams CASE
// The tests read what comes out. Records of regions stand for any: their field counts them.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>

#include "stream/events.hpp"

using namespace lanescope::levelzero;

namespace {

void note(u64 now, int value) { emit<Record::memory_end>(now, static_cast<u64>(value)); }

void limit(rlim_t size) {
    rlimit now;
    getrlimit(RLIMIT_FSIZE, &now);
    now.rlim_cur = size;
    setrlimit(RLIMIT_FSIZE, &now);
}

// Pauses longer than the 32 bits that events have for their time, and clocks read in another order.
void pauses() {
    u64 now = host_ns();
    for (int i = 0; i < 6; ++i) {
        note(now, i);
        now += u64{5} * 1'000'000'000 * static_cast<u64>(i);
    }
    note(now - 1000, 6);
}

// As many events as several packets hold.
void packets() {
    const u64 now = host_ns();
    for (int i = 0; i < 40'000; ++i) note(now + static_cast<u64>(i), i);
}

// The same, many at a time, with single ones in between; what has no room in a packet comes alone. One is written in the
// middle of a block, by a signal, and discarded.
void handler(int);
void blocks() {
    std::signal(SIGUSR1, handler);
    constexpr usize size = event_header + sizeof(u64);
    u64 now = host_ns();
    note(now, 0);
    Stream& stream = *this_stream();
    for (int i = 1; i < 40'000;) {
        const usize count = i % 7 == 0 ? 1 : 128;
        now += 10;
        const auto fields = [&](u8* at, usize place) {
            if (i == 1 && place == 5) std::raise(SIGUSR1);
            put(at, static_cast<u64>(i) + place);
        };
        const usize written = stream.write_block(record_id(Record::memory_end), now, size, count, fields);
        if (written == 0) note(now, i);
        i += written == 0 ? 1 : static_cast<int>(written);
    }
    // A time before the last one has no room in a block.
    const auto nothing = [](u8*, usize) {};
    std::printf("%d\n", static_cast<int>(stream.write_block(record_id(Record::memory_end), now - 1, size, 5, nothing)));
}

// A handler that comes in the middle of an event: what it writes is discarded and counted.
void handler(int) { note(host_ns(), -1); }
void signals() {
    std::signal(SIGUSR1, handler);
    u64 now = host_ns();
    note(now, 0);
    Stream& stream = *this_stream();
    u8* at = stream.reserve(record_id(Record::memory_end), now, event_header + 8);
    std::raise(SIGUSR1);
    put(at, u64{1});
    stream.commit(now, event_header + 8);
    note(host_ns(), 2);
}

// No room for some time: events are discarded, and the program lives on.
void full() {
    const u64 now = host_ns();
    note(now, 0);
    limit(200'000);
    for (int i = 0; i < 40'000; ++i) note(now + static_cast<u64>(i), 1);
    limit(RLIM_INFINITY);
    note(now + 1'000'000'000, 2);
}

// No room at all.
void none() {
    limit(1000);
    for (int i = 0; i < 100; ++i) note(host_ns(), 0);
    limit(RLIM_INFINITY);
}

// Threads one after the other share a stream; those at the same time do not.
void threads() {
    for (int i = 0; i < 10; ++i) {
        std::thread([i] { note(host_ns(), i); }).join();
    }
    std::thread first([] {
        note(host_ns(), 10);
        std::thread([] { note(host_ns(), 11); }).join();
        note(host_ns(), 12);
    });
    first.join();
}

// A child goes on in a folder of its own.
void child() {
    note(host_ns(), 1);
    const pid_t pid = fork();
    note(host_ns(), pid == 0 ? 2 : 3);
    if (pid == 0) std::exit(0);
    waitpid(pid, nullptr, 0);
    note(host_ns(), 4);
}

// Every way in which the process may end without its recorder.
void gone() {
    note(host_ns(), 1);
    note(host_ns(), 2);
    _exit(0);
}

// Closed descriptors, and a folder that is not where it was.
void closed() {
    note(host_ns(), 0);
    for (int i = 3; i < 100; ++i) ::close(i);
    (void)!chdir("/");
    packets();
}

// Stamps against the clock, for longer than the rate needs to be known and to be taken anew: prints how many were read
// after the clock was but have an earlier time, or the other way round, by more than a microsecond.
void stamps() {
    int wrong = 0, counted = 0;
    const u64 begin = host_ns();
    for (u64 after = begin; after - begin < 400'000'000;) {
        local.clock.prepare();
        const u64 before = host_ns();
        const u64 stamp = local.clock.read();
        after = host_ns();
        const u64 time = local.clock.time(stamp);
        wrong += time + 1000 < before || time > after + 1000;
        counted += local.clock.rate != 0;
    }
    std::printf("%d %d\n", wrong, counted > 1000);
}

}  // namespace

int main(int, char** arguments) {
    const std::string name = arguments[1];
    if (name == "pauses") pauses();
    if (name == "packets") packets();
    if (name == "blocks") blocks();
    if (name == "signals") signals();
    if (name == "full") full();
    if (name == "none") none();
    if (name == "threads") threads();
    if (name == "child") child();
    if (name == "gone") gone();
    if (name == "closed") closed();
    if (name == "stamps") stamps();
    return 0;
}
