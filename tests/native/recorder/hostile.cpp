// A program that does what breaks recorders: `hostile WAY [ARGUMENT...]`. It opens the loader by itself, and says at the
// end what came of its calls, so that a run with the recorder can be compared with one without.
//   spawn       children by vfork, posix_spawn, and a fork of a thread that goes on without exec
//   thread      a thread ends the process by _exit while others append
//   exit        a thread ends the process in order while the main one waits
//   now, abort  leaves by _exit or by abort
//   signals     a timer interrupts calls thousands of times
//   crowd       600 threads at once
//   inits       ten thousand calls of zeInit
//   close       opens and closes the loader around each use
//   bare        empties its environment before it opens the loader, as daemons do
#include <dlfcn.h>
#include <level_zero/ze_api.h>
#include <signal.h>
#include <spawn.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <barrier>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

extern char** environ;

namespace {

void* library = nullptr;

template <class F>
F* of(const char* name) {
    auto* found = reinterpret_cast<F*>(dlsym(library, name));
    if (found == nullptr) {
        std::fprintf(stderr, "no %s\n", name);
        std::exit(90);
    }
    return found;
}
#define CALL(function) of<decltype(function)>(#function)

void require(ze_result_t result, const char* what) {
    if (result == ZE_RESULT_SUCCESS) return;
    std::fprintf(stderr, "%s: 0x%x\n", what, static_cast<unsigned>(result));
    std::exit(91);
}
#define CHECK(function, ...) require(CALL(function)(__VA_ARGS__), #function)

void open_loader() {
    library = dlopen("libze_loader.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
        std::fprintf(stderr, "%s\n", dlerror());
        std::exit(92);
    }
    CHECK(zeInit, 0);
}

struct Device {
    ze_context_handle_t context = nullptr;
    ze_device_handle_t device = nullptr;

    Device() {
        uint32_t one = 1;
        ze_driver_handle_t driver;
        CHECK(zeDriverGet, &one, &driver);
        one = 1;
        CHECK(zeDeviceGet, driver, &one, &device);
        const ze_context_desc_t desc = {ZE_STRUCTURE_TYPE_CONTEXT_DESC, nullptr, 0};
        CHECK(zeContextCreate, driver, &desc, &context);
    }

    // Barriers on an immediate list, and a wait for the last one.
    int work(int barriers) const {
        ze_command_queue_desc_t desc = {};
        desc.stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC;
        desc.mode = ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS;
        ze_command_list_handle_t list;
        CHECK(zeCommandListCreateImmediate, context, device, &desc, &list);
        const ze_event_pool_desc_t of_pool = {ZE_STRUCTURE_TYPE_EVENT_POOL_DESC, nullptr, ZE_EVENT_POOL_FLAG_HOST_VISIBLE, 1};
        const ze_event_desc_t of_event = {ZE_STRUCTURE_TYPE_EVENT_DESC, nullptr, 0, ZE_EVENT_SCOPE_FLAG_HOST, 0};
        ze_event_pool_handle_t pool;
        ze_event_handle_t event;
        CHECK(zeEventPoolCreate, context, &of_pool, 0, nullptr, &pool);
        CHECK(zeEventCreate, pool, &of_event, &event);
        for (int i = 0; i < barriers; ++i) {
            CHECK(zeCommandListAppendBarrier, list, i + 1 == barriers ? event : nullptr, 0, nullptr);
        }
        CHECK(zeEventHostSynchronize, event, UINT64_MAX);
        CHECK(zeEventDestroy, event);
        CHECK(zeEventPoolDestroy, pool);
        CHECK(zeCommandListDestroy, list);
        return barriers;
    }
};

int status_of(pid_t child) {
    int status = -1;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

void spawn(char* self) {
    char child_way[] = "child";
    char* const command[] = {self, child_way, nullptr};
    const Device device;
    std::printf("own %d\n", device.work(3));
    std::fflush(stdout);
    pid_t child = vfork();
    if (child == 0) {
        execv(self, command);
        _exit(99);
    }
    std::printf("vfork %d\n", status_of(child));
    posix_spawn(&child, self, nullptr, nullptr, command, environ);
    std::printf("posix_spawn %d\n", status_of(child));
    std::fflush(stdout);
    // The others of the process are in the middle of calls.
    std::atomic<bool> is_over = false;
    std::thread busy([&] {
        while (!is_over) device.work(20);
    });
    std::thread([&] {
        for (int i = 0; i < 10; ++i) {
            child = fork();
            if (child == 0) {
                for (int n = 0; n < 5; ++n) CALL(zeInit)(0);
                std::_Exit(7);
            }
            if (const int status = status_of(child); status != 7) std::printf("fork %d\n", status);
        }
    }).join();
    is_over = true;
    busy.join();
    std::printf("own %d\n", device.work(3));
}

std::atomic<int> alarms = 0;

void signals() {
    const Device device;
    struct sigaction action = {};
    action.sa_handler = [](int) { ++alarms; };
    action.sa_flags = SA_RESTART;
    sigaction(SIGALRM, &action, nullptr);
    const itimerval often = {{0, 100}, {0, 100}};
    setitimer(ITIMER_REAL, &often, nullptr);
    int done = 0;
    while (alarms < 1000) done += device.work(50) == 50 ? 0 : 1;
    const itimerval never = {};
    setitimer(ITIMER_REAL, &never, nullptr);
    std::printf("wrong %d\n", done);
}

void crowd() {
    constexpr int threads = 600;
    const Device device;
    std::barrier all(threads);
    std::atomic<int> done = 0;
    std::vector<std::thread> running;
    for (int i = 0; i < threads; ++i) {
        running.emplace_back([&] {
            CALL(zeInit)(0);
            all.arrive_and_wait();
            done += device.work(4);
            all.arrive_and_wait();
        });
    }
    for (auto& thread : running) thread.join();
    std::printf("barriers %d\n", done.load());
}

[[noreturn]] void leave_by_thread() {
    const Device device;
    std::atomic<int> rounds = 0;
    for (int i = 0; i < 3; ++i) {
        std::thread([&] {
            while (true) {
                device.work(10);
                ++rounds;
            }
        }).detach();
    }
    std::thread([&] {
        while (rounds < 20) std::this_thread::yield();
        std::puts("leaves");
        std::fflush(stdout);
        // The driver is taken down under the others, which is theirs to bear: they must not run on.
        _exit(5);
    }).detach();
    while (true) pause();
}

}  // namespace

int main(int count, char** arguments) {
    const std::string way = count > 1 ? arguments[1] : "";
    if (way == "bare") {
        // What the loader needs to find the driver is put back.
        std::vector<std::string> kept;
        for (char** at = environ; *at != nullptr; ++at) {
            if (std::strncmp(*at, "ZE_ENABLE_ALT_DRIVERS=", 22) == 0) kept.emplace_back(*at);
        }
        clearenv();
        for (std::string& each : kept) putenv(each.data());
        open_loader();
        std::printf("own %d\n", Device().work(3));
        usleep(300'000);  // long enough to be seen from outside
        return 0;
    }
    if (way == "close") {
        for (int i = 0; i < 20; ++i) {
            open_loader();
            std::printf("own %d\n", Device().work(3));
            dlclose(library);
        }
        return 0;
    }
    open_loader();
    if (way == "child") {
        Device().work(2);
        return 7;
    }
    if (way == "spawn") spawn(arguments[0]);
    if (way == "signals") signals();
    if (way == "crowd") crowd();
    if (way == "thread") leave_by_thread();
    if (way == "now" || way == "abort") {
        std::printf("own %d\n", Device().work(3));
        std::fflush(stdout);
        if (way == "abort") std::abort();
        _exit(6);
    }
    if (way == "exit") {
        // exit() of a thread, with the main one in a wait.
        const Device device;
        std::thread([&] {
            std::printf("own %d\n", device.work(3));
            std::exit(4);
        }).detach();
        while (true) pause();
    }
    if (way == "inits") {
        int failed = 0;
        for (int i = 0; i < 10'000; ++i) failed += CALL(zeInit)(0) != ZE_RESULT_SUCCESS;
        std::printf("failed %d, own %d\n", failed, Device().work(3));
    }
    return 0;
}
