#include "objects.hpp"

#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace lanescope::levelzero {

std::atomic<u64> list_generation = 1;

namespace {

struct Objects {
    Mutex mutex;  // guards all of it
    std::unordered_map<Handle, List> lists;
    u32 last_list = 0;
    std::unordered_set<Handle> devices;
    std::unordered_map<Handle, std::vector<Address>> globals;
};

// Never destroyed: calls come until the very end.
Objects& objects() {
    static Objects* made = new Objects;
    return *made;
}

void change() { list_generation.fetch_add(1, std::memory_order_release); }

}  // namespace

List add_list(Handle list, List known) {
    Objects& all = objects();
    const std::lock_guard guard(all.mutex);
    known.id = ++all.last_list;
    all.lists[list] = known;
    change();
    return known;
}

List renew_list(Handle list) {
    Objects& all = objects();
    const std::lock_guard guard(all.mutex);
    const auto found = all.lists.find(list);
    if (found == all.lists.end()) return {};
    found->second.id = ++all.last_list;
    found->second.runs = 0;
    change();
    return found->second;
}

List take_list(Handle list) {
    Objects& all = objects();
    const std::lock_guard guard(all.mutex);
    const auto found = all.lists.find(list);
    if (found == all.lists.end()) return {};
    const List known = found->second;
    all.lists.erase(found);
    change();
    return known;
}

void put_list_back(Handle list, const List& known) {
    Objects& all = objects();
    const std::lock_guard guard(all.mutex);
    all.lists.emplace(list, known);
    change();
}

List find_list(Handle list) {
    Objects& all = objects();
    const std::lock_guard guard(all.mutex);
    const auto found = all.lists.find(list);
    return found == all.lists.end() ? List{} : found->second;
}

Used look_up_list(Handle list) {
    Objects& all = objects();
    const std::lock_guard guard(all.mutex);
    const auto found = all.lists.find(list);
    if (found == all.lists.end()) return {0, true};
    local.list = list;
    local.list_id = found->second.id;
    local.immediate = found->second.immediate;
    local.generation = list_generation.load(std::memory_order_relaxed);
    return {local.list_id, local.immediate};
}

List count_run(Handle list) {
    Objects& all = objects();
    const std::lock_guard guard(all.mutex);
    const auto found = all.lists.find(list);
    if (found == all.lists.end()) return {};
    ++found->second.runs;
    return found->second;
}

bool is_new_device(Handle device) {
    Objects& all = objects();
    const std::lock_guard guard(all.mutex);
    return all.devices.insert(device).second;
}

void add_global(Handle module, Address base) {
    Objects& all = objects();
    const std::lock_guard guard(all.mutex);
    all.globals[module].push_back(base);
}

bool remove_global(Handle module, Address& base) {
    Objects& all = objects();
    const std::lock_guard guard(all.mutex);
    const auto found = all.globals.find(module);
    if (found == all.globals.end()) return false;
    if (found->second.empty()) {
        all.globals.erase(found);
        return false;
    }
    base = found->second.back();
    found->second.pop_back();
    return true;
}

}  // namespace lanescope::levelzero
