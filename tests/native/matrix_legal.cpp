// Says which random programs are legal: a small model of a device, which knows what Level Zero promises and no more. It
// runs a program under many schedules; where one of them breaks a rule or comes to no end the program is not used.
//
// Reads from its input, again and again
//   program ORDER RESETS SCHEDULES   order of starts (free, list, engine) and what host resets do (works, sticky, view)
//   ...                              lines as matrix/program.cpp reads them
//   end
// and answers each with a line: 0 for a program that is not legal, or of which a query of timestamps reads now those of one
// command, now those of another; else 1, and for each question for timestamps (tell and ticks, thread by thread) the command
// that they must be of, as MARK:RUN, or - where that is not determined.
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
    Numbers waits = {};
    int mark = -1;    // one that has a time
    int resets = -1;  // this event
    int reads = -1;   // the timestamps of this one

    bool uses(int event) const {
        return event == signal || event == resets || event == reads ||
               std::find(waits.begin(), waits.end(), event) != waits.end();
    }
};

enum class What {
    append, close, reset, destroy, execute, sync_stream, sync_fence, sync_event, host_signal, host_reset, renew,
    tell,   // what a query has written
    ticks,  // of an event, asked by the host
};

struct Step {
    What what;
    int target = -1;  // list, stream, event or mark
    Command command;  // of append
    Numbers lists;    // of execute
    int question = -1;
};

struct ListKind {
    bool immediate, in_order;
    int engine;
};

struct EventKind {
    bool has_ticks, is_counter;
};

struct Program {
    std::vector<ListKind> lists;
    std::vector<int> engine_of;  // of each stream: lists first, then queues
    std::vector<EventKind> events;
    std::vector<std::vector<Step>> threads;
    std::vector<std::string> marks;
    int questions = 0;
};

// The run of a command whose timestamps something reads; a mark of -1: not determined.
struct Reading {
    int mark = -1, run = 0;

    bool operator==(const Reading&) const = default;
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
            events_[words[1]] = static_cast<int>(made.events.size());
            made.events.push_back({words[2] != "plain", words[2] == "counter"});
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

    int mark(const std::string& name) {
        const auto [at, is_new] = marks_.try_emplace(name, static_cast<int>(made.marks.size()));
        if (is_new) made.marks.push_back(name);
        return at->second;
    }

    Step step(const std::vector<std::string>& words, const std::string& line) {
        const std::string& what = words[0];
        const auto list = [&] { return lists_.at(words[1]); };
        const auto event = [&](size_t place) { return words[place] == "-" ? -1 : events_.at(words[place]); };
        if (what == "op" || what == "barrier") {
            const Role role = what == "op" ? Role::plain : Role::barrier;
            return {What::append, list(), {role, event(3), events(words[4]), mark(words[2])}, {}};
        }
        if (what == "query") {
            Command query = {Role::plain, event(4), events(words[5]), mark(words[2])};
            query.reads = event(3);
            return {What::append, list(), query, {}};
        }
        if (what == "event_reset") {
            Command reset;
            reset.resets = event(2);
            return {What::append, list(), reset, {}};
        }
        if (what == "tell") return {What::tell, mark(words[1]), {}, {}, made.questions++};
        if (what == "ticks") return {What::ticks, event(1), {}, {}, made.questions++};
        if (what == "signal") return {What::append, list(), {Role::plain, event(2)}, {}};
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

    std::map<std::string, int> lists_, queues_, events_, marks_;
};

// --- the model

struct Illegal {};

class Model {
public:
    Model(const Program& program, std::string_view order, std::string_view resets, uint64_t seed)
        : program_(program), is_free_(order == "free"), by_engine_(order == "engine"), is_sticky_(resets == "sticky"),
          is_view_(resets == "view"), random_(seed), signalled_(program.events.size()), stuck_(program.events.size()),
          signallers_(program.events.size()), lists_(program.lists.size()), streams_(program.engine_of.size()),
          fences_(program.lists.size()), has_fence_(program.lists.size()), newest_(program.marks.size(), -1),
          answers_(index(program.questions)),
          readings_(program.marks.size()) {
        // Events with a counter are born signalled.
        for (size_t event = 0; event < program.events.size(); ++event) {
            signalled_[event] = program.events[event].is_counter;
        }
    }

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

    const std::vector<Reading>& answers() const { return answers_; }
    // What queries have read: of each its runs in turn.
    const std::vector<std::vector<Reading>>& readings() const { return readings_; }

private:
    struct Instance {
        Command command;
        int owner, run;
        bool started = false, over = false;
        Reading reading = {};  // of a query
    };
    // Of an event: the instances that wrote its start and its end last, or -1.
    struct Signallers {
        int start = -1, end = -1;
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
        int runs = 0;
        std::vector<Command> body = {};
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
        const Command& command = instance.command;
        const Reading reading = command.reads >= 0 ? timestamps(command.reads) : Reading();
        if (!instance.started) {
            instance.started = true;
            instance.reading = reading;
            if (command.signal >= 0) signallers_[index(command.signal)].start = chosen.instance;
            return;
        }
        Numbers& stream = streams_[index(chosen.stream)];
        stream.erase(std::find(stream.begin(), stream.end(), chosen.instance));
        instance.over = true;
        if (instance.reading != reading) throw Illegal();
        if (command.reads >= 0) readings_[index(command.mark)].push_back(reading);
        if (command.resets >= 0) {
            signalled_[index(command.resets)] = stuck_[index(command.resets)] = false;
        }
        if (command.signal >= 0) {
            signalled_[index(command.signal)] = true;
            signallers_[index(command.signal)].end = chosen.instance;
        }
    }

    // Of what command the timestamps of an event are now.
    Reading timestamps(int event) const {
        const Signallers& last = signallers_[index(event)];
        if (last.start != last.end || last.end < 0) return {};
        return {at(last.end).command.mark, at(last.end).run};
    }

    int submit(int stream, int owner, const Command& command, int run) {
        const int event = command.signal;
        if (event >= 0 && program_.events[index(event)].is_counter) {
            // What signals it is its new meaning, which it has from now on.
            if (!kind(owner).in_order) throw Illegal();
            signalled_[index(event)] = false;
        }
        if (command.resets >= 0 && program_.events[index(command.resets)].is_counter) throw Illegal();
        instances_.push_back({command, owner, run});
        if (command.mark >= 0) newest_[index(command.mark)] = static_cast<int>(instances_.size()) - 1;
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
        if (program_.events[event].is_counter) throw Illegal();
        if (is_new) signallers_[event] = {};
        const bool has_ticks = program_.events[event].has_ticks && !is_new;
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
                    submit(step.target, step.target, step.command, 1);
                } else {
                    list.body.push_back(step.command);
                }
                break;
            }
            case What::close: lists_[target].open = false; break;
            case What::reset:
                require_idle(step.target);
                lists_[target].body.clear();
                lists_[target].runs = 0;
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
                    const int run = ++lists_[index(list)].runs;
                    for (const Command& command : lists_[index(list)].body) {
                        fence.push_back(submit(step.target, list, command, run));
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
            case What::tell: {
                const int query = newest_[target];
                if (query >= 0 && at(query).over) answers_[index(step.question)] = at(query).reading;
                break;
            }
            case What::ticks:
                // A driver may refuse where the host does not see it signalled, and a reset may clear what it has.
                if (signalled_[target] && !stuck_[target]) answers_[index(step.question)] = timestamps(step.target);
                break;
        }
    }

    const Program& program_;
    bool is_free_, by_engine_, is_sticky_, is_view_;
    std::mt19937_64 random_;
    std::vector<bool> signalled_;
    std::vector<bool> stuck_;  // the host sees these signalled although the device does not
    std::vector<Signallers> signallers_;
    std::vector<List> lists_;
    std::vector<Numbers> streams_;
    std::vector<Numbers> fences_;
    std::vector<bool> has_fence_;
    Numbers newest_;  // of each mark
    std::vector<Reading> answers_;
    std::vector<std::vector<Reading>> readings_;
    std::vector<Instance> instances_;
    std::vector<Act> acts_;
};

// The answer's line.
std::string judge(const Program& program, const std::string& order, const std::string& resets, uint64_t schedules) {
    std::vector<Reading> answers;
    std::vector<std::vector<Reading>> readings;
    try {
        for (uint64_t seed = 0; seed < schedules; ++seed) {
            Model model(program, order, resets, seed);
            if (!model.ends()) return "0";
            if (seed == 0) {
                answers = model.answers();
                readings = model.readings();
            }
            if (readings != model.readings()) return "0";
            for (size_t i = 0; i < answers.size(); ++i) {
                if (answers[i] != model.answers()[i]) answers[i] = {};
            }
        }
    } catch (const Illegal&) {
        return "0";
    }
    std::string line = "1";
    for (const Reading& answer : answers) {
        line += answer.mark < 0 ? " -" : " " + program.marks[static_cast<size_t>(answer.mark)] + ":" + std::to_string(answer.run);
    }
    return line;
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
        std::puts(judge(parser.made, order, resets, schedules).c_str());
        std::fflush(stdout);
    }
    return 0;
}
