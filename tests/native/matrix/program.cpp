// Runs a random program: a text of words, a line each.
//
//   list NAME immediate|regular in-order|out-of-order compute|copy
//   queue NAME compute|copy
//   event NAME ticks|plain|counter     counter: with timestamps, signalled by in-order lists only, and never reset
//   thread                             what follows is done by one more thread
//   op|barrier LIST MARK SIGNAL WAITS  SIGNAL and WAITS: names of events with commas, or -
//   query LIST MARK EVENT SIGNAL WAITS the device writes the timestamps of EVENT
//   tell MARK OF RUN                   note what that query has written: it must be those of run RUN of the command OF
//   ticks EVENT OF RUN                 the same, of what the host reads
//   signal|event_reset LIST EVENT; wait LIST WAITS
//   close|reset|destroy LIST
//   execute QUEUE LIST...            in one call; with the fence of the first one
//   sync_list LIST; sync_queue QUEUE; sync_fence LIST; sync_event|poll EVENT
//   host_reset|host_signal|renew EVENT
//   next                             what follows is another program, with a context of its own
//
// At the end all lists and queues are waited for. All threads begin together.
#include <barrier>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <thread>

#include "journal.hpp"
#include "rows.hpp"

namespace {

using Words = std::vector<std::string>;

class Program {
public:
    explicit Program(World& world) : world_(world) {}

    void declare(const Words& words) {
        if (words[0] == "event") {
            const bool is_counter = words[2] == "counter";
            events_[words[1]] = std::make_unique<Event>(world_, words[1], words[2] != "plain", is_counter);
        } else if (words[0] == "list") {
            const Shape shape = {words[2] == "immediate", words[3] == "in-order", words[4] == "compute"};
            lists_[words[1]] = std::make_unique<Work>(world_, words[1], shape);
            if (!shape.immediate) fences_[words[1]] = nullptr;
        } else {
            ze_command_queue_desc_t desc = {};
            desc.stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC;
            desc.ordinal = words[2] == "compute" ? 0 : 1;
            desc.mode = ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS;
            CHECK(zeCommandQueueCreate, world_.context(), world_.device(), &desc, &queues_[words[1]]);
        }
    }

    void prepare(const Words& words) {
        if (words[0] == "op") {
            world_.kernel(words[2]);
        } else if (words[0] == "query") {
            queries_[words[2]] = static_cast<ze_kernel_timestamp_result_t*>(world_.memory(sizeof(ze_kernel_timestamp_result_t)));
        } else if (words[0] == "execute") {
            // Fences of a list's runs, on the queue that they run on.
            auto& fence = fences_.at(words[2]);
            const ze_fence_desc_t desc = {ZE_STRUCTURE_TYPE_FENCE_DESC, nullptr, 0};
            if (fence == nullptr) CHECK(zeFenceCreate, queues_.at(words[1]), &desc, &fence);
        }
    }

    void run(const Words& words) {
        const std::string& what = words[0];
        if (what == "op" || what == "barrier") {
            const Event* signal = words[3] == "-" ? nullptr : events_.at(words[3]).get();
            if (what == "op") {
                lists_.at(words[1])->op(words[2], signal, several(words[4]));
            } else {
                lists_.at(words[1])->barrier(words[2], signal, several(words[4]));
            }
        } else if (what == "query") {
            query(words);
        } else if (what == "tell") {
            tell_written(words[2], *queries_.at(words[1]), words[3]);
        } else if (what == "ticks") {
            events_.at(words[1])->tell_ticks(words[2], std::stoi(words[3]));
        } else if (what == "event_reset") {
            lists_.at(words[1])->reset_event(*events_.at(words[2]));
        } else if (what == "signal") {
            lists_.at(words[1])->signal(*events_.at(words[2]));
        } else if (what == "wait") {
            lists_.at(words[1])->wait_on(several(words[2]));
        } else if (what == "close") {
            lists_.at(words[1])->close();
        } else if (what == "reset") {
            lists_.at(words[1])->reset();
        } else if (what == "destroy") {
            lists_.at(words[1])->destroy();
        } else if (what == "execute") {
            std::vector<ze_command_list_handle_t> executed;
            for (size_t i = 2; i < words.size(); ++i) executed.push_back(lists_.at(words[i])->handle());
            ze_fence_handle_t fence = fences_.at(words[2]);
            CHECK(zeFenceReset, fence);
            CHECK(zeCommandQueueExecuteCommandLists, queues_.at(words[1]),
                  static_cast<uint32_t>(executed.size()), executed.data(), fence);
        } else if (what == "sync_list") {
            lists_.at(words[1])->sync();
        } else if (what == "sync_queue") {
            CHECK(zeCommandQueueSynchronize, queues_.at(words[1]), forever);
        } else if (what == "sync_fence") {
            CHECK(zeFenceHostSynchronize, fences_.at(words[1]), forever);
        } else {
            Event& event = *events_.at(words[1]);
            if (what == "sync_event") event.sync();
            else if (what == "poll") event.poll();
            else if (what == "host_reset") event.reset();
            else if (what == "host_signal") event.signal();
            else if (what == "renew") event.renew();
            else wrong("no step is called " + what);
        }
    }

    void finish() {
        for (auto& [name, queue] : queues_) CHECK(zeCommandQueueSynchronize, queue, forever);
        for (auto& [name, list] : lists_) {
            if (list->handle() != nullptr && list->shape().immediate) list->sync();
        }
        for (auto& [name, fence] : fences_) {
            if (fence != nullptr) CHECK(zeFenceDestroy, fence);
        }
        lists_.clear();
        for (auto& [name, queue] : queues_) CHECK(zeCommandQueueDestroy, queue);
        events_.clear();
    }

private:
    void query(const Words& words) {
        const Work& list = *lists_.at(words[1]);
        ze_event_handle_t asked = events_.at(words[3])->handle();
        const Event* signal = words[4] == "-" ? nullptr : events_.at(words[4]).get();
        std::vector<ze_event_handle_t> waits;
        for (const Event* event : several(words[5])) waits.push_back(event->handle());
        list.mark(words[2]);
        CHECK(zeCommandListAppendQueryKernelTimestamps, list.handle(), 1, &asked, queries_.at(words[2]), nullptr,
              signal == nullptr ? nullptr : signal->handle(), static_cast<uint32_t>(waits.size()), waits.data());
        list.appended(words[2], "zeCommandListAppendQueryKernelTimestamps", signal != nullptr);
    }

    std::vector<const Event*> several(const std::string& names) const {
        std::vector<const Event*> found;
        std::istringstream parts(names);
        for (std::string name; std::getline(parts, name, ',');) {
            if (name != "-") found.push_back(events_.at(name).get());
        }
        return found;
    }

    World& world_;
    std::map<std::string, std::unique_ptr<Event>> events_;
    std::map<std::string, std::unique_ptr<Work>> lists_;
    std::map<std::string, ze_command_queue_handle_t> queues_;
    std::map<std::string, ze_fence_handle_t> fences_;
    std::map<std::string, ze_kernel_timestamp_result_t*> queries_;  // what they write
};

void run_program(const std::vector<Words>& lines) {
    World world;
    Program program(world);
    std::vector<std::vector<Words>> threads;
    for (const Words& words : lines) {
        if (words[0] == "thread") {
            threads.emplace_back();
        } else if (threads.empty()) {
            program.declare(words);
        } else {
            program.prepare(words);
            threads.back().push_back(words);
        }
    }
    std::barrier start(static_cast<ptrdiff_t>(threads.size()));
    std::vector<std::thread> running;
    for (const auto& steps : threads) {
        running.emplace_back([&program, &start, &steps] {
            start.arrive_and_wait();
            for (const Words& words : steps) program.run(words);
        });
    }
    for (auto& thread : running) thread.join();
    program.finish();
}

}  // namespace

void interpret(const char* path) {
    std::vector<Words> lines;
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
        std::istringstream parts(line);
        Words words;
        for (std::string word; parts >> word;) words.push_back(word);
        if (words.empty()) continue;
        if (words[0] == "next") {
            run_program(lines);
            lines.clear();
        } else {
            lines.push_back(words);
        }
    }
    run_program(lines);
}
