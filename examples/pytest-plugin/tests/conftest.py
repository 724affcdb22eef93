"""What the tests capture: simulated here, a kernel with probes in a project of yours."""

import pytest

import lanescope


@pytest.fixture
def capture(tmp_path):
    """Return a function that runs the kernel and returns the path of its capture."""

    def capture(family="cuda", **options):
        simulated = lanescope.simulate(family, **{"seed": 1, **options})
        for name, data in simulated.files.items():
            (tmp_path / name).write_bytes(data)
        return tmp_path / next(iter(simulated.files))

    return capture
