"""The tables of paths: what a program did, as far as its frames and its listing tell."""

from __future__ import annotations

from lanescope.trace.schema import ColumnSpec, TableSpec

_TRACK = ColumnSpec("track_id", "int64", "group track of the recording", references="tracks")
_FUNCTION = ColumnSpec("function", "text", "name of the function; the address in hex if the listing names none")
_MIN_COUNT = ColumnSpec("min_count", "int64", "how often at least: no path that fits has less")
_MAX_COUNT = ColumnSpec(
    "max_count",
    "int64",
    "how often at most, in the frames that have a path; NULL if a loop of unknown length is in it",
    nullable=True,
)

PATH = TableSpec(
    "aie_path",
    "a stretch of the path of a program, in order; no time is known. Frames are rows of aie_program_flow, counted in "
    "their recording from 0, the Start",
    (
        _TRACK,
        ColumnSpec(
            "quality",
            "text",
            "certain: all guesses agree; loop: the body of a loop, passed so often more behind its first pass; "
            "ambiguous: one of several paths; possible: not excluded, behind the last frame or in a stretch that "
            "something contradicts; unresolved: no path; assumption: what the rows of this recording rest on",
        ),
        ColumnSpec("first_frame", "int64", "first frame that it takes"),
        ColumnSpec("last_frame", "int64", "last frame that it takes"),
        ColumnSpec(
            "offset",
            "int64",
            "unresolved: byte offset, in the capture, of the word that holds its first frame; else NULL, and where the "
            "capture is gone",
            nullable=True,
            unit="bytes",
        ),
        ColumnSpec("first_address", "int32", "address of its first bundle", nullable=True, unit="bytes"),
        ColumnSpec("last_address", "int32", "address of its last bundle", nullable=True, unit="bytes"),
        ColumnSpec("bundle_count", "int64", "bundles of one pass; of the shortest path if ambiguous", nullable=True),
        ColumnSpec("iterations", "int64", "how often it was passed; NULL: not known", nullable=True),
        ColumnSpec("iterations_quality", "text", "exact, at_least, unknown"),
        ColumnSpec("alternatives", "int64", "paths that fit; NULL: too many to count", nullable=True),
        ColumnSpec("function", "text", "function of its first bundle"),
        ColumnSpec("note", "text", "unresolved: why; assumption: what is assumed; ambiguous: what it may be"),
    ),
    key="track_id",
)
BUNDLES = TableSpec(
    "aie_path_bundles",
    "a bundle of the program and how often it was executed",
    (
        _TRACK,
        ColumnSpec("address", "int32", "its address", unit="bytes"),
        ColumnSpec("size", "int32", "its size", unit="bytes"),
        ColumnSpec("text", "utf8", "its instructions"),
        _FUNCTION,
        ColumnSpec("block", "int32", "address of its basic block", unit="bytes"),
        ColumnSpec("listing_line", "int32", "its line in the listing, from 1; NULL: it is in none", nullable=True),
        ColumnSpec("file", "text", "source file, by debug information; empty if there is none"),
        ColumnSpec("line", "int32", "source line", nullable=True),
        _MIN_COUNT,
        _MAX_COUNT,
    ),
    key="track_id",
)
BLOCKS = TableSpec(
    "aie_path_blocks",
    "a basic block and how often it was entered at its begin",
    (
        _TRACK,
        ColumnSpec("address", "int32", "its first bundle", unit="bytes"),
        ColumnSpec("last_address", "int32", "its last bundle", unit="bytes"),
        ColumnSpec("bundle_count", "int64", "its bundles"),
        _FUNCTION,
        _MIN_COUNT,
        _MAX_COUNT,
    ),
    key="track_id",
)
EDGES = TableSpec(
    "aie_path_edges",
    "a way from one basic block to another, or to its own begin, and how often it was taken",
    (
        _TRACK,
        ColumnSpec("src", "int32", "the block it leaves", unit="bytes"),
        ColumnSpec("dst", "int32", "the bundle it leads to", unit="bytes"),
        ColumnSpec(
            "kind",
            "text",
            "falls: the next bundle in memory; loop: back in a zero-overhead loop; else the branch class",
        ),
        _MIN_COUNT,
        _MAX_COUNT,
    ),
    key="track_id",
)
CALLS = TableSpec(
    "aie_path_calls",
    "a function as it was called from where: a node of the call tree",
    (
        _TRACK,
        ColumnSpec("node_id", "int64", "number of the node"),
        ColumnSpec("parent_id", "int64", "node of the caller; NULL: it is not known", nullable=True),
        ColumnSpec("depth", "int64", "callers that are known"),
        _FUNCTION,
        ColumnSpec("address", "int32", "first address of the function", unit="bytes"),
        ColumnSpec("call_site", "int32", "address of the call; NULL at the top", nullable=True, unit="bytes"),
        ColumnSpec("min_count", "int64", "calls at least; 0 at the top, whose calls were not recorded"),
        ColumnSpec("max_count", "int64", "calls at most", nullable=True),
    ),
    key="track_id",
)
LOOPS = TableSpec(
    "aie_path_loops",
    "a number of passes of a zero-overhead loop, and how often it was entered with that",
    (
        _TRACK,
        ColumnSpec("first_address", "int32", "first bundle of the body", unit="bytes"),
        ColumnSpec("last_address", "int32", "last bundle of the body", unit="bytes"),
        _FUNCTION,
        ColumnSpec("trip_count", "int64", "passes; NULL: not known", nullable=True),
        ColumnSpec(
            "trip_count_quality",
            "text",
            "exact; at_least (the frame has no room for more); unknown (it ran before the recording); other (more "
            "different numbers than are told apart)",
        ),
        ColumnSpec("entry_count", "int64", "how often it was entered so, in stretches that are certain"),
    ),
    key="track_id",
)
FUNCTIONS = TableSpec(
    "aie_path_functions",
    "a function and how much of it was executed",
    (
        _TRACK,
        _FUNCTION,
        ColumnSpec("address", "int32", "its first address", unit="bytes"),
        ColumnSpec("bundle_count", "int64", "its bundles"),
        ColumnSpec("executed_bundles", "int64", "bundles that were executed for certain"),
        ColumnSpec("maybe_executed_bundles", "int64", "bundles that may have been, in the frames that have a path"),
        ColumnSpec("coverage", "float64", "share of its bundles that were executed for certain", unit="1"),
        ColumnSpec("min_calls", "int64", "calls at least"),
    ),
    key="track_id",
)
LINES = TableSpec(
    "aie_path_lines",
    "a source line, or a line of the listing without debug information, and how often its code was executed",
    (
        _TRACK,
        ColumnSpec("file", "text", "source file, or the listing"),
        ColumnSpec("line", "int32", "its number"),
        ColumnSpec("bundle_count", "int64", "bundles of it"),
        ColumnSpec("executed_bundles", "int64", "of these executed for certain"),
        ColumnSpec("min_count", "int64", "visits of its most visited bundle, at least"),
        ColumnSpec(
            "max_count", "int64", "visits of its most visited bundle, at most; NULL: no limit is known", nullable=True
        ),
    ),
    key="track_id",
)
WALKS = TableSpec(
    "aie_path_stats",
    "how far the path of a recording is known",
    (
        _TRACK,
        ColumnSpec("frames", "int64", "frames with a decision, each as often as it repeats"),
        ColumnSpec("certain", "int64", "frames whose path is certain"),
        ColumnSpec("ambiguous", "int64", "frames with several paths"),
        ColumnSpec("contradictory_frames", "int64", "frames of stretches that end in a contradiction"),
        ColumnSpec("unresolved", "int64", "frames without a path"),
        ColumnSpec("sections", "int64", "stretches that were walked in one go"),
        ColumnSpec("max_states", "int64", "most guesses that fitted at a time"),
    ),
    key="track_id",
)
ASSUMPTIONS = TableSpec(
    "aie_path_assumptions",
    "what paths rest on besides frames and listing",
    (
        _TRACK,
        ColumnSpec(
            "kind",
            "text",
            "start (the first frame is of a bundle before the fetched one), in_flight (a branch whose frame came "
            "before the Start), stall (a Start fell into a lock request), inferred (a register holds the one constant "
            "that the program writes to it), searched (a target that was tried), open_return (a return to where the "
            "listing shows a call), indirect_jumps (those that nobody saw stay in their function), loop_frames (where "
            "the device sends them), program (what the listing holds)",
        ),
        ColumnSpec("address", "int32", "the bundle that is meant", nullable=True, unit="bytes"),
        ColumnSpec("target", "int32", "where it goes", nullable=True, unit="bytes"),
        ColumnSpec("use_count", "int64", "how often the paths rest on it"),
        ColumnSpec("note", "text", "in words"),
    ),
    key="track_id",
)
PC_PLACES = TableSpec(
    "aie_pc_locations",
    "where in the program an event of event-PC mode happened. Its address was fetched up to four bundles ahead: the "
    "instruction is one of a few, or, if the program had just come there by a branch, one at the end of where it came "
    "from",
    (
        ColumnSpec("instant_id", "int64", "the instant of the event", references="instants"),
        ColumnSpec("pc", "int32", "address that was fetched", unit="bytes"),
        ColumnSpec("function", "text", "function of the address, empty if it is in none"),
        ColumnSpec(
            "first_address", "int32", "first bundle in a row that it may have been of", nullable=True, unit="bytes"
        ),
        ColumnSpec(
            "last_address", "int32", "last bundle in a row that it may have been of", nullable=True, unit="bytes"
        ),
        ColumnSpec(
            "is_exact_function", "bool", "it was of this function: nothing comes to these bundles from another one"
        ),
    ),
    key="instant_id",
)

TABLES = (PATH, BUNDLES, BLOCKS, EDGES, CALLS, LOOPS, FUNCTIONS, LINES, WALKS, ASSUMPTIONS, PC_PLACES)
QUALITIES = ("certain", "loop", "ambiguous", "possible", "unresolved", "assumption")
PASSES = ("exact", "at_least", "unknown")
