/* lanescope.h is C as old as C99. */
#include <lanescope.h>

int both(void);
int both(void) { return lanescope_start() + lanescope_stop(); }
