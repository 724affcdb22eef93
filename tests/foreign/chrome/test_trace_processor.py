"""Sound files: Perfetto's trace processor reads the same slices, instants, samples and flows."""

from collections import Counter

import pytest

from foreign.chrome.reading import flows, instants, read, samples, slices
from lanescope.families import registry
from lanescope.families.options import resolve_options

THREADS = """
select s.ts, s.dur, s.name, s.category, p.pid, t.tid from slice s join thread_track k on s.track_id = k.id
join thread t using (utid) left join process p using (upid)"""
ALL = "select ts, dur, name, ifnull(category, '') as category from slice"
COUNTERS = "select c.ts, c.value, t.name from counter c join counter_track t on c.track_id = t.id"
FLOWS = """
select a.ts as out_ts, a.dur as out_dur, b.ts as in_ts, b.dur as in_dur from flow f join slice a on f.slice_out = a.id
join slice b on f.slice_in = b.id"""


def simulated(**options):
    chosen = registry.family("chrome")
    given = {"events": 300, "pairs": 60, "asynchronous": 40, "instants": 30, "flows": 40, **options}
    content = next(iter(chosen.simulate(resolve_options(chosen.sim_options, given, what="sim"), 7).files.values()))
    # It does not draw the old kind of asynchronous events.
    return content.replace(b'"ph":"S"', b'"ph":"b"').replace(b'"ph":"F"', b'"ph":"e"')


@pytest.mark.parametrize("options", [{}, {"array": True}], ids=["object", "array"])
def test_the_trace_processor_reads_the_same(trace_processor, tmp_path, options):
    content = simulated(**options)
    trace = read(tmp_path, content)
    threads, events, counters, links = trace_processor(tmp_path / "any.json", THREADS, ALL, COUNTERS, FLOWS)
    found = slices(trace)
    drawn = Counter((ts, dur, name, category) for _, ts, dur, name, category in found)
    drawn += Counter({(ts, 0, name, category): count for (_, ts, name, category), count in instants(trace).items()})
    assert Counter((row["ts"], row["dur"], row["name"], row["category"]) for row in events) == drawn
    on_threads = Counter(
        (ts, dur, name) for (_, lane), ts, dur, name, _ in found if lane.startswith("thread ") and dur is not None
    )
    assert Counter((row["ts"], row["dur"], row["name"]) for row in threads if row["dur"]) == on_threads
    assert Counter((row["ts"], row["value"], row["name"]) for row in counters) == Counter(
        {(ts, value, name): count for ((_, name), ts, value), count in samples(trace).items()}
    )
    ends = Counter()
    for (source, destination), count in flows(trace).items():
        (_, begin, end, *_), (_, to, until, *_) = source[2], destination[2]
        ends[begin, end - begin, to, until - to] += count
    assert Counter((row["out_ts"], row["out_dur"], row["in_ts"], row["in_dur"]) for row in links) == ends
    assert ends.total() == 40
