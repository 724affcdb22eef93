"""The other APIs whose calls THAPI's tracers record: providers, results, and which function belongs to which.

Without numpy: ``family.py`` looks in here.
"""

from __future__ import annotations

from collections.abc import Mapping

from lanescope.declaration import frozen_class


@frozen_class
class HostApi:
    """An API whose entries and exits are host calls.

    Attributes:
        title: begins the names of results that are written as numbers: ``MPI 5``.
        result: field of exits with the result.
        success: name of the result 0.
        answers: names of other results that are no failure.
        moves: functions that access memory begin with it; empty if none does.
        size: field of their entries with the size in bytes.
        numbers: names of answers that exits may write as numbers.
        source: where the names come from.
    """

    title: str
    result: str
    success: str
    answers: tuple[str, ...] = ()
    moves: str = ""
    size: str = ""
    numbers: tuple[tuple[int, str], ...] = ()
    source: str = ""


_CUDA = HostApi(
    "CUDA",
    "cuResult",
    "CUDA_SUCCESS",
    ("CUDA_ERROR_NOT_READY",),
    moves="cuMemcpy",
    size="ByteCount",
    numbers=((600, "CUDA_ERROR_NOT_READY"),),
    source="THAPI backends/cuda/btx_cudamatching_model.yaml",
)
#: By provider. Level Zero's own providers are ``layout.APIS``.
HOST_APIS: Mapping[str, HostApi] = {
    "lttng_ust_opencl": HostApi(
        "OpenCL",
        "errcode_ret_val",
        "CL_SUCCESS",
        ("CL_DEVICE_NOT_AVAILABLE",),
        moves="clEnqueue",
        size="size",
        numbers=((-2, "CL_DEVICE_NOT_AVAILABLE"),),
        source="THAPI backends/opencl/btx_clmatching_model.yaml, btx_clinterval_callbacks.cpp",
    ),
    "lttng_ust_cuda": _CUDA,
    "lttng_ust_cuda_exports": _CUDA,
    "lttng_ust_cudart": HostApi(
        "CUDART",
        "cudaResult",
        "cudaSuccess",
        ("cudaErrorNotReady",),
        numbers=((600, "cudaErrorNotReady"),),
        source="THAPI backends/cuda/cudart_model.rb",
    ),
    "lttng_ust_hip": HostApi(
        "HIP",
        "hipResult",
        "hipSuccess",
        ("hipErrorNotReady",),
        numbers=((600, "hipErrorNotReady"),),
        source="THAPI backends/hip/btx_hipinterval_callbacks.cpp",
    ),
    "lttng_ust_mpi": HostApi(
        "MPI", "mpiResult", "MPI_SUCCESS", source="THAPI backends/mpi/btx_mpiinterval_callbacks.cpp"
    ),
}
#: Provider of the callbacks of OpenMP tools, whose scopes are host calls. Source: THAPI backends/omp/ompt_model.rb.
OPENMP = "lttng_ust_ompt"
#: Provider of ITT, whose events and tasks are host calls.
ITT = "lttng_ust_itt"
#: How the names of ITT's events and tasks begin here: programs choose them freely.
ITT_BEGIN = "itt:"
#: Begin of the providers of what is launched and measured, by the API. Source: THAPI backends/cuda/cuda_events.yaml,
#: backends/opencl/opencl_events.yaml.
OPENCL, CUDA = "lttng_ust_opencl", "lttng_ust_cuda"
#: All providers besides Level Zero's.
PROVIDERS: tuple[str, ...] = (
    *HOST_APIS,
    OPENMP,
    ITT,
    f"{OPENCL}_profiling",
    f"{OPENCL}_arguments",
    f"{OPENCL}_devices",
    f"{CUDA}_profiling",
    f"{CUDA}_properties",
)
#: Results of them that do not say that a function failed.
ANSWERS: tuple[str, ...] = tuple(
    dict.fromkeys(name for api in HOST_APIS.values() for name in (api.success, *api.answers))
)
#: Backends by the begin of their functions' names, and the level at which iprof groups them.
#: Source: THAPI xprof (backend numbers; default of --backends).
_BACKENDS: tuple[tuple[str, int, str], ...] = (
    ("cl", 2, "1"),
    ("cu", 3, "1"),
    ("ompt_", 5, "2"),
    ("hip", 6, "1"),
    ("MPI_", 7, "3"),
    ("PMPI_", 7, "3"),
    (ITT_BEGIN, 9, "5"),
    # Of any other program.
    ("syscall ", 0, "6"),
)
_LEVEL_ZERO = 1, "1"
_OTHER = 0, "6"


def is_sized(api: HostApi, function: str) -> bool:
    """Return whether the entries of a function say how much memory it accesses."""
    return bool(api.moves) and function.startswith(api.moves)


def backend_of(function: str) -> int:
    """Return the number of the backend of a function; that of Level Zero if no other API begins its names so."""
    return _backend(function)[0]


def level_of(function: str) -> str:
    """Return the level at which iprof groups the calls of a function."""
    return _backend(function)[1]


def _backend(function: str) -> tuple[int, str]:
    for begin, number, level in _BACKENDS:
        if function.startswith(begin):
            return number, level
    return _OTHER if ":" in function else _LEVEL_ZERO


def plain_name(function: str) -> str:
    """Return the name of a function as iprof shows it.

    Example:
        >>> plain_name("itt:step"), plain_name("zeInit")
        ('step', 'zeInit')
    """
    return function.removeprefix(ITT_BEGIN)


def result_text(api: HostApi, written: str) -> str | None:
    """Return the name of a result as an exit has it, as a name or as a number; None if it is neither.

    Example:
        >>> api = HOST_APIS["lttng_ust_mpi"]
        >>> result_text(api, "0"), result_text(api, "15"), result_text(api, "MPI_ERR_COMM")
        ('MPI_SUCCESS', 'MPI 15', 'MPI_ERR_COMM')
    """
    digits = written.removeprefix("-")
    if len(written) > 20 and digits.isdigit():
        return None
    if digits.isascii() and digits.isdigit():
        number = int(written)
        return dict(api.numbers).get(number, f"{api.title} {number}") if number else api.success
    is_name = written.isascii() and written.replace("_", "").isalnum()
    return written if is_name else None


def is_failure(api: HostApi, text: str | None) -> bool:
    """Return whether a result, as ``result_text`` names it, says that a function failed."""
    return text not in (api.success, *api.answers)


def written_as(api: HostApi, text: str) -> list[str]:
    """Return how exits may have written a result: what ``result_text`` makes that text of, but for leading zeros."""
    number = text.removeprefix(f"{api.title} ")
    names = [number] if number != text else [text, "0"] if text == api.success else [text]
    names += [str(value) for value, name in api.numbers if name == text]
    return [name for name in names if result_text(api, name) == text]
