#include "api/object_table.hpp"

#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace lanescope::levelzero {

namespace {

struct Objects {
    Mutex mutex;  // guards all of it
    std::unordered_set<Handle> devices;
    std::unordered_map<Handle, std::vector<Address>> globals;
};

// Never destroyed: calls come until the very end.
Objects& objects() {
    static Objects* made = new Objects;
    return *made;
}

}  // namespace

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
