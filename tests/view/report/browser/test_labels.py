"""Labels of pictures, measured by a real browser in the font that it has: none reaches over the edge of its slice."""

import json
import os
import subprocess
from pathlib import Path

from lanescope.view.picture import svg
from view.test_pictures import one_lane

HERE = Path(__file__).parent
NAMES = (
    "matmul_spmd",
    "norm_spmd",
    "silu",
    "WWWMMM@@@%%",
    "illicit_fill",
    "gemm_kernel_17",
    "名前名前",
    "add",
    "Orch_0",
)


def test_no_label_reaches_over_the_edge_of_its_slice(require_tool, tmp_path):
    node, chromium, modules = require_tool("node"), require_tool("chromium"), require_tool("puppeteer")
    pictures = []
    for count in (9, 10, 12, 15):  # slices of so many widths
        path = tmp_path / f"{count}.svg"
        path.write_bytes(svg.draw(one_lane([NAMES[at % len(NAMES)] for at in range(count)]), findings=False))
        pictures.append(path)
    done = subprocess.run(
        [str(node), str(HERE / "labels.cjs"), *pictures],
        env={**os.environ, "NODE_PATH": str(modules), "CHROMIUM": str(chromium)},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    labels = json.loads(done.stdout)
    shown = {text for text, _, _ in labels}
    assert {"silu", "add", "all"} <= shown
    assert any("…" in text for text in shown)
    assert all(len(text) > 4 for text in shown if "…" in text)
    assert [label for label in labels if label[1] > label[2]] == []
