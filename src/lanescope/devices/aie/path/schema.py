"""The tables of paths: what a program did, as far as its frames and its code tell."""

from __future__ import annotations

from lanescope.trace.schema import ColumnSpec, TableSpec, ref

_TRACK = ref("track_id", "tracks", "group track of the segment")
_FUNCTION = ColumnSpec("function", "text", "function name; the address in hex if it has no name")
_MIN_COUNT = ColumnSpec("min_count", "int64", "minimum execution count over all possible paths")
_MAX_COUNT = ColumnSpec(
    "max_count",
    "int64",
    "maximum execution count within frames that have a path, including up to six bundles before the address of a "
    "Start, which is fetched ahead; NULL if a loop of unknown trip count is included",
    nullable=True,
)

PATH = TableSpec(
    "aie_path",
    "one section of the path of a program, in order, without timestamps. Frames are rows of "
    "aie_program_flow, counted in their segment from 0, the Start",
    (
        _TRACK,
        ColumnSpec(
            "quality",
            "text",
            "certain: identical in every hypothesis; loop: further iterations of a loop body after the "
            "first; ambiguous: one of several paths; possible: not excluded, after the last frame or in a "
            "contradictory section; unresolved: no path; assumption: a premise of the rows of this "
            "segment",
        ),
        ColumnSpec("first_frame", "int64", "first frame of the section"),
        ColumnSpec("last_frame", "int64", "last frame of the section"),
        ColumnSpec(
            "offset",
            "int64",
            "unresolved: byte offset in the capture of the word with the first frame; NULL for other rows "
            "and if the capture is not available",
            nullable=True,
            unit="bytes",
        ),
        ColumnSpec("first_address", "int32", "address of the first bundle", nullable=True, unit="bytes"),
        ColumnSpec("last_address", "int32", "address of the last bundle", nullable=True, unit="bytes"),
        ColumnSpec("bundle_count", "int64", "bundles per iteration; of the shortest path if ambiguous", nullable=True),
        ColumnSpec("iterations", "int64", "number of iterations; NULL if unknown", nullable=True),
        ColumnSpec("iterations_quality", "text", "quality of the number of iterations: exact, at_least, unknown"),
        ColumnSpec("alternatives", "int64", "number of possible paths; NULL if too many to count", nullable=True),
        ColumnSpec("function", "text", "function of the first bundle"),
        ColumnSpec("note", "text", "reason (unresolved), premise (assumption) or candidates (ambiguous)"),
    ),
    key="track_id",
)
BUNDLES = TableSpec(
    "aie_path_bundles",
    "one bundle of the program with its execution count",
    (
        _TRACK,
        ColumnSpec("address", "int32", "bundle address", unit="bytes"),
        ColumnSpec("size", "int32", "bundle size", unit="bytes"),
        ColumnSpec("text", "utf8", "instructions of the bundle"),
        _FUNCTION,
        ColumnSpec("block", "int32", "address of its basic block", unit="bytes"),
        ColumnSpec(
            "listing_line",
            "int32",
            "line number in the listing, or in the disassembly of the ELF file, from 1; NULL if it has none",
            nullable=True,
        ),
        ColumnSpec("file", "text", "source file from the debug information; empty if unknown"),
        ColumnSpec("line", "int32", "source line; NULL if unknown", nullable=True),
        _MIN_COUNT,
        _MAX_COUNT,
    ),
    key="track_id",
)
BLOCKS = TableSpec(
    "aie_path_blocks",
    "one basic block with the number of entries at its start",
    (
        _TRACK,
        ColumnSpec("address", "int32", "address of the first bundle", unit="bytes"),
        ColumnSpec("last_address", "int32", "address of the last bundle", unit="bytes"),
        ColumnSpec("bundle_count", "int64", "number of bundles"),
        _FUNCTION,
        _MIN_COUNT,
        _MAX_COUNT,
    ),
    key="track_id",
)
EDGES = TableSpec(
    "aie_path_edges",
    "one edge between basic blocks, or from a block to itself, with its execution count",
    (
        _TRACK,
        ColumnSpec("src", "int32", "address of the source block", unit="bytes"),
        ColumnSpec("dst", "int32", "address of the target bundle", unit="bytes"),
        ColumnSpec(
            "kind",
            "text",
            "falls: next bundle in memory; loop: back edge of a zero-overhead loop; else the branch class",
        ),
        _MIN_COUNT,
        _MAX_COUNT,
    ),
    key="track_id",
)
CALLS = TableSpec(
    "aie_path_calls",
    "one node of the call tree: a function and its call site",
    (
        _TRACK,
        ColumnSpec("node_id", "int64", "node number"),
        ColumnSpec("parent_id", "int64", "node of the caller; NULL if unknown", nullable=True),
        ColumnSpec("depth", "int64", "number of known callers"),
        _FUNCTION,
        ColumnSpec("address", "int32", "first address of the function", unit="bytes"),
        ColumnSpec("call_site", "int32", "address of the call; NULL for a root node", nullable=True, unit="bytes"),
        ColumnSpec("min_count", "int64", "minimum number of calls; 0 for a root node, whose calls are not recorded"),
        ColumnSpec("max_count", "int64", "maximum number of calls; NULL if unknown", nullable=True),
    ),
    key="track_id",
)
LOOPS = TableSpec(
    "aie_path_loops",
    "one trip count of a zero-overhead loop with its number of entries",
    (
        _TRACK,
        ColumnSpec("first_address", "int32", "first bundle of the body", unit="bytes"),
        ColumnSpec("last_address", "int32", "last bundle of the body", unit="bytes"),
        _FUNCTION,
        ColumnSpec("trip_count", "int64", "trip count; NULL if unknown", nullable=True),
        ColumnSpec(
            "trip_count_quality",
            "text",
            "exact; at_least (beyond the range of the frame); unknown (entered before the segment); other "
            "(above the limit of distinguished trip counts)",
        ),
        ColumnSpec("entry_count", "int64", "number of entries with this trip count in certain sections"),
    ),
    key="track_id",
)
FUNCTIONS = TableSpec(
    "aie_path_functions",
    "one function with its coverage",
    (
        _TRACK,
        _FUNCTION,
        ColumnSpec("address", "int32", "first address of the function", unit="bytes"),
        ColumnSpec("bundle_count", "int64", "number of bundles"),
        ColumnSpec("executed_bundles", "int64", "bundles that were certainly executed"),
        ColumnSpec(
            "maybe_executed_bundles", "int64", "bundles that may have been executed within frames that have a path"
        ),
        ColumnSpec("coverage", "float64", "fraction of the bundles that were certainly executed", unit="1"),
        ColumnSpec("min_calls", "int64", "minimum number of calls"),
    ),
    key="track_id",
)
LINES = TableSpec(
    "aie_path_lines",
    "one source line, or a line of the listing without debug information, with its execution count",
    (
        _TRACK,
        ColumnSpec("file", "text", "source file, listing or ELF file"),
        ColumnSpec("line", "int32", "line number"),
        ColumnSpec("bundle_count", "int64", "bundles of the line"),
        ColumnSpec("executed_bundles", "int64", "bundles of the line that were certainly executed"),
        ColumnSpec("min_count", "int64", "minimum execution count of the most executed bundle"),
        ColumnSpec(
            "max_count",
            "int64",
            "maximum execution count of the most executed bundle; NULL if unbounded",
            nullable=True,
        ),
    ),
    key="track_id",
)
WALKS = TableSpec(
    "aie_path_stats",
    "quality of the path of a segment",
    (
        _TRACK,
        ColumnSpec("frames", "int64", "frames with a decision, including repetitions"),
        ColumnSpec("certain", "int64", "frames with a certain path"),
        ColumnSpec("ambiguous", "int64", "frames with several paths"),
        ColumnSpec("contradictory_frames", "int64", "frames of sections that end in a contradiction"),
        ColumnSpec("unresolved", "int64", "frames without a path"),
        ColumnSpec("sections", "int64", "sections that were resolved in one pass"),
        ColumnSpec("max_states", "int64", "maximum number of simultaneous hypotheses"),
    ),
    key="track_id",
)
ASSUMPTIONS = TableSpec(
    "aie_path_assumptions",
    "assumptions about paths beyond frames and program",
    (
        _TRACK,
        ColumnSpec(
            "kind",
            "text",
            "start (the first frame belongs to a bundle before the fetch address), in_flight (a branch "
            "with its frame before the Start), stall (a Start during a lock request), inferred (a "
            "register contains the only constant that the program writes to it), searched (a tested "
            "target), open_return (a return to a call site of the listing), indirect_jumps (unobserved "
            "jumps stay within their function), loop_frames (position of loop frames on the device), "
            "program (content of the listing)",
        ),
        ColumnSpec("address", "int32", "bundle concerned; NULL if none", nullable=True, unit="bytes"),
        ColumnSpec("target", "int32", "target of the bundle; NULL if none", nullable=True, unit="bytes"),
        ColumnSpec("use_count", "int64", "number of uses in the paths"),
        ColumnSpec("note", "text", "description"),
    ),
    key="track_id",
)
PC_PLACES = TableSpec(
    "aie_pc_locations",
    "program location of an event in event-PC mode. The address was fetched up to four bundles "
    "ahead: the instruction is one of a few or, shortly after a branch, one at the end of the "
    "previous block",
    (
        ref("instant_id", "instants", "instant of the event"),
        ColumnSpec("pc", "int32", "fetch address", unit="bytes"),
        ColumnSpec("function", "text", "function of the address; empty if none"),
        ColumnSpec(
            "first_address", "int32", "first possible bundle of a consecutive range", nullable=True, unit="bytes"
        ),
        ColumnSpec("last_address", "int32", "last possible bundle of a consecutive range", nullable=True, unit="bytes"),
        ColumnSpec(
            "is_exact_function", "bool", "whether the function is certain: no other function leads to these bundles"
        ),
    ),
    key="instant_id",
)

TABLES = (PATH, BUNDLES, BLOCKS, EDGES, CALLS, LOOPS, FUNCTIONS, LINES, WALKS, ASSUMPTIONS, PC_PLACES)
QUALITIES = ("certain", "loop", "ambiguous", "possible", "unresolved", "assumption")
PASSES = ("exact", "at_least", "unknown")
