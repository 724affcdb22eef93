"""Whether what a walk reports has room for what happened."""

from collections import Counter

from lanescope.devices.aie.path.walk.windows import Window


def ends_of(elements, registers, truth, begin, *, may_be_cut=False):
    """Positions in the truth behind a path that begins at one of these; a truth that is cut goes on in any way."""
    at = set(begin)
    for element in elements:
        if may_be_cut and len(truth) in at:
            return {len(truth)}
        if isinstance(element, int):
            at = {i + 1 for i in at if i < len(truth) and truth[i] == element}
            continue
        body = list(element.body)
        least = element.constant + element.factor * registers.get(element.at, 0)
        found = set()
        for i in at:
            passes = 0
            while True:
                if passes >= least and (passes == least or (element.step and (passes - least) % element.step == 0)):
                    found.add(i)
                if may_be_cut and i + len(body) > len(truth) and body[: len(truth) - i] == truth[i:]:
                    return {len(truth)}
                if i >= len(truth) or truth[i : i + len(body)] != body or (passes == least and not element.step):
                    break
                i += len(body)
                passes += 1
        at = found
    return at


def windows_of(walker, piece):
    """Yield each window of a piece in order, with the registers at its steps."""
    registers = [value for chunk in piece.registers for value in chunk.tolist()]
    for numbers, begins in zip(piece.numbers, piece.begins, strict=True):
        for number, begin in zip(numbers.tolist(), begins.tolist(), strict=True):
            window = walker.windows[number]
            yield window, {at: registers[begin + at] for at in window.registers}


def check(case, walker, walk):
    """One word for how well a walk through a whole recording found the truth; it begins with WRONG if it did not."""
    if walk.unresolved or len(walk.pieces) != 1:
        return "cap" if {lost.reason for lost in walk.unresolved} == {"cap"} or not walk.pieces else "WRONG: lost"
    return check_piece(case, walker, walk.pieces[0])


def check_piece(case, walker, piece, begin=0, decided=None):
    """The same of one piece, whose truth begins at a position, and which frames vouch for up to another."""
    truth = case.path
    decided = case.decided if decided is None else decided
    at = {begin}
    is_one = True
    for window, registers in windows_of(walker, piece):
        if window.paths is None:
            return "too many paths"
        is_one &= window.is_certain
        found = set()
        for path in window.strings:
            found |= ends_of(path, registers, truth, at)
        at = found
        if not at:
            return "WRONG: no path fits"
    tail = Window(walker.program, walker.machine, (piece.tail,), 1 << 20)
    last = dict.fromkeys(tail.registers, piece.last_register)
    sure = {edge.items[: edge.sure] for edge in piece.tail.edges}
    after = set()
    for edge in piece.tail.edges:
        after |= {i for i in ends_of(edge.items[: edge.sure], {}, truth, at) if i >= decided or not case.events}
    if not after and decided > begin:
        return "WRONG: the last decision"
    if not any(ends_of(path, last, truth, at, may_be_cut=True) for path in tail.strings):
        return "WRONG: what follows"
    if decided <= begin:
        return "no decision from the anchor on"
    if is_one and len(sure) == 1:
        return "one path"
    return "one position at the end" if len(sure) == 1 else "ambiguous at the end"


def visits(case):
    """How often each bundle was executed, as far as frames vouch for it."""
    return Counter(case.path[: case.decided])
