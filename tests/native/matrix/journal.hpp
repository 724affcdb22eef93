// What the program did, for the test that compares it with the driver's truth and with the recording: lines of words,
// written to MATRIX_JOURNAL when the program ends.
//
//   op TID MARK LIST LIFE ENGINE SIGNAL API KERNEL GROUPS   a command that takes time was appended
//   ticks MARK[,MARK...] RUN START END CSTART CEND          the program asked for its event's timestamps: those of the
//                                                           command that ended last
//   written MARK RUN START END CSTART CEND                  a query in a list has written them: those of that command
//   due TID NUMBER MARK RUN   before its NUMBER-th zeDriverGetApiVersion this thread has seen that run end
//   level STAGE NAME VALUE    a count of the driver's, or the bytes of the heap
//   unseen N                  so many operations ran, or will, where the recorder cannot see it
//   lock CALL                 a call of the driver's under a lock of the recorder's
//   locks N                   how often the recorder took a lock
//
// Threads do not meet in here: a lock of ours would hide races of the recorder's.
#pragma once

#include <level_zero/ze_api.h>

#include <cstddef>
#include <string>

void note(const std::string& line);

// Note what a query has written, which must be the timestamps of that run of that command.
void tell_written(const std::string& mark, const ze_kernel_timestamp_result_t& found, const std::string& run = "1");

// The number of this thread.
std::string thread_number();

// Bytes of this thread's notes.
size_t noted();

// Write all lines; threads have ended.
void write_journal();
