"""What every family promises, those of the tree and one of another package."""

import json

import numpy as np
import pytest

from lanescope.declaration import replace
from lanescope.errors import UsageError
from lanescope.families import Family, Format, Option, Rule, Simulation, Simulator, Summary, registry
from lanescope.families.family import Derived
from lanescope.families.options import resolve_options
from lanescope.source import Detection
from lanescope.testing import CommandRecorder, check_family
from lanescope.trace import StatSpec, TimeBase, TraceBuilder

SMALL = {
    "aie": {"tiles": 2, "records": 200, "overruns": 1},
    "ascend": {"tasks": 40},
    "cuda": {"blocks": 2, "tiles": 4},
    "levelzero": {"ops": 60},
    "perfetto": {"slices": 40},
    "chrome": {"events": 60},
    "kineto": {"steps": 1, "kernels": 12},
}


@pytest.mark.parametrize("name", registry.BUILTIN)
def test_families_of_the_tree_keep_what_all_promise(name):
    check_family(registry.family(name), options=SMALL[name])


def test_the_simulator_of_recordings_keeps_it_too():
    check_family(registry.family("cuda"), options=SMALL["cuda"] | {"layout": "proton"}, seeds=(3,))


def test_a_family_of_another_package_keeps_it(plugins):
    (blinker,) = [family for family in registry.plugin_families() if family.name == "blinker"]
    check_family(blinker)


class Decoder:
    """Every byte is an instant."""

    def __init__(self, capture, options):
        self.capture = capture
        self.builder = TraceBuilder(TimeBase(), stats=(StatSpec("toy_odd", "notice", "odd", finding="LS401"),))
        self.lane = self.builder.track("lane", kind="lane", role="core")
        self.seen = 0

    def feed(self, data):
        count = len(data)
        self.builder.append("instants", track_id=self.lane, ts=self.seen + np.arange(count), name="byte")
        self.seen += count
        return [self.builder.batch()]

    def finish(self):
        main = self.capture.main
        number = self.builder.input(
            capture="toy", path=main.path, size=main.size, sha256=main.sha256, family="toy", format="toy"
        )
        self.builder.add_accounting(
            input_id=number, layer=0, unit="byte", unit_bytes=1, total=main.size, decoded=main.size
        )
        return [self.builder.finish()]


class Forgetful(Decoder):
    """A decoder whose rows depend on how the file is cut."""

    def feed(self, data):
        return super().feed(data[: 1 << 10])


def detect(head):
    return Detection(95 if head.data.startswith(b"TOY") else 0, "toy")


def simulate(options, seed):
    return Simulation({"run.toy": b"TOY" + bytes(options["size"])}, {})


def toy(**changes):
    family = Family(
        "toy",
        "a toy",
        (Format("toy", detect, Decoder, is_streaming=True),),
        stats=(StatSpec("toy_odd", "notice", "odd", finding="LS401"),),
        simulator=Simulator(simulate, options=(Option("size", int, "bytes", 5000),)),
    )
    return replace(family, **changes)


def test_a_sound_toy_passes():
    check_family(toy())


def test_what_a_family_does_not_declare_is_refused_in_its_name():
    with pytest.raises(UsageError, match="toy has no simulator"):
        toy(simulator=None).simulate({}, 1)
    with pytest.raises(UsageError, match="toy has no summary by 'odd'"):
        toy().summarise("odd", None)
    with pytest.raises(UsageError, match="unknown stage 'packet' for format toy"):
        toy().formats[0].lines("packet", None, {})
    assert toy(simulator=None).sim_options == ()
    check_family(toy(simulator=None))


def format_of(**changes):
    return (replace(toy().formats[0], **changes),)


FAULTS = {
    "a name of a stat": (
        {"stats": (StatSpec("odd", "notice", "odd", finding="LS401"),)},
        "odd does not begin with toy_",
    ),
    "a rule of a stat": (
        {"stats": (StatSpec("toy_odd", "notice", "odd", finding="TOY900"),)},
        "toy_odd is of rule TOY900, which reports no stats",
    ),
    "a name of a table": ({"derived": (Derived("overlap", "overlap", ("lane",)),)}, "overlap does not begin with toy_"),
    "a table without a maker": ({"derived": (Derived("toy_overlap"),)}, "made by an analysis or `make`"),
    "a code of a rule": (
        {"rules": (Rule("LAMP101", "odd", "notice", "d", "h", list),)},
        "LAMP101 does not begin with TOY",
    ),
    "a name twice": ({"options": (Option("a", int, "a"), Option("a", int, "a"))}, "option is declared twice"),
    "zeros are its own": ({"formats": format_of(detect=lambda head: Detection(60, "toy"))}, "score 60"),
    "cuts change rows": ({"formats": format_of(decode=Forgetful)}, "instants: "),
    "its own are not": (
        {"simulator": Simulator(lambda options, seed: Simulation({"a": b"x"}, {}))},
        "its own simulation scores 0",
    ),
    "chance": (
        {"simulator": Simulator(lambda options, seed: Simulation({"a": b"TOY" + next(CHANCE)}, {}))},
        "two different simulations",
    ),
}
CHANCE = (bytes([number]) for number in range(256))


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found(fault):
    changes, said = FAULTS[fault]
    with pytest.raises(AssertionError, match=said):
        check_family(toy(**changes))


def test_what_is_not_there_is_an_error():
    with pytest.raises(AttributeError, match="nothing_like_it"):
        check_family(toy(summaries=(Summary("odd", "odd ones", "lanescope.trace:nothing_like_it"),)))
    with pytest.raises(TypeError, match="version 2"):
        check_family(toy(api=2))


def test_a_command_is_tested_with_a_recorder(tmp_path):
    family = registry.family("ascend")
    simulation = family.simulate(resolve_options(family.sim_options, {"tasks": 60}, what="the simulator"), 1)
    for name, content in simulation.files.items():
        (tmp_path / name).write_bytes(content)
    (command,) = family.commands
    values = {argument.key: argument.default for argument in command.arguments}
    path = str(tmp_path / next(iter(simulation.files)))
    context = CommandRecorder()
    task = str(context.open(path).details["ascend_edges"]["succ_task_id"][0])
    assert command.run(context, values | {"input": path, "task": task}) == 0
    ((title, columns, rows),) = context.shown
    assert (title, columns[0].name) == (f"tasks around {task}", "direction")
    assert rows
    assert command.run(context, values | {"input": path, "task": task, "json": True}) == 0
    assert len(context.printed[0]["rows"]) == len(rows)
    assert json.dumps(context.printed[0], default=str)
