/* Regions of interest for `lanescope record`: calls between lanescope_start and lanescope_stop are recorded, all
 * else is not when the program runs under `lanescope record --start-paused`, or after a lanescope_stop.
 *
 * Nothing to link with: in a program that is not recorded both do nothing and return 0. Link with -ldl where the C
 * library is older than glibc 2.34. The switch is the process's: one for all threads. Device operations that are under
 * way when it changes belong to where they were appended (immediate lists) or executed (regular ones).
 */
#ifndef LANESCOPE_H
#define LANESCOPE_H

#include <dlfcn.h>
#include <stdlib.h>

/* Calls a function of the recorder; returns 1 if there is a recorder. */
static inline int lanescope_call(const char *name) {
    const char *path = getenv("LANESCOPE_ZE_LIBRARY");
    void *library = path != NULL && path[0] != 0 ? dlopen(path, RTLD_LAZY | RTLD_LOCAL) : NULL;
    void (*function)(void) = NULL;
    if (library != NULL) *(void **)&function = dlsym(library, name);
    if (function == NULL) return 0;
    function();
    return 1;
}

static inline int lanescope_start(void) { return lanescope_call("lanescope_ze_start"); }
static inline int lanescope_stop(void) { return lanescope_call("lanescope_ze_stop"); }

#endif
