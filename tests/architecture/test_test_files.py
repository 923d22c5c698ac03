"""The tests themselves: each one checks something."""

import ast

import pytest

from tests.architecture.project import ROOT

# Calls that fail by themselves when what they check does not hold.
# `expect` is how Playwright waits for what a page must show.
CHECKING = ("assert", "check", "expect", "raises", "test_", "verify", "warns")


def _test_functions(source: str) -> list[ast.FunctionDef]:
    return [
        node
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    ]


def _checks(function: ast.FunctionDef) -> bool:
    return any(
        isinstance(node, ast.Assert) or (isinstance(node, ast.Call) and _raises(node))
        for node in ast.walk(function)
    )


def _raises(call: ast.Call) -> bool:
    name = ""
    if isinstance(call.func, ast.Attribute):
        name = call.func.attr
    elif isinstance(call.func, ast.Name):
        name = call.func.id.lstrip("_")
    # A program that a test starts with check=True fails the test when it fails.
    return name.startswith(CHECKING) or any(
        keyword.arg == "check"
        and isinstance(keyword.value, ast.Constant)
        and keyword.value.value is True
        for keyword in call.keywords
    )


def test_every_test_checks_something() -> None:
    idle = [
        f"{path.relative_to(ROOT)}::{function.name}"
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        for function in _test_functions(path.read_text(encoding="utf-8"))
        if not _checks(function)
    ]
    assert not idle


@pytest.mark.parametrize(
    ("body", "checks"),
    [
        ("assert value == 1", True),
        ("with pytest.raises(ValueError): call()", True),
        ("np.testing.assert_allclose(a, b)", True),
        ("_check_round_trip(value)", True),
        ("subprocess.run(words, check=True)", True),
        ("subprocess.run(words, check=False)", False),
        ("call(value)", False),
        ("print('assert')", False),
    ],
)
def test_the_check_tells_an_idle_test_from_a_checking_one(
    body: str, checks: bool
) -> None:
    (function,) = _test_functions(f"def test_it():\n    {body}\n")
    assert _checks(function) is checks
