// Which calls of the driver come while the calling thread holds a lock of the recorder's.
#pragma once

// Note, from now on, each call that is not allowed then. Needs the driver's fake_ze_on_call.
void watch_locks(void (*on_call)(void (*)(const char*)));

// Note how many locks were seen.
void tell_locks();
