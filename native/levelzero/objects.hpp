// What the recorder remembers of the program's objects.
#pragma once

#include "process.hpp"

namespace lanescope::levelzero {

// A command list. Its number counts from its creation or reset on: a handle may come back as another list, a number
// never does.
struct List {
    u32 id = 0;   // 0: not known
    u32 runs = 0;
    Handle context = nullptr, device = nullptr;
    u32 ordinal = 0, index = 0;
    bool immediate = true, in_order = false;
};

// Gives a list a number and remembers it.
List add_list(Handle list, List known);
// Gives a list that was emptied a new number; 0 when it is not known.
List renew_list(Handle list);
// Takes a list away that is about to be destroyed; and puts it back should that fail.
List take_list(Handle list);
void put_list_back(Handle list, const List& known);
List find_list(Handle list);
// Finds what operations need of a list; without a lock if the thread has used it last.
struct Used {
    u32 id;
    bool immediate;
};
Used look_up_list(Handle list);
// Changes whenever a list comes, goes or is renewed.
extern std::atomic<u64> list_generation;
inline Used use_list(Handle list) {
    if (local.list == list && local.generation == list_generation.load(std::memory_order_acquire)) {
        return {local.list_id, local.immediate};
    }
    return look_up_list(list);
}
// Counts an execution of a list, and returns it.
List count_run(Handle list);

// Whether nobody has asked for this device before.
bool is_new_device(Handle device);

// Remembers that memory belongs to a module, and finds what belonged to it.
void add_global(Handle module, Address base);
bool remove_global(Handle module, Address& base);

}  // namespace lanescope::levelzero
