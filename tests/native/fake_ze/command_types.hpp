// How commands get into lists.
#pragma once

#include "scheduler.hpp"

namespace fake_ze {

// Have a list to oneself: two threads in calls that change one list is a mistake of theirs.
class Exclusive {
public:
    Exclusive(List& list, const char* function);
    ~Exclusive();
    Exclusive(const Exclusive&) = delete;
    Exclusive& operator=(const Exclusive&) = delete;

private:
    List& list_;
};

// Append a command: record it, or submit it if the list is immediate. Fills in signal, waits and place.
ze_result_t append(ze_command_list_handle_t list, Command command, ze_event_handle_t signal, uint32_t count,
                   ze_event_handle_t* waits);

// While an immediate list is captured, take the command into the graph; `is_captured` says so.
ze_result_t capture(List& list, Command& command, bool& is_captured);

// ... and what closed lists hold. The graph keeps it, whatever becomes of them.
void capture_lists(List& list, uint32_t number, ze_command_list_handle_t* lists);

// Whether these lists can be executed now; says what is wrong with them.
ze_result_t check_executable(const char* function, uint32_t number, ze_command_list_handle_t* lists, uint32_t ordinal);

// One more run of each of these lists.
std::vector<Submission> submissions_of(uint32_t number, ze_command_list_handle_t* lists);

}  // namespace fake_ze
