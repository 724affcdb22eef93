#include "stream/process.hpp"

#include <fnmatch.h>
#include <pthread.h>
#include <sys/auxv.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <vector>

#include "intercept/routes.hpp"
#include "stream/environment.hpp"
#include "stream/events.hpp"
#include "stream/metadata.hpp"
#include "stream/ranks.hpp"
#include "telemetry/sampler.hpp"
#include "tracer/tracer.hpp"

namespace lanescope::levelzero {

constinit thread_local Local local __attribute__((tls_model("initial-exec"))) = {};
std::atomic<bool> told[function_count];
std::atomic<bool> recording = false;

namespace {

// Lives as long as the process: threads may still run when destructors do.
struct Process {
    Settings settings;
    bool selected[function_count] = {};
    Mutex mutex;                    // guards what follows
    pthread_key_t key;
    bool has_key = false;
    std::string folder;             // of this process; empty until the first event
    bool folder_failed = false;
    u8 uuid[16] = {};
    std::vector<Stream*> streams;   // all
    std::vector<Stream*> idle;      // of threads that have ended
    std::atomic<bool> has_complained = false;
    u64 begin = 0;                  // of the process
    bool is_emptied = false;        // its environment, before we were there
    Rank rank;
};

const char* text_of(const char* name) {
    const char* value = given_variable(name);
    return value == nullptr ? "" : value;
}

bool is_on(const char* name, bool otherwise) {
    const char* value = text_of(name);
    return *value == 0 ? otherwise : *value == '1';
}

// Patterns with commas between; one that begins with ! takes away. Without others these take from all.
void select(const std::string& filter, bool (&selected)[function_count]) {
    bool is_first = true;
    std::fill_n(selected, function_count, filter.empty());
    for (size_t begin = 0; begin < filter.size();) {
        const size_t end = std::min(filter.find(',', begin), filter.size());
        std::string pattern = filter.substr(begin, end - begin);
        const bool takes_away = !pattern.empty() && pattern[0] == '!';
        if (takes_away) pattern.erase(0, 1);
        if (is_first && takes_away) std::fill_n(selected, function_count, true);
        is_first = false;
        for (size_t i = 0; i < function_count; ++i) {
            if (fnmatch(pattern.c_str(), function_names[i], 0) == 0) selected[i] = !takes_away;
        }
        begin = end + 1;
    }
}

void before_fork();
void after_fork_in_parent();
void after_fork_in_child();
void end_thread(void* stream);

int write_file(const std::string& path, const std::string& text);
std::string own_program();

// For `lanescope record`: a process that emptied its environment before it opened the loader, which then asks for a
// recorder but does not use it. Gone once something is recorded.
std::string emptied_mark(const Settings& settings) {
    return settings.output + "/.emptied-" + std::to_string(getpid());
}

Process* make() {
    auto* process = new Process;
    Settings& settings = process->settings;
    // What runs with more rights than its user does not write where its user says.
    if (getauxval(AT_SECURE) == 0) settings.output = text_of("LANESCOPE_ZE_OUTPUT");
    process->rank = rank_of_process();
    if (!is_selected_rank(process->rank, text_of("LANESCOPE_ZE_RANKS"))) settings.output.clear();
    if (settings.output.empty()) return process;
    process->is_emptied = std::getenv("LANESCOPE_ZE_OUTPUT") == nullptr;
    if (process->is_emptied) write_file(emptied_mark(settings), own_program());
    process->begin = host_ns();
    begin_stamps();
    settings.chain = text_of("LANESCOPE_ZE_CHAIN");
    settings.host_calls = is_on("LANESCOPE_ZE_HOST_CALLS", true);
    select(text_of("LANESCOPE_ZE_FILTER"), process->selected);
    process->has_key = pthread_key_create(&process->key, end_thread) == 0;
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
    tracer::Options options;
    options.timing = is_on("LANESCOPE_ZE_TIMING", true);
    options.host_read = is_on("LANESCOPE_ZE_HOST_READ", false);
    const std::string_view resets = text_of("LANESCOPE_ZE_EVENT_RESETS");
    options.has_prologues = resets != "watch" && resets != "off";
    options.has_reruns = resets != "off";
    options.abort = std::string_view(text_of("LANESCOPE_ZE_FAILURE")) == "abort";
    options.eager_probe = is_on("LANESCOPE_ZE_PROBE", true);
    if (const int poll_budget = std::atoi(text_of("LANESCOPE_ZE_BUDGET")); poll_budget > 0) options.poll_budget = static_cast<u32>(poll_budget);
    tracer::start(options);
    telemetry::configure(std::strtoull(text_of("LANESCOPE_ZE_SAMPLE_NS"), nullptr, 10));
    const bool on = !is_on("LANESCOPE_ZE_PAUSED", false);
    recording.store(on);
    for (size_t i = 0; i < function_count; ++i) told[i].store(on && settings.host_calls && process->selected[i]);
    return process;
}

Process& the_process() {
    static Process* process = make();
    return *process;
}

void before_fork() {
    tracer::before_fork();
    the_process().mutex.lock();
}
void after_fork_in_parent() {
    the_process().mutex.unlock();
    tracer::after_fork_in_parent();
}

// The child records into a folder of its own, from its first call on.
void after_fork_in_child() {
    Process& process = the_process();
    for (Stream* stream : process.streams) stream->forget();
    process.streams.clear();
    process.idle.clear();
    process.folder.clear();
    process.folder_failed = false;
    process.begin = host_ns();
    local = Local{};
    tracer::after_fork_in_child();
    telemetry::after_fork_in_child();
    choose_routes_after_fork();
    if (process.has_key) pthread_setspecific(process.key, nullptr);
    process.mutex.unlock();
}

void end_thread(void* stream) {
    Process& process = the_process();
    static_cast<Stream*>(stream)->close();
    local.stream = nullptr;
    const std::lock_guard guard(process.mutex);
    process.idle.push_back(static_cast<Stream*>(stream));
}

std::string line_of(const char* path) {
    std::string line;
    if (FILE* file = std::fopen(path, "re")) {
        char buffer[128];
        if (std::fgets(buffer, sizeof buffer, file) != nullptr) line = buffer;
        std::fclose(file);
    }
    while (!line.empty() && line.back() == '\n') line.pop_back();
    return line;
}

u64 clock_epoch() {
    u64 best = ~u64{0}, epoch = 0;
    for (int i = 0; i < 8; ++i) {
        const u64 before = host_ns();
        timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        const u64 after = host_ns();
        if (after - before < best) {
            best = after - before;
            epoch = static_cast<u64>(now.tv_sec) * 1'000'000'000 + static_cast<u64>(now.tv_nsec) - before - best / 2;
        }
    }
    return epoch;
}

// How far the system's clock may be off, ns, as the kernel knows it; -1: nothing corrects it.
i64 clock_error() {
    timex state{};
    const int found = adjtimex(&state);
    return found < 0 || found == TIME_ERROR || (state.status & STA_UNSYNC) != 0 ? -1 : i64{state.maxerror} * 1000;
}

int write_file(const std::string& path, const std::string& text) {
    if (!is_allowed(text.size())) return EFBIG;
    const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (file < 0) return errno;
    size_t done = 0;
    while (done < text.size()) {
        const ssize_t count = ::write(file, text.data() + done, text.size() - done);
        if (count < 0) {
            const int error = errno;
            ::close(file);
            return error;
        }
        done += static_cast<size_t>(count);
    }
    ::close(file);
    return 0;
}

std::string own_program() {
    char buffer[4096] = {};
    const ssize_t length = readlink("/proc/self/exe", buffer, sizeof buffer - 1);
    return length > 0 ? std::string(buffer, static_cast<size_t>(length)) : "";
}

// Makes the folder of this process with the description in it: HOST-PID, with a number behind it where that is taken, and
// the rank in front of it where the process has one.
int make_folder(Process& process) {
    TraceEnv facts;
    char buffer[4096] = {};
    gethostname(buffer, 255);
    facts.host = buffer;
    facts.program = own_program();
    facts.boot = line_of("/proc/sys/kernel/random/boot_id");
    facts.pid = static_cast<u32>(getpid());
    facts.epoch = clock_epoch();
    facts.clock_error = clock_error();
    facts.rank = process.rank;
    if (getrandom(facts.uuid, sizeof facts.uuid, GRND_NONBLOCK) != sizeof facts.uuid) {
        std::memcpy(facts.uuid, &facts.epoch, 8);
        std::memcpy(facts.uuid + 8, &facts.pid, 4);
    }
    std::string host = facts.host;
    for (char& c : host) {
        if (c == '/' || c == '.') c = '_';
    }
    const std::string rank = process.rank.number < 0 ? "" : "rank-" + std::to_string(process.rank.number) + "-";
    const std::string name = process.settings.output + "/" + rank + host + "-" + std::to_string(facts.pid);
    std::string folder = name;
    if (mkdir(process.settings.output.c_str(), 0777) != 0 && errno != EEXIST) return errno;
    for (int i = 2; mkdir(folder.c_str(), 0777) != 0; ++i) {
        if (errno != EEXIST || i > 100'000) return errno;
        folder = name + "-" + std::to_string(i);
    }
    // Readers take a folder for a trace once its description is whole.
    const std::string draft = folder + "/.metadata", final = folder + "/metadata";
    int error = write_file(draft, metadata(facts));
    if (error == 0 && std::rename(draft.c_str(), final.c_str()) != 0) error = errno;
    if (error != 0) return error;
    if (process.is_emptied) unlink(emptied_mark(process.settings).c_str());
    std::memcpy(process.uuid, facts.uuid, sizeof process.uuid);
    process.folder = folder;
    return 0;
}

}  // namespace

const Settings& settings() { return the_process().settings; }

void set_recording(bool on) {
    Process& process = the_process();
    if (process.settings.output.empty()) return;
    if (recording.load() == on) return;
    this_stream();  // which says how it was before
    if (recording.exchange(on) == on) return;
    emit<Record::region>(host_ns(), static_cast<u8>(on));
    for (size_t i = 0; i < function_count; ++i) {
        told[i].store(on && process.settings.host_calls && process.selected[i], std::memory_order_relaxed);
    }
    choose_routes();
}

bool has_other_threads() {
    Process& process = the_process();
    const std::lock_guard guard(process.mutex);
    return process.streams.size() > process.idle.size() + (local.stream != nullptr ? 1 : 0);
}

bool is_selected(Function function) {
    const Process& process = the_process();
    return process.settings.host_calls && process.selected[index(function)];
}

Stream* new_stream() {
    Process& process = the_process();
    if (local.refused || process.settings.output.empty()) return nullptr;
    Stream* stream = nullptr;
    bool is_first = false;
    {
        const std::lock_guard guard(process.mutex);
        if (process.folder.empty() && !process.folder_failed) {
            if (const int error = make_folder(process)) {
                process.folder_failed = true;
                output_failed(process.settings.output.c_str(), error);
            }
        }
        if (process.folder_failed || !process.has_key) {
            local.refused = true;
            return nullptr;
        }
        if (process.idle.empty()) {
            const u64 number = process.streams.size();
            is_first = number == 0;
            stream = new Stream(number, process.folder + "/stream_" + std::to_string(number), process.uuid);
            process.streams.push_back(stream);
        } else {
            stream = process.idle.back();
            process.idle.pop_back();
        }
    }
    // Not gettid(): a wheel has to build and load with glibc 2.28, which does not have it.
    stream->open(static_cast<u32>(syscall(SYS_gettid)));
    if (pthread_setspecific(process.key, stream) != 0) {
        local.refused = true;
        return nullptr;
    }
    local.stream = stream;
    // The first words of the process: whether it began inside of a region.
    if (is_first) emit<Record::region>(process.begin, static_cast<u8>(recording.load()));
    return stream;
}

void output_failed(const char* path, int error) {
    if (the_process().has_complained.exchange(true)) return;
    std::fprintf(stderr, "lanescope: warning: cannot write %s: %s; the program continues, events will be dropped\n", path,
                 strerror(error));
}

namespace {

// The environment is read before the program changes it.
__attribute__((constructor)) void begin() { the_process(); }

// The last words of the process, if it ends in order. Other threads may still be writing: their streams stay open.
__attribute__((destructor)) void end() {
    Process& process = the_process();
    std::string untimed;
    if (is_active()) {
        tracer::end();
        untimed = tracer::untimed_operations();
    }
    u64 events = 0, discarded = 0, bytes = 0, packets = 0, threads = 0;
    {
        const std::lock_guard guard(process.mutex);
        if (process.folder.empty()) return;
        for (const Stream* stream : process.streams) {
            events += stream->events();
            discarded += stream->discarded();
            bytes += stream->bytes();
            packets += stream->packets();
            threads += stream->threads();
        }
    }
    // For `lanescope record`, which names them; no part of the trace.
    if (!untimed.empty()) write_file(process.folder + "/.untimed", untimed);
    emit<Record::statistics>(host_ns(), events, discarded, bytes, static_cast<u32>(packets), static_cast<u32>(threads),
                             static_cast<u32>(process.mutex.waits() + tracer::lock_waits()));
    if (Stream* stream = local.stream) {
        if (process.has_key) pthread_setspecific(process.key, nullptr);
        end_thread(stream);
    }
}

}  // namespace

}  // namespace lanescope::levelzero

// Regions: see include/lanescope.h.
extern "C" __attribute__((visibility("default"))) void lanescope_ze_start() { lanescope::levelzero::set_recording(true); }
extern "C" __attribute__((visibility("default"))) void lanescope_ze_stop() { lanescope::levelzero::set_recording(false); }
