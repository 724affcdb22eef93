import gzip
import hashlib
import io
import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import SANITIZED
from lanescope._native import core
from lanescope.errors import InputError
from lanescope.source import Capture, Source
from lanescope.source import file as file_module

CONTENT = bytes(range(256)) * 700


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "run.bin"
    file.write_bytes(CONTENT)
    return file


def content(source):
    return b"".join(bytes(piece) for piece in source.chunks())


@given(st.binary(max_size=300).filter(lambda data: not data.startswith(b"\x1f\x8b\x08")), st.integers(1, 400))
def test_chunks_are_the_content_however_they_are_cut(tmp_path_factory, data, size):
    file = tmp_path_factory.mktemp("chunks") / "f"
    file.write_bytes(data)
    source = Source(file)
    pieces = [bytes(piece) for piece in source.chunks(size)]
    assert b"".join(pieces) == data
    assert all(len(piece) == size for piece in pieces[:-1])
    assert source.sha256 == hashlib.sha256(data).hexdigest()
    assert source.read().tobytes() == data
    source.close()


def test_head_size_name_and_digest(path):
    source = Source(path)
    head = source.head()
    assert (head.data, head.size, head.name, head.is_whole) == (CONTENT[:65536], len(CONTENT), "run.bin", False)
    assert source.head(10**9).is_whole
    assert source.sha256 == hashlib.sha256(CONTENT).hexdigest()
    source.close()


def test_reading_goes_on_where_the_system_gives_less_than_asked(path):
    class Reluctant(io.FileIO):
        def readinto(self, buffer):
            return super().readinto(memoryview(buffer)[:1000])

    source = Source(path)
    source._file.close()
    source._file = Reluctant(path)
    assert source.read().tobytes() == CONTENT
    assert source.head().data == CONTENT[:65536]
    assert content(source) == CONTENT
    source.close()


def test_what_a_writer_adds_later_is_not_read(path):
    source = Source(path)
    with path.open("ab") as writer:
        writer.write(b"more")
    assert content(source) == CONTENT
    assert source.read().tobytes() == CONTENT
    source.close()


@pytest.mark.parametrize("read", [content, Source.read, Source.head, lambda source: source.sha256])
def test_a_file_that_becomes_shorter_is_an_error(path, read):
    source = Source(path)
    os.truncate(path, 100)
    with pytest.raises(InputError, match=r"became shorter while it was read: [0-9]+ bytes missing"):
        read(source)
    source.close()


def piece_by_piece(source):
    return b"".join(bytes(piece) for piece in source.chunks(100))


def anywhere(source):
    return source.reader().at(0, 100)


@pytest.mark.parametrize("read", [content, piece_by_piece, Source.read, anywhere, lambda source: source.sha256])
@pytest.mark.parametrize("hashes", [True, False])
def test_a_file_that_is_written_over_is_an_error(path, read, hashes):
    os.utime(path, ns=(0, 0))
    source = Source(path, hashes=hashes)
    with path.open("r+b") as writer:
        writer.write(b"other")
    with pytest.raises(InputError, match=r"run\.bin: file changed while it was read"):
        read(source)
    source.close()


@pytest.mark.parametrize("read", [piece_by_piece, Source.read, anywhere])
def test_a_file_whose_writer_goes_on_in_place_is_read(path, read):
    os.utime(path, ns=(0, 0))
    source = Source(path, is_live=True)
    with path.open("r+b") as writer:
        writer.write(b"other")
    assert len(read(source)) in (100, len(CONTENT))
    source.close()


#: More than is copied, and as much as fills the last page.
LARGE = (file_module.CHUNK_BYTES + 1, file_module.CHUNK_BYTES + 4096, 2 * file_module.CHUNK_BYTES)


@pytest.mark.parametrize("size", [0, 1, 5000, *LARGE])
@pytest.mark.parametrize("hashes", [True, False])
def test_mapped_text_is_the_content_and_a_zero(tmp_path, size, hashes):
    data = (CONTENT * 20)[:size]
    (file := tmp_path / "f").write_bytes(data)
    source = Source(file, hashes=hashes)
    with source.mapped() as text:
        assert text.tobytes() == data + b"\0"
    assert source.sha256 == hashlib.sha256(data).hexdigest()
    source.close()


def test_small_text_is_copied_and_large_text_is_not(tmp_path, monkeypatch):
    calls = []
    monkeypatch.setattr(core, "map_file", lambda *given: calls.append(given))
    for size in (file_module.CHUNK_BYTES, LARGE[0]):
        (file := tmp_path / "f").write_bytes((CONTENT * 20)[:size])
        source = Source(file)
        with source.mapped() as text:  # copied where the system does not map it
            assert text.tobytes() == (CONTENT * 20)[:size] + b"\0"
        source.close()
    assert [size for _, size in calls] == [LARGE[0]]


@pytest.mark.parametrize("size", LARGE)
def test_what_is_appended_does_not_show_up_behind_mapped_text(tmp_path, size):
    data = (CONTENT * 20)[:size]
    (file := tmp_path / "f").write_bytes(data)
    source = Source(file)
    with source.mapped() as text:
        with file.open("ab") as writer:
            writer.write(b"more" * 3000)
        assert text.tobytes() == data + b"\0"
    source.close()


@pytest.mark.parametrize("left", [0, 100, LARGE[0] - 1, file_module.CHUNK_BYTES - 4096])
@pytest.mark.parametrize("hashes", [True, False])
def test_a_mapped_file_that_becomes_shorter_is_an_error(tmp_path, left, hashes):
    (file := tmp_path / "f").write_bytes((CONTENT * 20)[: LARGE[0]])
    source = Source(file, hashes=hashes)

    def read():
        with source.mapped() as text:
            os.truncate(file, left)
            return text.tobytes()

    with pytest.raises(InputError, match=r"f: file became shorter while it was read"):
        read()
    with pytest.raises(InputError, match="became shorter while it was read"):
        _ = source.sha256
    source.close()


def test_a_mapped_file_that_is_written_over_is_an_error(tmp_path):
    (file := tmp_path / "f").write_bytes((CONTENT * 20)[: LARGE[0]])
    os.utime(file, ns=(0, 0))
    source = Source(file)

    def read():
        with source.mapped() as text:
            with file.open("r+b") as writer:
                writer.write(b"other")
            return text.tobytes()

    with pytest.raises(InputError, match=r"f: file changed while it was read"):
        read()
    source.close()


def test_an_error_of_a_file_that_became_shorter_is_that_it_did(tmp_path):
    (file := tmp_path / "f").write_bytes((CONTENT * 20)[: LARGE[0]])
    source = Source(file)

    def misread():
        with source.mapped():
            os.truncate(file, 10)
            raise InputError("no JSON")

    with pytest.raises(InputError, match="became shorter"):
        misread()
    source.close()


#: What happens to a program of its own: the signal is for a file that lanescope did not map.
FOREIGN = """
import mmap, os, sys
from lanescope.source import Source
path = sys.argv[1]
with open(path, "r+b") as file, Source(path).mapped() as text:
    pages = mmap.mmap(file.fileno(), 0)
    os.truncate(path, 10)
    assert text[-2] == 0
    print("read", flush=True)
    pages[1 << 20]
"""


@pytest.mark.skipif(bool(SANITIZED), reason="the sanitizer ends the program by itself")
def test_other_bus_errors_end_the_program_as_before(tmp_path):
    (file := tmp_path / "f").write_bytes((CONTENT * 20)[: LARGE[0]])
    found = subprocess.run([sys.executable, "-c", FOREIGN, str(file)], capture_output=True, text=True, check=False)
    assert (found.stdout, found.returncode) == ("read\n", -signal.SIGBUS)


@pytest.mark.parametrize("read", [content, Source.read])
def test_a_source_that_does_not_hash_is_hashed_when_its_hash_is_asked_for(path, read, monkeypatch):
    source = Source(path, hashes=False)
    with monkeypatch.context() as patch:
        patch.setattr(file_module, "Digest", None)  # not to be made
        assert bytes(read(source)) == CONTENT
        later = source.content_hash
    assert later() == source.sha256 == hashlib.sha256(CONTENT).hexdigest()
    source.close()
    assert later() == hashlib.sha256(CONTENT).hexdigest()


def test_a_source_that_hashes_has_its_hash_at_once(path):
    source = Source(path)
    assert source.content_hash == hashlib.sha256(CONTENT).hexdigest()
    source.close()


def test_the_hash_of_a_file_that_changed_since_it_was_read_is_an_error(path):
    source = Source(path, hashes=False)
    content(source)
    path.write_bytes(bytes(len(CONTENT)))
    os.utime(path, (1, 1))
    with pytest.raises(InputError, match="file changed while it was read"):
        source.content_hash()
    source.close()


# --- packed files -------------------------------------------------------------------------------------------------


def packed(tmp_path, data):
    file = tmp_path / "run.bin.gz"
    file.write_bytes(data)
    return file


@pytest.mark.parametrize(
    "data",
    [
        gzip.compress(CONTENT),
        gzip.compress(CONTENT[:99]) + gzip.compress(CONTENT[99:]),
        gzip.compress(CONTENT) + b"\0" * 9,
    ],
    ids=["one member", "two members", "zeros after it"],
)
def test_gzip_is_unpacked(tmp_path, data):
    source = Source(packed(tmp_path, data))
    assert (source.container, source.size, content(source)) == ("gzip", len(CONTENT), CONTENT)
    source.close()


def test_broken_gzip_is_an_error_wherever_it_is_cut(tmp_path):
    data = gzip.compress(os.urandom(50))
    for cut in range(3, len(data)):
        with pytest.raises(InputError, match="invalid gzip data"):
            Source(packed(tmp_path, data[:cut]))


@given(st.integers(3, 10**6), st.integers(1, 255))
def test_gzip_with_a_wrong_byte_is_content_or_an_error(tmp_path_factory, place, change):
    data = bytearray(gzip.compress(CONTENT[:1000]))
    data[place % (len(data) - 3) + 3] ^= change
    try:
        source = Source(packed(tmp_path_factory.mktemp("gz"), data))
    except InputError:
        return
    assert content(source) == CONTENT[:1000]  # what changed was not content: a time, a name
    source.close()


def test_a_gzip_bomb_is_refused_before_it_fills_the_disk(tmp_path, monkeypatch):
    monkeypatch.setattr(file_module, "_UNPACKED_BYTES", 1 << 20)
    bomb = packed(tmp_path, gzip.compress(bytes(100 << 20)))
    with pytest.raises(InputError, match="exceeds 200 times the file size; decompress the file first"):
        Source(bomb)
    honest = packed(tmp_path, gzip.compress(os.urandom(2 << 20)))
    Source(honest).close()


def test_unpacking_stops_while_the_disk_has_room(tmp_path, monkeypatch):
    monkeypatch.setattr(file_module, "_CHECK_BYTES", 1 << 20)
    monkeypatch.setattr(file_module, "_FREE_SHARE", 1.0)
    with pytest.raises(InputError, match=r"not enough temporary space for more than [0-9]+ MiB; set TMPDIR"):
        Source(packed(tmp_path, gzip.compress(os.urandom(3 << 20))))


def test_two_magic_bytes_do_not_make_a_gzip_file(tmp_path):
    source = Source(packed(tmp_path, b"\x1f\x8b\x00 device words"))
    assert source.container == "raw"
    source.close()


# --- what is not a plain file -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("nowhere.bin", "cannot open 'nowhere.bin': no such file or directory"),
        (".", "'.' is a directory; pass a capture file or a Parquet dataset"),
        ("/dev/zero", "'/dev/zero' is a device, not a file"),
        ("/dev/null", "'/dev/null' is a device, not a file"),
        ("nul\0l", "cannot open 'nul"),
        ("x" * 5000, "file name too long"),
        ("/proc/self/mem", "input/output error"),
    ],
)
def test_what_cannot_be_read_is_one_clear_error(path, message):
    with pytest.raises(InputError) as caught:
        Source(path)
    assert message in str(caught.value)


def test_a_socket_is_an_error(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("s")
        with pytest.raises(InputError, match="cannot read 's'"):
            Source("s")


def test_a_named_pipe_is_read_to_its_end(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(CONTENT,))
    writer.start()
    source = Source(pipe)
    writer.join()
    assert (source.container, content(source), content(source)) == ("pipe", CONTENT, CONTENT)
    source.close()


def test_a_named_pipe_without_a_writer_does_not_hang(tmp_path, monkeypatch):
    monkeypatch.setattr(file_module, "_PATIENCE_MS", 50)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="pipe has no writer; start the writer first"):
        Source(tmp_path / "pipe")


def test_a_writer_that_takes_its_time_is_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr(file_module, "_PATIENCE_MS", 1)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    writer = os.open(pipe, os.O_WRONLY)
    begun = threading.Event()

    def write():
        begun.wait(10)
        os.write(writer, CONTENT[:1000])
        os.close(writer)

    thread = threading.Thread(target=write)
    thread.start()
    wait = file_module._wait_for_writer
    monkeypatch.setattr(file_module, "_wait_for_writer", lambda *given: (wait(*given), begun.set())[0])
    source = Source(pipe)
    thread.join()
    os.close(reader)
    assert content(source) == CONTENT[:1000]
    source.close()


def spooled(stdin, **options):
    """What a process finds on its standard input."""
    program = (
        "import sys\nfrom lanescope.source import Source\nfrom lanescope.errors import LanescopeError\n"
        "try:\n    s = Source('-'); print(s.container, s.size, s.sha256)\nexcept LanescopeError as e: print(e)\n"
        "print(sys.stdin.buffer.closed)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], stdin=stdin, capture_output=True, text=True, timeout=60, check=True, **options
    )
    return done.stdout.splitlines()


def test_standard_input_may_be_a_file_or_a_pipe(path):
    expected = [f"pipe {len(CONTENT)} {hashlib.sha256(CONTENT).hexdigest()}", "False"]
    with path.open("rb") as stdin:
        assert spooled(stdin) == expected
    with subprocess.Popen(["cat", path], stdout=subprocess.PIPE) as cat:
        assert spooled(cat.stdout) == expected


def test_standard_input_may_be_packed(tmp_path):
    with packed(tmp_path, gzip.compress(CONTENT)).open("rb") as stdin:
        assert spooled(stdin)[0] == f"pipe {len(CONTENT)} {hashlib.sha256(CONTENT).hexdigest()}"


def test_standard_input_that_never_ends_is_refused():
    with Path("/dev/zero").open("rb") as stdin:
        assert spooled(stdin)[0] == "standard input is a device, not a file; copy the data to a file first"


def test_standard_input_may_be_empty_or_closed():
    assert spooled(subprocess.DEVNULL)[0].startswith("pipe 0 ")
    closed = subprocess.run(
        [sys.executable, "-c", "import sys, lanescope\nassert sys.stdin is None\nlanescope.open('-')"],
        preexec_fn=lambda: os.close(0),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert closed.stderr.endswith("InputError: standard input is closed; pass a file or pipe data to standard input\n")


def test_standard_input_that_does_not_wait_is_read_to_its_end():
    reader, writer = os.pipe()
    os.set_blocking(reader, False)

    def write():
        for start in range(0, len(CONTENT), 10_000):
            os.write(writer, CONTENT[start : start + 10_000])
        os.close(writer)

    thread = threading.Thread(target=write)
    thread.start()
    assert spooled(reader)[0] == f"pipe {len(CONTENT)} {hashlib.sha256(CONTENT).hexdigest()}"
    thread.join()
    os.close(reader)


# --- captures -----------------------------------------------------------------------------------------------------


def test_a_capture_finds_its_neighbours_but_not_itself(tmp_path):
    for name in ("run.json", "deps.json", "names [1].json", "other.txt"):
        (tmp_path / name).write_text(name)
    (tmp_path / "folder.json").mkdir()
    with Capture(tmp_path / "run.json") as capture:
        assert [path.name for path in capture.find_sidecar("*.json")] == ["deps.json", "names [1].json"]
        assert capture.name == "run"
        deps = capture.open_sidecar("deps", tmp_path / "deps.json")
        assert set(capture.parts) == {"main", "deps"}
        assert content(deps) == b"deps.json"
    with pytest.raises(ValueError, match="closed"):
        deps.head()


def test_neighbours_are_found_in_the_current_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("run.bin", "run.mlir"):
        (tmp_path / name).write_text(name)
    with Capture("run.bin") as capture:
        assert [str(path) for path in capture.find_sidecar("*")] == ["run.mlir"]


def test_a_pipe_has_no_neighbours(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "deps.json").write_text("{}")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(b"words"))))
    with Capture("-") as capture:
        assert capture.find_sidecar("*.json") == []
        assert (capture.main.container, content(capture.main)) == ("pipe", b"words")


def test_a_name_that_is_no_text_is_kept(tmp_path):
    name = os.fsdecode(b"r\xffn.bin")
    (tmp_path / name).write_bytes(b"x")
    with Capture(tmp_path / name) as capture:
        assert capture.main.name == name


@pytest.fixture
def run(tmp_path):
    """The main file of a run, with sidecars next to it."""
    for name in ("run.bin", "run.map", "a.names", "b.names", "given.txt"):
        (tmp_path / name).write_text(name)
    return tmp_path / "run.bin"


def opened(source):
    return None if source is None else source.name


def test_a_sidecar_is_the_file_of_the_first_pattern_that_any_matches(run):
    with Capture(run) as capture:
        assert opened(capture.sidecar("map", None, ("*.json", "run.map", "*.names"))) == "run.map"
        assert opened(capture.sidecar("other", None, ("*.json",))) is None
        assert capture.parts["map"].name == "run.map"
        assert "other" not in capture.parts
        assert not capture.ambiguous


def test_several_sidecars_are_ambiguous_and_not_used(run):
    with Capture(run) as capture:
        assert capture.sidecar("names", None, ("*.names", "run.map")) is None
        assert capture.ambiguous == {"names"}
        assert list(capture.parts) == ["main"]


def test_a_sidecar_that_is_named_counts_and_none_switches_it_off(run):
    with Capture(run) as capture:
        assert opened(capture.sidecar("names", run.with_name("given.txt"), ("*.names",))) == "given.txt"
        assert capture.sidecar("map", "none", ("run.map",)) is None
        assert list(capture.parts) == ["main", "names"]
        with pytest.raises(InputError, match=r"missing\.txt"):
            capture.sidecar("names", run.with_name("missing.txt"), ("*.names",))


def test_a_sidecar_that_cannot_be_opened_is_remembered(run, monkeypatch):
    def refuse(self, role, path):
        raise InputError(f"{path} cannot be read")

    with Capture(run) as capture:
        monkeypatch.setattr(Capture, "open_sidecar", refuse)
        assert capture.sidecar("map", None, ("run.map",)) is None
        assert capture.unreadable == {"map": run.with_name("run.map")}


@pytest.mark.parametrize("folder", ["", ".", "./", "./a", "a", "a/", "a//b", "a/./b", "a/../a", ".."])
@pytest.mark.parametrize("pattern", ["x.json", "*.json", "[x].json", "n[[]1].json", "?.json", ".*", "*"])
def test_sidecars_are_found_and_called_as_by_pathlib(tmp_path, monkeypatch, folder, pattern):
    home = tmp_path / "home"
    for place in (tmp_path, home, home / "a", home / "a" / "b"):
        place.mkdir(exist_ok=True)
        for name in ("run.bin", "x.json", "y.json", "n[1].json", ".hidden", "X.JSON"):
            (place / name).write_bytes(b"x")
        (place / "folder.json").mkdir()
    monkeypatch.chdir(home)
    path = os.path.join(folder, "run.bin")  # noqa: PTH118 (as users write it)
    if not os.path.exists(path):  # noqa: PTH110
        path = str(tmp_path / "run.bin")
    with Capture(path) as capture:
        near = Path(os.path.split(path)[0]).glob(pattern)
        expected = sorted(str(each) for each in near if each.name != "run.bin" and each.is_file())
        assert capture._beside(pattern) == expected


@pytest.mark.parametrize("allowed", [1, 2])
def test_what_may_take_one_core_hashes_without_a_further_thread(allowed, path):
    before, threads, seen = core.allow_threads(allowed), threading.active_count(), set()
    try:
        with Capture(path) as capture:
            seen = {threading.active_count() - threads for _ in capture.main.chunks(1 << 12)}
            assert capture.main.sha256 == hashlib.sha256(CONTENT).hexdigest()
    finally:
        core.allow_threads(before)
    assert max(seen) == allowed - 1
