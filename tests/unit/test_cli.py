"""The command line itself: options, help, exit codes, and that looking loads nothing heavy."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from deltaworks import __version__
from deltaworks.cli.boundary import answering
from deltaworks.errors import (
    ConfigError,
    DeltaworksError,
    EngineError,
    GuardError,
    Interrupted,
    QualityError,
    RunError,
)
from tests.workbench import Workbench, run_cli

COMMANDS = [
    ("init",),
    ("doctor",),
    ("validate",),
    ("graph",),
    ("plan",),
    ("preview",),
    ("test",),
    ("run",),
    ("convert",),
    ("schema",),
    ("runs", "list"),
    ("runs", "show"),
    ("runs", "resume"),
    ("runs", "replay"),
    ("runs", "abandon"),
    ("checks",),
    ("quarantine", "list"),
    ("quarantine", "show"),
    ("quarantine", "replay"),
    ("quarantine", "discard"),
    ("table", "list"),
    ("table", "rows"),
    ("table", "show"),
    ("table", "history"),
    ("table", "restore"),
    ("table", "accept"),
    ("table", "undo"),
    ("sql",),
    ("secrets", "set"),
    ("secrets", "list"),
    ("secrets", "rm"),
    ("secrets", "test"),
    ("sources", "test"),
    ("stream", "run"),
    ("stream", "epochs"),
    ("jars", "fetch"),
    ("jars", "archive"),
]
SPEC = "extract: {type: csv, path: a.csv}\nload: {type: delta, table: TABLE}\n"


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_has_help_json_and_debug(command: tuple[str, ...]) -> None:
    answer = run_cli(*command, "--help")
    assert (answer.code, answer.stderr) == (0, "")
    assert answer.stdout.startswith(f"Usage: deltaworks {' '.join(command)}")
    assert "--json" in answer.stdout
    assert "--debug" in answer.stdout


def test_the_list_above_is_every_command() -> None:
    found: list[tuple[str, ...]] = []
    for name in _commands(run_cli("--help").stdout):
        below = _commands(run_cli(name, "--help").stdout)
        found.extend([(name, inner) for inner in below] or [(name,)])
    assert sorted(found) == sorted(COMMANDS)


def _commands(help_text: str) -> list[str]:
    _, _, listed = help_text.partition("Commands:\n")
    return [
        line.split()[0]
        for line in listed.splitlines()
        if line.startswith("  ") and line[2:3] != " "
    ]


def test_the_version_is_the_packages() -> None:
    assert run_cli("--version").stdout == f"deltaworks {__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "message", "fix"),
    [
        (("run", "a", "--quite"), 'there is no option "--quite"', 'did you mean "--quiet"?'),
        (("run", "a", "--zzz"), 'there is no option "--zzz"', "see `deltaworks run --help`"),
        (("vlidate",), 'No such command "vlidate"', "see `deltaworks --help`"),
        (("plan",), "Missing argument", "see `deltaworks plan --help`"),
        (("run", "a", "b"), "unexpected extra argument", "see `deltaworks run --help`"),
        (("runs", "list", "--limit", "x"), 'Invalid value for "--limit"', "see `deltaworks runs"),
        (("run",), "say which pipeline to run", "deltaworks run NAME"),
        (("run", "a", "--all"), "say which pipeline to run", "deltaworks run NAME"),
        (("run", "a", "--parallel", "2"), "--parallel needs several pipelines", "add --all"),
        (("run", "--all", "--parallel", "0"), 'Invalid value for "--parallel"', "see `deltaworks"),
        (("run", "a", "--timeout", "soon"), '"soon" is not a span of time', ""),
        (("run", "a", "--var", "day"), '"--var day" is not NAME=VALUE', "--var day=2026-01-02"),
        (("run", "a", "--var", "=5"), '"--var =5" is not NAME=VALUE', "--var day=2026-01-02"),
        (("validate", "--var", "day"), '"--var day" is not NAME=VALUE', "--var day=2026-01-02"),
        (("plan", "a", "--project", "/no/such"), 'folder "/no/such" does not exist', ""),
    ],
)
def test_a_wrong_word_on_the_command_line_exits_2_with_a_fix(
    arguments: tuple[str, ...], message: str, fix: str
) -> None:
    answer = run_cli(*arguments)
    assert (answer.code, answer.stdout) == (2, "")
    assert message in answer.stderr
    assert fix in answer.stderr
    assert len(answer.stderr.splitlines()) <= 2


@pytest.mark.parametrize("group", [("table",), ("runs",), ("jars",), ()])
def test_a_group_without_a_command_shows_its_help(group: tuple[str, ...]) -> None:
    answer = run_cli(*group)
    assert answer.code in (0, 2)
    assert "Commands:" in answer.stdout + answer.stderr


def test_a_variable_may_hold_an_equals_sign(desk: Workbench) -> None:
    desk.pipeline("p", 'extract: {type: csv, path: "${var:a}"}\nload: {type: delta, table: t}\n')
    document = desk.cli("plan", "p", "--offline", "--json", "--var", "a=x=y").json
    assert document["pipeline"] == "p"


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (RunError("x"), 1),
        (ConfigError("x"), 2),
        (QualityError("x"), 3),
        (EngineError("x"), 4),
        (GuardError("x"), 5),
        (Interrupted("x"), 130),
        (ZeroDivisionError("x"), 70),
        (KeyboardInterrupt(), 130),
    ],
)
@pytest.mark.parametrize("as_json", [False, True])
def test_every_error_ends_with_its_documented_code_and_no_traceback(
    error: BaseException, code: int, as_json: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    import typer

    with pytest.raises(typer.Exit) as caught, answering(as_json=as_json, debug=False):
        raise error
    told = capsys.readouterr()
    assert caught.value.exit_code == code
    assert "Traceback" not in told.out + told.err
    if as_json:
        assert set(json.loads(told.out)["error"]) >= {"code", "message", "hint"}
        assert told.err == ""
    else:
        assert told.err.startswith("error: ")


def test_debug_shows_the_traceback_and_its_cause(capsys: pytest.CaptureFixture[str]) -> None:
    import typer

    with pytest.raises(typer.Exit), answering(as_json=False, debug=True):
        raise DeltaworksError("outer") from KeyError("inner")
    told = capsys.readouterr().err
    assert "Traceback" in told
    assert "KeyError: 'inner'" in told


def test_a_bug_says_so_and_how_to_report_it(capsys: pytest.CaptureFixture[str]) -> None:
    import typer

    with pytest.raises(typer.Exit), answering(as_json=False, debug=False):
        raise ZeroDivisionError("by zero")
    told = capsys.readouterr().err
    assert "this is a bug in Deltaworks: ZeroDivisionError: by zero" in told
    assert "--debug" in told


def test_init_writes_a_project_that_validates(tmp_path: Path) -> None:
    folder = tmp_path / "my shop"
    answer = run_cli("init", str(folder))
    assert answer.code == 0
    files = sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())
    assert files == [
        "data/orders_2026-01-01.csv",
        "deltaworks.yaml",
        "pipeline.schema.json",
        "pipelines/orders.yaml",
        "tests/orders.yaml",
    ]
    checked = run_cli("validate", "--project", str(folder))
    assert (checked.code, checked.stdout) == (0, "1 pipeline ok\n")


def test_init_touches_nothing_that_is_there(tmp_path: Path) -> None:
    (tmp_path / "deltaworks.yaml").write_text("mine")
    answer = run_cli("init", str(tmp_path))
    assert answer.code == 2
    assert "exists already" in answer.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["deltaworks.yaml"]


def test_two_projects_of_one_name_have_ids_of_their_own(tmp_path: Path) -> None:
    ids = set()
    for place in ("a", "b"):
        run_cli("init", str(tmp_path / place / "shop"))
        ids.add((tmp_path / place / "shop" / "deltaworks.yaml").read_text())
    assert len(ids) == 2


def test_init_into_a_file_is_a_short_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    answer = run_cli("init", str(tmp_path / "file" / "shop"))
    assert answer.code == 4
    assert "cannot be written" in answer.stderr


TEN = """
import sys
from deltaworks.cli.app import answer
code = answer(["validate", "--project", sys.argv[1]])
heavy = {"pyspark", "py4j", "pyarrow", "delta", "deltalake", "pandas", "numpy"} & set(sys.modules)
print(code, *sorted(heavy), file=sys.stderr)
"""


def test_validating_ten_files_loads_no_engine(desk: Workbench) -> None:
    for i in range(10):
        desk.pipeline(f"p{i}", SPEC.replace("TABLE", f"t{i}"))
    child = [sys.executable, "-c", TEN, str(desk.root)]
    done = subprocess.run(child, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("10 pipelines ok\n", "0\n")


def test_validate_takes_names_and_files(desk: Workbench) -> None:
    desk.pipeline("good", SPEC)
    desk.pipeline("bad", "extract: {type: cvs}\nload: {type: delta, table: t}\n")
    assert desk.cli("validate", "good").code == 0
    assert desk.cli("validate", "pipelines/good.yaml").code == 0
    assert desk.cli("validate", "good", "bad").code == 2
    assert desk.cli("validate", "bda").code == 2


def test_a_file_outside_any_project_is_validated_too(tmp_path: Path) -> None:
    file = tmp_path / "alone.yaml"
    file.write_text("pipeline: alone\n" + SPEC.replace("TABLE", "t"))
    assert run_cli("validate", str(file), "--project", str(tmp_path)).stdout == "1 pipeline ok\n"
    assert run_cli("validate", "--project", str(tmp_path)).stdout == "1 pipeline ok\n"


def test_a_file_finds_its_own_project_wherever_the_user_stands(
    desk: Workbench, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = desk.pipeline("p", "extract: {type: csv, path: a}\nload: {type: delta, path: out}\n")
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    assert run_cli("validate", str(file)).code == 0
    for target in (str(file), str(file.with_suffix(".json"))):
        Path(target).write_text(file.read_text())
        assert run_cli("plan", target, "--offline").code == 0
    alone = tmp_path_factory.mktemp("alone") / "alone.yaml"
    alone.write_text("pipeline: alone\n" + SPEC.replace("TABLE", "t"))
    plan = run_cli("plan", str(alone), "--offline", "--json")
    assert plan.code == 0
    assert [path.name for path in alone.parent.iterdir()] == ["alone.yaml"]


def test_an_empty_project_says_how_to_start(desk: Workbench) -> None:
    answer = desk.cli("validate")
    assert answer.code == 2
    assert "deltaworks init" in answer.stderr


@pytest.mark.parametrize("words", [("run", "orders"), ("validate",)])
def test_a_folder_outside_every_project_is_told_as_such(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    answered = run_cli(*words, "--project", str(tmp_path))
    assert answered.code == 2
    assert "there is no deltaworks.yaml here or above" in answered.stderr
    assert "run `deltaworks init`" in answered.stderr
