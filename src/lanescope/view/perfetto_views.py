"""Views for queries in Perfetto, over a trace that lanescope wrote: lanes, slices, gaps, findings and flows by name.

``lanescope view`` makes them in the page; ``lanescope sql --perfetto-views`` prints them, for the query page of
ui.perfetto.dev and for the trace processor. Times are in the unit of the trace; durations of open slices are -1.
"""

from __future__ import annotations

from lanescope.io.event_stream import FINDING, FLOW, GAP
from lanescope.io.viewer_names import CYCLES, WHOLE

#: Name of a view -> what it holds, and its query.
VIEWS = {
    "lanescope_tracks": (
        "tracks: path of names from the top; the whole name where another one is shown",
        f"""
WITH RECURSIVE paths(track_id, path) AS (
  SELECT id, replace(trim(name), '{CYCLES}', '') FROM track WHERE parent_id IS NULL
  UNION ALL
  SELECT t.id, p.path || '/' || t.name FROM track t JOIN paths p ON t.parent_id = p.track_id
), described AS (
  SELECT id, name, extract_arg(source_arg_set_id, 'description') AS description FROM track
)
SELECT p.track_id, trim(d.name) AS name, p.path,
  CASE WHEN instr(d.description, '{WHOLE}') > 0
    THEN substr(d.description, instr(d.description, '{WHOLE}') + {len(WHOLE)}) ELSE d.name END AS whole_name
FROM paths p JOIN described d ON d.id = p.track_id""",
    ),
    "lanescope_slices": (
        "slices of the capture, without what lanescope drew between them",
        f"""
SELECT s.id, s.ts, s.dur, s.name, s.category, s.depth, s.track_id, t.path AS lane, s.arg_set_id
FROM slice s JOIN lanescope_tracks t USING (track_id)
WHERE coalesce(s.category, '') NOT IN ('{GAP}', '{FINDING}', '{FLOW}')""",
    ),
    "lanescope_gaps": (
        "times of which records are missing, and why",
        f"""
SELECT s.id, s.ts, s.dur, s.name AS cause, extract_arg(s.arg_set_id, 'debug.lost_count') AS lost_count,
  s.track_id, t.path AS lane
FROM slice s JOIN lanescope_tracks t USING (track_id) WHERE s.category = '{GAP}'""",
    ),
    "lanescope_findings": (
        "what `lanescope check` found, at its place",
        f"""
SELECT s.id, s.ts, extract_arg(s.arg_set_id, 'debug.severity') AS severity,
  substr(s.name, instr(s.name, ' ') + 1, instr(s.name, ': ') - instr(s.name, ' ') - 1) AS code,
  trim(substr(s.name, instr(s.name, ': ') + 2)) AS title,
  extract_arg(s.arg_set_id, 'debug.detail') AS detail, extract_arg(s.arg_set_id, 'debug.count') AS count,
  s.track_id, t.path AS lane
FROM slice s JOIN lanescope_tracks t USING (track_id) WHERE s.category = '{FINDING}'""",
    ),
    "lanescope_lanes": (
        "rows of lanes: outermost slices, their time, and its share of the time of the trace",
        """
SELECT track_id, lane, count(*) AS slices, sum(max(dur, 0)) AS busy,
  100.0 * sum(max(dur, 0)) / max((SELECT end_ts - start_ts FROM trace_bounds), 1) AS busy_percent,
  min(ts) AS first_ts, max(ts + max(dur, 0)) AS last_ts
FROM lanescope_slices WHERE depth = 0 GROUP BY track_id, lane""",
    ),
    "lanescope_names": (
        "slices by name",
        """
SELECT name, count(*) AS count, sum(max(dur, 0)) AS total, avg(max(dur, 0)) AS mean, min(dur) AS shortest,
  max(dur) AS longest
FROM lanescope_slices GROUP BY name""",
    ),
    "lanescope_flows": (
        "arrows: both ends, and the time from the end of the first to the begin of the second",
        """
SELECT f.id, f.slice_out, f.slice_in, o.name AS from_name, i.name AS to_name, ot.path AS from_lane,
  it.path AS to_lane, i.ts - (o.ts + max(o.dur, 0)) AS delay
FROM flow f JOIN slice o ON o.id = f.slice_out JOIN slice i ON i.id = f.slice_in
JOIN lanescope_tracks ot ON ot.track_id = o.track_id JOIN lanescope_tracks it ON it.track_id = i.track_id""",
    ),
}


def sql() -> str:
    """Return statements that make the views; they may be run again."""
    return "\n".join(
        f"-- {about}\nCREATE OR REPLACE PERFETTO VIEW {name} AS{query};" for name, (about, query) in VIEWS.items()
    )
