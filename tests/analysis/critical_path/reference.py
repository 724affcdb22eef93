"""Critical paths the slow and obvious way: dicts, lists and definitions, for a few dozen rows."""

from collections import defaultdict

BEGIN, END, POINT = range(3)
NONE, WORK, WAIT, IDLE = range(4)
NEVER = -(1 << 62)
ENOUGH = 20


class Reference:
    """Rows are (lane, begin, end, name, waits); causes (source, its time, target, its time, kind)."""

    def __init__(self, rows, causes, nestings, ranks, *, blocking=(), floors=None, wait_floor=None):
        self.rows, self.ranks, self.blocking = rows, ranks, blocking
        self.backward, self.cyclic, self.crossing = 0, 0, 0
        self.given_floors, self.given_wait_floor = floors or {}, wait_floor
        self.place_nodes(causes, nestings)
        self.place_edges(causes)
        self.break_cycles()
        self.bind()

    # --- nodes: (row, event, time), kept by chain in order ---

    def place_nodes(self, causes, nestings):
        alone = {row for row, (lane, *_) in enumerate(self.rows) if nestings[lane] == "free"}
        by_begin = sorted(range(len(self.rows)), key=lambda r: (self.rows[r][1], -self.rows[r][2], r))
        for place, row in enumerate(by_begin):
            lane, begin, end = self.rows[row][:3]
            if row in alone:
                continue
            for earlier in by_begin[:place]:
                if earlier in alone or self.rows[earlier][0] != lane:
                    continue
                if begin < self.rows[earlier][2] < end:
                    alone.add(row)
                    self.crossing += 1
                    break
        chains = defaultdict(set)
        self.chain_of = {
            row: ("row", row) if row in alone else ("lane", self.rows[row][0]) for row in range(len(self.rows))
        }
        for row, (_, begin, end, *_) in enumerate(self.rows):
            chains[self.chain_of[row]] |= {(row, BEGIN, begin), (row, END, end)}
        for source, source_time, target, target_time, _ in causes:
            for row, time in ((source, source_time), (target, target_time)):
                if time not in self.rows[row][1:3]:
                    chains[self.chain_of[row]].add((row, POINT, time))

        def key(node):
            row, event, time = node
            lane, begin, end = self.rows[row][:3]
            if begin == end and event != POINT:
                inside = self.chain_of[row][0] == "lane" and nestings[lane] == "nested"
                return time, 4 if inside else 2, row, event
            if event == END:
                return time, 0, -begin, -row
            if event == POINT:
                return time, 1, row, 0
            return time, 3, -end, row

        self.chains = [sorted(chains[name], key=key) for name in sorted(chains)]
        self.before, self.piece, self.owner = {}, {}, {}
        for chain in self.chains:
            open_rows = []
            for place, node in enumerate(chain):
                self.before[node] = chain[place - 1] if place else None
                self.owner[node] = open_rows[-1] if open_rows and place else None
                if not place:
                    self.piece[node] = NONE
                elif not open_rows:
                    self.piece[node] = IDLE
                else:
                    self.piece[node] = WAIT if self.rows[open_rows[-1]][4] else WORK
                if node[1] == BEGIN:
                    open_rows.append(node[0])
                elif node[1] == END:
                    open_rows.remove(node[0])
        self.nodes = [node for chain in self.chains for node in chain]
        self.number = {node: number for number, node in enumerate(self.nodes)}

    def place_edges(self, causes):
        self.into = defaultdict(list)
        for source, source_time, target, target_time, kind in causes:
            if source_time > target_time:
                self.backward += 1
                continue
            begin, end, _, waits = self.rows[source][1:]
            event = END if source_time == end else BEGIN if source_time == begin else POINT
            start = source, event, source_time
            begin, end, _, waits = self.rows[target][1:]
            event = BEGIN if target_time == begin else END if target_time == end else POINT
            if begin == end == target_time and waits:
                event = END
            stop = target, event, target_time
            if start == stop:
                continue
            self.into[stop].append((start, kind))
            if kind in self.blocking and self.piece[stop] == WORK:
                self.piece[stop] = WAIT

    def arcs(self, node):
        found = [start for start, _ in self.into[node]]
        if self.before[node] is not None:
            found.append(self.before[node])
        return found

    def break_cycles(self):
        """Drop the causes at one time whose effect leads back to them; then put what is left in order."""
        on_cycles = {
            (node, place)
            for node in self.nodes
            for place, (start, _) in enumerate(self.into[node])
            if start[2] == node[2] and self.leads_to(node, start)
        }
        for node in self.nodes:
            kept = [arc for place, arc in enumerate(self.into[node]) if (node, place) not in on_cycles]
            self.into[node] = kept
        self.cyclic = len(on_cycles)
        self.order, done = [], set()
        while len(done) < len(self.nodes):
            ready = [n for n in self.nodes if n not in done and all(s in done for s in self.arcs(n))]
            assert ready
            done |= set(ready)
            self.order += ready

    def leads_to(self, node, wanted):
        """Return whether ``wanted`` comes after ``node`` at the same time."""
        seen, todo = set(), [wanted]
        while todo:
            now = todo.pop()
            if now == node:
                return True
            before = [start for start in self.arcs(now) if start[2] == node[2] and start not in seen]
            seen |= set(before)
            todo += before
        return False

    # --- what binds ---

    def bind(self):
        lags = defaultdict(list)
        for node in self.nodes:
            for start, kind in self.into[node]:
                lags[kind].append(node[2] - start[2])
        self.floor = {
            kind: self.given_floors.get(kind, min(found) if len(found) >= ENOUGH else 0) for kind, found in lags.items()
        }
        waits = defaultdict(list)
        for node in self.nodes:
            if self.is_whole_wait(node):
                waits[self.rows[node[0]][3]].append(None if self.is_needed(node) else self.step(node))
        self.wait_floors = {
            name: min((each for each in found if each is not None), default=0) if len(found) >= ENOUGH else 0
            for name, found in waits.items()
        }
        self.bound = {}
        for node in self.nodes:
            if self.piece[node] == WORK:
                self.bound[node] = self.before[node], None
                continue
            found = []
            if self.before[node] is not None:
                before = self.before[node]
                found.append((-before[2] - self.least_wait(node), -before[2], 1, 0, 0, before, None))
            for start, kind in self.into[node]:
                arrives = start[2] + self.least(node, start, kind)
                found.append((-arrives, -start[2], 0, self.ranks.index(kind), self.number[start], start, kind))
            self.bound[node] = min(found, key=lambda f: f[:5])[5:] if found else None

    def is_whole_wait(self, node):
        row, event, _ = node
        return (
            event == END
            and self.rows[row][4]
            and self.piece[node] == WAIT
            and self.owner[node] == row
            and self.before[node] == (row, BEGIN, self.rows[row][1])
        )

    def is_needed(self, node):
        """Whether something that the wait before a node waited for came after its begin."""
        return any(start[2] > self.before[node][2] for start, _ in self.into[node])

    def least_wait(self, node):
        if not self.is_whole_wait(node):
            return 0
        if self.given_wait_floor is not None:
            return min(self.given_wait_floor, self.step(node))
        return self.wait_floors[self.rows[node[0]][3]]

    def least(self, node, start, kind):
        return min(self.floor[kind], node[2] - start[2])

    def step(self, node):
        return node[2] - self.before[node][2] if self.before[node] is not None else 0

    # --- the walk ---

    def walk(self, begin, end, sink, cut=None):
        """Return parts (begin, end, cause, kind, row) in order of time."""
        parts = []

        def put(low, high, *what):
            low = max(low, begin)
            if low < high:
                parts.append((low, high, *what))

        def piece(node, low, high):
            kind = self.piece[node]
            if kind in (WORK, WAIT):
                put(low, high, "work" if kind == WORK else "wait without cause", None, self.owner[node])
            else:
                put(low, high, "lane idle", None, node[0])

        node = sink
        if cut is not None:
            piece(cut, node[2], end)
        else:
            put(node[2], end, "after last end", None, node[0])
        while node[2] > begin:
            bound = self.bound[node]
            if bound is None:
                put(begin, node[2], "no known cause", None, node[0])
                break
            start, kind = bound
            if kind is None:
                piece(node, start[2], node[2])
            else:
                least = start[2] + self.least(node, start, kind)
                put(least, node[2], "delay beyond", kind, node[0])
                put(start[2], least, "latency", kind, node[0])
            node = start
        return parts[::-1]

    # --- replay and slack ---

    def candidates(self, node):
        """Return (start, least, observed, is_chain) of each arc into a node."""
        found = []
        bound = self.bound[node]
        if self.before[node] is not None:
            step = self.step(node)
            is_fixed = self.piece[node] == WORK or bound == (self.before[node], None)
            found.append((self.before[node], step if is_fixed else self.least_wait(node), step, True))
        taken = False
        for start, kind in sorted(self.into[node], key=lambda f: (self.ranks.index(f[1]), self.number[f[0]])):
            lag = node[2] - start[2]
            binds = bound == (start, kind) and not taken
            taken = taken or binds
            found.append((start, lag if binds else self.least(node, start, kind), lag, False))
        return found

    def replay(self, length=None, bound="nominal"):
        """Return the time of each node; ``length``: the new length of the piece before a node, if it is work."""
        time = {}
        for node in self.order:
            arcs = self.candidates(node)
            work = self.piece[node] == WORK
            new = self.step(node) if length is None else length(node)
            if not arcs:
                time[node] = node[2]
            elif bound == "nominal":
                time[node] = max(time[s] + (new if work and chain else least) for s, least, _, chain in arcs)
            elif work:
                time[node] = max(
                    time[s] + (new if chain else lag if bound == "high" else 0) for s, _, lag, chain in arcs
                )
            else:
                hidden = not self.into[node] and self.step(node) > 0
                if bound == "high":
                    time[node] = max([time[s] + lag for s, _, lag, _ in arcs] + ([node[2]] if hidden else []))
                else:
                    tried = [
                        max([time[s] + lag] + [time[o[0]] for at, o in enumerate(arcs) if at != place])
                        for place, (s, _, lag, _) in enumerate(arcs)
                    ]
                    if hidden:
                        tried.append(max(node[2], *(time[s] for s, *_ in arcs)))
                    time[node] = min(tried)
        return time

    def slack(self, sink=None, lags="slack"):
        free = 1 << 62
        latest = dict.fromkeys(self.nodes, free)
        if sink is None:
            latest = dict.fromkeys(self.nodes, max(node[2] for node in self.nodes))
        else:
            latest[sink] = sink[2]
        for node in reversed(self.order):
            if latest[node] == free:
                continue
            for start, least, observed, chain in self.candidates(node):
                fixed = (chain and self.piece[node] == WORK) or self.is_binding(node, start, least, observed, chain)
                cost = observed if fixed or lags == "slack_safe" else 0 if lags == "slack_max" else least
                latest[start] = min(latest[start], latest[node] - cost)
        return {node: free if time == free else time - node[2] for node, time in latest.items()}

    def is_binding(self, node, start, least, observed, chain):
        bound = self.bound[node]
        return bound is not None and bound[0] == start and (bound[1] is None) == chain and least == observed
