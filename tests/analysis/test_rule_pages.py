"""Each rule has a page, its page says what the rule says, and the examples on it hold."""

import doctest
import re
from pathlib import Path

import pytest

from lanescope.analysis.check import RULES

PAGES = Path(__file__).resolve().parents[2] / "docs/reference/rules"


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_the_page_names_the_rule_and_its_example_holds(rule):
    text = (PAGES / f"{rule.code}.md").read_text(encoding="utf-8")
    assert text.startswith(f"# {rule.code}: {rule.title}\n\nSeverity *{rule.severity}*.")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert blocks
    for block in blocks:
        test = doctest.DocTestParser().get_doctest(block, {}, rule.code, None, None)
        shown = []
        results = doctest.DocTestRunner(verbose=False).run(test, out=shown.append)
        assert results.attempted > 0
        assert not results.failed, "".join(shown)


def test_there_is_no_page_without_a_rule_and_all_are_listed():
    codes = {rule.code for rule in RULES}
    assert {page.stem for page in PAGES.glob("LS*.md")} == codes
    listed = re.search(r"```{toctree}\n(.*?)```", (PAGES / "index.md").read_text(encoding="utf-8"), re.DOTALL)
    assert set(listed.group(1).split()) == codes
