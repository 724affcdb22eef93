// Emits events of all kinds from two threads: `program ROUNDS [BURST]`; a burst overflows small buffers. The program stops
// before it and in its middle: whoever records it keeps LTTng from emptying the buffers until the second time.
// No text has a length of 0: babeltrace2 2.0.4 shows the text before in its place.
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "program_tp.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

static int rounds;

static void *work(void *argument) {
    const int thread = (int)(intptr_t)argument;
    static const uint16_t many[] = {1, 2, 0xFFFF, 4, 5, 6};
    for (int i = 0; i < rounds; ++i) {
        lttng_ust_tracepoint(program, work_entry, i);
        lttng_ust_tracepoint(program, numbers, i * 7 - 50 - thread, ~(uint64_t)i, i / 3.0f, -i / 7.0);
        lttng_ust_tracepoint(program, step_begin, i);
        lttng_ust_tracepoint(program, texts, i % 2 ? "an \"odd\" text\n" : "even", (unsigned)(i % 5) + 1, many);
        lttng_ust_tracepoint(program, nothing);
        lttng_ust_tracepoint(program, step_end, i);
        lttng_ust_tracepoint(program, work_exit, i);
        if (i % 16 == 15) usleep(200);
    }
    return 0;
}

int main(int count, char **arguments) {
    rounds = count > 1 ? atoi(arguments[1]) : 20;
    const int burst = count > 2 ? atoi(arguments[2]) : 0;
    pthread_t other;
    pthread_create(&other, 0, work, (void *)1);
    work(0);
    pthread_join(other, 0);
    for (int i = 0; i < burst; ++i) {
        if (i == 0 || i == burst / 2) raise(SIGSTOP);
        lttng_ust_tracepoint(program, texts, "a burst of events", 5, (const uint16_t[]){1, 2, 3, 4, 5, 6});
    }
    return 0;
}
