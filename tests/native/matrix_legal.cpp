// Says which random programs are legal: a small model of a device, which knows what Level Zero promises and no more. It
// runs a program under many schedules; where one of them breaks a rule or comes to no end the program is not used.
//
// Reads from its input, again and again
//   program ORDER RESETS SCHEDULES   order of starts (free, list, engine) and what host resets do (works, sticky, view)
//   ...                              lines as matrix/program.cpp reads them
//   end
// and answers each with a line: 1 legal, 0 not.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace {

using Numbers = std::vector<int>;
enum class Role { plain, barrier, wait };

struct Command {
    Role role = Role::plain;
    int signal = -1;
    Numbers waits;

    bool uses(int event) const {
        return event == signal || std::find(waits.begin(), waits.end(), event) != waits.end();
    }
};

enum class What { append, close, reset, destroy, execute, sync_stream, sync_fence, sync_event, host_signal, host_reset, renew };

struct Step {
    What what;
    int target = -1;  // list, stream or event
    Command command;  // of append
    Numbers lists;    // of execute
};

struct ListKind {
    bool immediate, in_order;
    int engine;
};

struct Program {
    std::vector<ListKind> lists;
    std::vector<int> engine_of;  // of each stream: lists first, then queues
    std::vector<bool> has_ticks;
    std::vector<std::vector<Step>> threads;
};

// --- reading

[[noreturn]] void refuse(const std::string& line) {
    std::fprintf(stderr, "matrix_legal: cannot read: %s\n", line.c_str());
    std::exit(2);
}

class Parser {
public:
    void take(const std::string& line) {
        std::istringstream parts(line);
        std::vector<std::string> words;
        for (std::string word; parts >> word;) words.push_back(word);
        if (words.empty()) return;
        const std::string& what = words[0];
        if (what == "list") {
            lists_[words[1]] = static_cast<int>(made.lists.size());
            made.lists.push_back({words[2] == "immediate", words[3] == "in-order", engine(words[4])});
            made.engine_of.push_back(engine(words[4]));
        } else if (what == "queue") {
            queues_[words[1]] = static_cast<int>(made.engine_of.size());
            made.engine_of.push_back(engine(words[2]));
        } else if (what == "event") {
            events_[words[1]] = static_cast<int>(made.has_ticks.size());
            made.has_ticks.push_back(words[2] == "ticks");
        } else if (what == "thread") {
            made.threads.emplace_back();
        } else {
            made.threads.back().push_back(step(words, line));
        }
    }

    Program made;

private:
    static int engine(const std::string& name) { return name == "compute" ? 0 : 1; }

    Numbers events(const std::string& names) const {
        Numbers found;
        std::istringstream parts(names);
        for (std::string name; std::getline(parts, name, ',');) {
            if (name != "-") found.push_back(events_.at(name));
        }
        return found;
    }

    Step step(const std::vector<std::string>& words, const std::string& line) const {
        const std::string& what = words[0];
        const auto list = [&] { return lists_.at(words[1]); };
        const auto event = [&](size_t place) { return words[place] == "-" ? -1 : events_.at(words[place]); };
        if (what == "op" || what == "barrier") {
            return {What::append, list(), {what == "op" ? Role::plain : Role::barrier, event(3), events(words[4])}, {}};
        }
        if (what == "signal") return {What::append, list(), {Role::plain, event(2), {}}, {}};
        if (what == "wait") return {What::append, list(), {Role::wait, -1, events(words[2])}, {}};
        if (what == "close") return {What::close, list(), {}, {}};
        if (what == "reset") return {What::reset, list(), {}, {}};
        if (what == "destroy") return {What::destroy, list(), {}, {}};
        if (what == "execute") {
            Step made_step = {What::execute, queues_.at(words[1]), {}, {}};
            for (size_t i = 2; i < words.size(); ++i) made_step.lists.push_back(lists_.at(words[i]));
            return made_step;
        }
        if (what == "sync_list") return {What::sync_stream, list(), {}, {}};
        if (what == "sync_queue") return {What::sync_stream, queues_.at(words[1]), {}, {}};
        if (what == "sync_fence") return {What::sync_fence, list(), {}, {}};
        if (what == "sync_event" || what == "poll") return {What::sync_event, event(1), {}, {}};
        if (what == "host_signal") return {What::host_signal, event(1), {}, {}};
        if (what == "host_reset") return {What::host_reset, event(1), {}, {}};
        if (what == "renew") return {What::renew, event(1), {}, {}};
        refuse(line);
    }

    std::map<std::string, int> lists_, queues_, events_;
};

// --- the model

struct Illegal {};

class Model {
public:
    Model(const Program& program, std::string_view order, std::string_view resets, uint64_t seed)
        : program_(program), is_free_(order == "free"), by_engine_(order == "engine"), is_sticky_(resets == "sticky"),
          is_view_(resets == "view"), random_(seed), signalled_(program.has_ticks.size()),
          stuck_(program.has_ticks.size()), lists_(program.lists.size()), streams_(program.engine_of.size()),
          fences_(program.lists.size()), has_fence_(program.lists.size()) {}

    // Run the program once: whether it comes to an end. Throws Illegal if it breaks a rule.
    bool ends() {
        std::vector<Thread> waiting;
        for (const auto& steps : program_.threads) waiting.push_back({&steps, chance()});
        // Real schedules are unfair: one thread goes as far as it can before another begins, or the device is slow.
        const bool is_fair = chance() < 0.5;
        constexpr double speeds[] = {0.0, 0.2, 0.5, 0.9, 1.0};
        const double speed = speeds[random_() % std::size(speeds)];
        std::vector<size_t> moves;
        while (!waiting.empty()) {
            moves.clear();
            for (size_t i = 0; i < waiting.size(); ++i) {
                if (may_go_on(waiting[i])) moves.push_back(i);
            }
            find_acts();
            if (moves.empty() && acts_.empty()) return false;
            if (moves.empty() || (!acts_.empty() && chance() >= speed)) {
                act();
                continue;
            }
            size_t chosen = moves[random_() % moves.size()];
            if (!is_fair) {
                chosen = *std::min_element(moves.begin(), moves.end(), [&](size_t one, size_t other) {
                    return waiting[one].priority < waiting[other].priority;
                });
            }
            Thread& thread = waiting[chosen];
            if (thread.next == thread.steps->size()) {
                waiting.erase(waiting.begin() + static_cast<ptrdiff_t>(chosen));
            } else {
                run(thread, (*thread.steps)[thread.next++]);
            }
        }
        for (find_acts(); !acts_.empty(); find_acts()) act();
        return std::all_of(streams_.begin(), streams_.end(), [](const Numbers& stream) { return stream.empty(); });
    }

private:
    struct Instance {
        Command command;
        int owner;
        bool started = false, over = false;
    };
    struct Act {
        int stream, instance;
    };
    struct Thread {
        const std::vector<Step>* steps;
        double priority;
        size_t next = 0;
        Numbers awaited = {};  // instances
        int event = -1;
    };
    struct List {
        bool open = true, alive = true;
        std::vector<Command> body;
    };

    double chance() { return static_cast<double>(random_() >> 11) * 0x1p-53; }

    bool may_go_on(const Thread& thread) const {
        if (thread.event >= 0 && !signalled_[index(thread.event)] && !stuck_[index(thread.event)]) return false;
        return std::all_of(thread.awaited.begin(), thread.awaited.end(), [&](int i) { return at(i).over; });
    }

    static size_t index(int number) { return static_cast<size_t>(number); }
    const Instance& at(int number) const { return instances_[index(number)]; }
    const ListKind& kind(int list) const { return program_.lists[index(list)]; }

    // --- the device

    void find_acts() {
        acts_.clear();
        for (size_t stream = 0; stream < streams_.size(); ++stream) {
            for (size_t place = 0; place < streams_[stream].size(); ++place) {
                const int number = streams_[stream][place];
                if (at(number).started || may_start(stream, place)) acts_.push_back({static_cast<int>(stream), number});
            }
        }
    }

    bool may_start(size_t stream, size_t place) const {
        const int number = streams_[stream][place];
        const Instance& instance = at(number);
        for (const int event : instance.command.waits) {
            if (!signalled_[index(event)]) return false;
        }
        for (size_t i = 0; i < place; ++i) {
            const Instance& earlier = at(streams_[stream][i]);
            if (kind(instance.owner).in_order && earlier.owner == instance.owner) return false;
            if (earlier.command.role != Role::plain) return false;
            if (instance.command.role == Role::barrier && instance.command.waits.empty()) return false;
            if (!is_free_ && !earlier.started) return false;
        }
        if (!by_engine_) return true;
        for (size_t other = 0; other < streams_.size(); ++other) {
            if (program_.engine_of[other] != program_.engine_of[stream]) continue;
            // Instances are numbered as they are submitted.
            for (const int earlier : streams_[other]) {
                if (earlier < number && !at(earlier).started) return false;
            }
        }
        return true;
    }

    void act() {
        const Act chosen = acts_[random_() % acts_.size()];
        Instance& instance = instances_[index(chosen.instance)];
        if (!instance.started) {
            instance.started = true;
            return;
        }
        Numbers& stream = streams_[index(chosen.stream)];
        stream.erase(std::find(stream.begin(), stream.end(), chosen.instance));
        instance.over = true;
        if (instance.command.signal >= 0) signalled_[index(instance.command.signal)] = true;
    }

    int submit(int stream, int owner, const Command& command) {
        instances_.push_back({command, owner});
        const int number = static_cast<int>(instances_.size()) - 1;
        streams_[index(stream)].push_back(number);
        return number;
    }

    // --- the program

    template <class Test>
    bool any_queued(Test test) const {
        for (const Numbers& stream : streams_) {
            for (const int number : stream) {
                if (test(at(number))) return true;
            }
        }
        return false;
    }

    void require_idle(int list) const {
        if (any_queued([&](const Instance& instance) { return instance.owner == list; })) throw Illegal();
    }

    void reset_event(int number, bool is_new) {
        const size_t event = index(number);
        if (any_queued([&](const Instance& instance) { return instance.command.uses(number); })) throw Illegal();
        if (is_new) {
            for (const List& list : lists_) {
                for (const Command& command : list.body) {
                    if (command.uses(number)) throw Illegal();
                }
            }
        }
        const bool has_ticks = program_.has_ticks[event] && !is_new;
        if (has_ticks && is_sticky_) return;
        stuck_[event] = has_ticks && is_view_ && (signalled_[event] || stuck_[event]);
        signalled_[event] = false;
    }

    void run(Thread& thread, const Step& step) {
        thread.awaited.clear();
        thread.event = -1;
        const size_t target = index(step.target);
        switch (step.what) {
            case What::append: {
                List& list = lists_[target];
                if (!list.alive || !list.open) throw Illegal();
                if (kind(step.target).immediate) {
                    submit(step.target, step.target, step.command);
                } else {
                    list.body.push_back(step.command);
                }
                break;
            }
            case What::close: lists_[target].open = false; break;
            case What::reset:
                require_idle(step.target);
                lists_[target].body.clear();
                lists_[target].open = true;
                break;
            case What::destroy:
                require_idle(step.target);
                lists_[target].body.clear();
                lists_[target].alive = false;
                break;
            case What::execute: {
                for (const int list : step.lists) {
                    if (lists_[index(list)].open || !lists_[index(list)].alive) throw Illegal();
                    require_idle(list);
                }
                Numbers& fence = fences_[index(step.lists[0])];
                fence.clear();
                has_fence_[index(step.lists[0])] = true;
                for (const int list : step.lists) {
                    for (const Command& command : lists_[index(list)].body) {
                        fence.push_back(submit(step.target, list, command));
                    }
                }
                break;
            }
            case What::sync_stream: thread.awaited = streams_[target]; break;
            case What::sync_fence:
                if (!has_fence_[target]) throw Illegal();
                thread.awaited = fences_[target];
                break;
            case What::sync_event: thread.event = step.target; break;
            case What::host_signal: signalled_[target] = true; break;
            case What::host_reset: reset_event(step.target, false); break;
            case What::renew: reset_event(step.target, true); break;
        }
    }

    const Program& program_;
    bool is_free_, by_engine_, is_sticky_, is_view_;
    std::mt19937_64 random_;
    std::vector<bool> signalled_;
    std::vector<bool> stuck_;  // the host sees these signalled although the device does not
    std::vector<List> lists_;
    std::vector<Numbers> streams_;
    std::vector<Numbers> fences_;
    std::vector<bool> has_fence_;
    std::vector<Instance> instances_;
    std::vector<Act> acts_;
};

bool is_legal(const Program& program, const std::string& order, const std::string& resets, uint64_t schedules) {
    try {
        for (uint64_t seed = 0; seed < schedules; ++seed) {
            if (!Model(program, order, resets, seed).ends()) return false;
        }
    } catch (const Illegal&) {
        return false;
    }
    return true;
}

}  // namespace

int main() {
    for (std::string line; std::getline(std::cin, line);) {
        std::istringstream request(line);
        std::string word, order, resets;
        uint64_t schedules = 0;
        if (!(request >> word >> order >> resets >> schedules) || word != "program") refuse(line);
        Parser parser;
        while (std::getline(std::cin, line) && line != "end") parser.take(line);
        std::puts(is_legal(parser.made, order, resets, schedules) ? "1" : "0");
        std::fflush(stdout);
    }
    return 0;
}
