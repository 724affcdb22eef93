// Whether programs name nothing that is not there and come to an end.
#include <algorithm>
#include <bit>

#include "core/wire/ctf/program.hpp"

namespace lanescope::ctf {

bool Program::is_sound() const {
    const auto is_step = [&](uint64_t step) { return step < steps.size(); };
    const auto is_slot = [&](int32_t slot) { return slot >= 0 && static_cast<size_t>(slot) < slots; };
    if (steps.empty() || steps.back().op != Op::end) return false;
    for (size_t i = 0; i < steps.size(); ++i) {
        const Step& step = steps[i];
        if (step.op > Op::skip || step.meaning >= static_cast<int>(Meaning::count)) return false;
        if (step.slot >= 0 && !is_slot(step.slot)) return false;
        if (step.flags & flag_counted && !is_slot(step.slot)) return false;
        bool is_good = true;
        switch (step.op) {
            case Op::align: is_good = std::has_single_bit(step.arg); break;
            case Op::integer:
            case Op::array: is_good = step.size >= 1 && step.size <= 64; break;
            case Op::loop: is_good = is_step(step.target) && step.target > i; break;
            case Op::again: is_good = step.arg <= i && step.arg > 0 && steps[step.arg - 1].op == Op::loop; break;
            case Op::jump: is_good = is_step(step.arg) && step.arg > i; break;
            case Op::choice:
                is_good = is_slot(step.slot) && step.arg <= choices.size() && step.choices <= choices.size() - step.arg;
                for (uint64_t c = step.arg; is_good && c < step.arg + step.choices; ++c) {
                    is_good = is_step(choices[c].target) && choices[c].target > i;
                }
                break;
            default: break;
        }
        if (!is_good) return false;
    }
    return true;
}

bool Trace::is_sound() const {
    const auto is_step = [&](uint64_t step) { return step < program.steps.size(); };
    if (!program.is_sound() || !is_step(header) || (!uuid.empty() && uuid.size() != 16)) return false;
    if (!magic.empty() && magic.size() != 4) return false;
    for (const StreamEntry& stream : streams) {
        if (!is_step(stream.context) || !is_step(stream.header)) return false;
        if (stream.first_event > events.size() || stream.events > events.size() - stream.first_event) return false;
    }
    return std::all_of(events.begin(), events.end(), [&](const EventEntry& event) { return is_step(event.step); });
}

}  // namespace lanescope::ctf
