// A program with children: one that goes on as it is, one that runs another program, and threads that come and go.
//   forks CHILD_CALLS PROGRAM [ARGUMENT...]
#include <level_zero/ze_api.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <thread>

namespace {

void call(int times) {
    for (int i = 0; i < times; ++i) zeInit(0);
}

int wait_for(pid_t child) {
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 100;
}

}  // namespace

int main(int, char** arguments) {
    call(3);
    pid_t child = fork();
    if (child == 0) {
        call(std::atoi(arguments[1]));
        std::exit(0);
    }
    if (wait_for(child) != 0) return 1;
    child = fork();
    if (child == 0) {
        execv(arguments[2], arguments + 2);
        _exit(99);
    }
    if (wait_for(child) != 0) return 2;
    for (int i = 0; i < 20; ++i) std::thread(call, 2).join();
    call(4);
    return 0;
}
