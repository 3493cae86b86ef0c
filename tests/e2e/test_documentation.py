"""What the documentation shows is what happens: every example is run, every table compared."""

from __future__ import annotations

import ast
import re
import shlex
import subprocess
import sys
import types
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from deltaworks import errors
from deltaworks.config.project import load_project
from tests.workbench import Workbench, run_cli
from tools.reference import COMMAND, written_pages
from tools.reference.errors import error_classes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
ROOT = Path(__file__).resolve().parents[2]
FILES_PAGE = "docs/pipeline-files.md"
PAGES = (
    "README.md",
    "docs/cli.md",
    "docs/pipeline-files.md",
    "docs/classic.md",
    "docs/credentials.md",
    "docs/storage.md",
    "docs/errors.md",
    "docs/kafka.md",
    "docs/streams.md",
    "ARCHITECTURE.md",
)
FENCE = re.compile(
    r"(?P<mark><!-- not run here: [^>]+ -->\n)?^```(?P<language>\w*)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
RUN_BY_OTHERS = ("make ",)


@dataclass(frozen=True)
class Example:
    """A fenced block of a page."""

    page: str
    line: int
    language: str
    text: str
    skipped: bool


def examples(page: str) -> list[Example]:
    content = (ROOT / page).read_text(encoding="utf-8")
    return [
        Example(
            page=page,
            line=content.count("\n", 0, match.start()) + 1,
            language=match["language"],
            text=match["text"],
            skipped=match["mark"] is not None,
        )
        for match in FENCE.finditer(content)
    ]


def of_language(page: str, language: str) -> list[Example]:
    return [e for e in examples(page) if e.language == language and not e.skipped]


def write_file(example: Example, folder: Path) -> Path:
    """The file a yaml block is: its first line names it."""
    match = re.match(r"# (?P<name>[\w/]+\.yaml)\n", example.text)
    assert match, f"{example.page}:{example.line} must begin with the file's name"
    path = folder / match["name"]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(example.text, encoding="utf-8")
    return path


def newest_run() -> str:
    return str(run_cli("runs", "list", "--json").json["runs"][0]["run_id"])


def run_shell(example: Example, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each line of a bash block as the user would type it."""
    for line in example.text.splitlines():
        if line.startswith("export "):
            name, _, value = line.removeprefix("export ").partition("=")
            monkeypatch.setenv(name, value.strip('"'))
            continue
        words = shlex.split(line.partition(" #")[0])
        if words[0] == "cd":
            monkeypatch.chdir(words[1])
            continue
        assert words[0] == "deltaworks", f"{example.page}:{example.line}: {line}"
        arguments = [newest_run() if word == "RUN_ID" else word for word in words[1:]]
        answer = run_cli(*arguments)
        assert answer.code == 0, f"{line}\n{answer.stdout}{answer.stderr}"


def run_python(example: Example) -> None:
    exec(compile(example.text, f"{example.page}:{example.line}", "exec"), {})  # noqa: S102


def test_every_block_is_of_a_language_the_tests_know() -> None:
    known = {"bash", "yaml", "json", "python", "text"}
    found = [example for page in PAGES for example in examples(page)]
    assert [f"{e.page}:{e.line}" for e in found if e.language not in known] == []
    skipped = [line for e in found if e.skipped for line in e.text.splitlines()]
    assert [line for line in skipped if not line.startswith(RUN_BY_OTHERS)] == []


@pytest.mark.parametrize("page", ["README.md", "docs/cli.md"])
def test_every_command_and_program_of_the_page_works_in_order(
    page: str,
    bench: object,  # noqa: ARG001 - the JVM must be up
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = tmp_path / "page"
    folder.mkdir()
    monkeypatch.chdir(folder)
    for example in examples(page):
        if example.skipped:
            continue
        if example.language == "bash":
            run_shell(example, monkeypatch)
        elif example.language == "yaml":
            write_file(example, Path.cwd())
            assert run_cli("run", "orders").code == 0
        elif example.language == "python":
            run_python(example)


@pytest.mark.parametrize("page", ["docs/credentials.md", "docs/kafka.md", "docs/storage.md"])
def test_every_command_and_file_of_the_pages_on_connections_works_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, page: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Workbench(tmp_path).pipeline(
        "p", "extract: {type: csv, path: a.csv}\nload: {type: delta, table: t}\n"
    )
    for example in examples(page):
        if example.language == "bash":
            run_shell(example, monkeypatch)
        elif example.language == "yaml":
            write_file(example, tmp_path)
            answer = run_cli("validate")
            assert answer.code == 0, answer.stderr


def test_the_page_on_credentials_shows_the_refusal_of_a_secret(
    desk: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(desk.root)
    options = "  options:\n    password: hunter2\n"
    extract = f"extract:\n{options}  type: csv\n  path: a.csv\n"
    desk.pipeline("orders", f"{extract}load: {{type: delta, table: t}}\n")
    shown = [example.text for example in of_language("docs/credentials.md", "text")]
    assert run_cli("validate").stderr in shown


def test_everything_on_the_page_of_streams_works_in_order_without_a_jvm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for example in examples("docs/streams.md"):
        if example.language == "bash":
            run_shell(example, monkeypatch)
        elif example.language == "yaml":
            write_file(example, Path.cwd())
        elif example.language == "python":
            run_python(example)


def test_the_readmes_pipeline_is_the_one_init_writes(tmp_path: Path) -> None:
    run_cli("init", str(tmp_path))
    written = (tmp_path / "pipelines" / "orders.yaml").read_text(encoding="utf-8")
    shown = of_language("README.md", "yaml")[0].text.partition("\n")[2]
    assert re.sub(r" +# .*", "", shown) == written


def test_every_file_of_the_page_on_files_is_valid(
    bench: object,  # noqa: ARG001 - the JVM must be up
    tmp_path: Path,
) -> None:
    for example in of_language(FILES_PAGE, "yaml"):
        write_file(example, tmp_path)
    (tmp_path / "transforms").mkdir()
    functions = of_language(FILES_PAGE, "python")[0].text
    (tmp_path / "transforms" / "cleaning.py").write_text(functions, encoding="utf-8")
    config = load_project(tmp_path, environ={})
    assert config.name == "shop"
    assert load_project(tmp_path, environ={}, profile="big").engine.master == "local[8]"
    answer = run_cli("validate", "--project", str(tmp_path))
    assert (answer.code, "error:" in answer.stderr) == (0, False), answer.stderr
    tested = run_cli("test", "--project", str(tmp_path), "--quiet")
    assert tested.code == 0, tested.stdout + tested.stderr


def test_the_steps_of_the_page_run(jvm: SparkSession, bench: Workbench) -> None:
    page = FILES_PAGE
    for example in of_language(page, "yaml"):
        if re.match(r"# pipelines/(order_lines|sales_by_month)\.yaml", example.text):
            write_file(example, bench.root)
    bench.write("transforms/cleaning.py", of_language(page, "python")[0].text)
    lines = "array(named_struct('sku', 'a', 'amount', 2D, 'discount', cast(null as int)))"
    shop = (
        f"SELECT 1 AS order_id, 7 AS customer_id, timestamp'2026-01-01' AS updated_at, {lines} "
        "AS lines, named_struct('zip', '9000', 'country', cast(null as string)) AS address"
    )
    jvm.sql(shop).write.parquet(str(bench.root / "inbox/shops"))
    jvm.sql(f"SELECT *, true AS online FROM ({shop.replace('01-01', '01-02')})").write.parquet(
        str(bench.root / "inbox/web")
    )
    orders = "SELECT * FROM VALUES ('NL', 1, 5D), ('NL', 9, 6D), ('DE', 2, null) AS t"
    jvm.sql(f"{orders}(country, month, amount)").write.format("delta").save(
        str(bench.table("orders"))
    )
    assert bench.run("order_lines")["batches"][0]["rows_dropped"] == 1
    (line,) = bench.rows("order_lines")
    assert (line["line_no"], line["sku"], line["last_three"]) == (0, "a", 2.0)
    assert line["address"] == {"postcode": "9000", "country": "NL"}
    bench.run("sales_by_month")
    assert bench.rows("sales_by_month") == [{"country": "NL", "1": 5.0, "2": None, "3": None}]


def test_what_the_code_knows_stands_in_the_pages_as_the_code_has_it() -> None:
    stale = [
        path.relative_to(ROOT).as_posix()
        for path, text in written_pages().items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]
    assert stale == [], f"run: .venv/bin/{COMMAND}"


def test_the_site_builds_with_every_link_in_it(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", str(tmp_path)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    for page in ("index.html", "reference/sources/index.html", "reference/commands/index.html"):
        assert (tmp_path / page).is_file()
    assert "delta_changes" in (tmp_path / "reference/sources/index.html").read_text()


def test_the_classic_example_becomes_the_native_one_beside_it(tmp_path: Path) -> None:
    file = tmp_path / "orders_by_day.json"
    file.write_text(of_language("docs/classic.md", "json")[0].text, encoding="utf-8")
    assert run_cli("validate", str(file)).code == 0
    shown = of_language("docs/classic.md", "yaml")[0].text.partition("\n")[2]
    assert run_cli("convert", str(file)).stdout == shown


def test_every_error_code_is_documented_with_its_exit_code() -> None:
    page = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    wanted = {f"| `{error.code}` | {error.exit_code} |" for error in error_classes()}
    assert sorted(row for row in wanted if row not in page) == []
    codes = {value for name, value in vars(errors).items() if name.startswith("EXIT_")}
    assert sorted(code for code in codes if f"\n| {code} |" not in page) == []


def problem_codes() -> set[str]:
    """The codes given to whatever makes a problem, by keyword or as one of the first words."""
    found: set[str] = set()
    for folder in ("config", "pipeline"):
        for path in (ROOT / "src" / "deltaworks" / folder).glob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call) and ast.unparse(node.func).lower().endswith(
                    "problem"
                ):
                    given = [*node.args[:2], *(k.value for k in node.keywords if k.arg == "code")]
                    found |= {str(a.value) for a in given if isinstance(a, ast.Constant)}
    return found


def test_every_code_of_a_problem_is_documented() -> None:
    page = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    problems = page.partition("## Problems in files")[2]
    named = problem_codes()
    assert {"yaml", "cycle", "unknown_type", "unknown_key", "reserved"} <= named
    assert sorted(code for code in named if f"| `{code}` |" not in problems) == []


def test_the_example_screens_are_real_ones() -> None:
    kept = "".join(
        path.read_text(encoding="utf-8")
        for path in sorted((Path(__file__).parent / "mistakes").glob("*.txt"))
    )
    shown = of_language("docs/errors.md", "text")
    assert shown
    assert [e.text for e in shown if e.text not in kept] == []


def test_every_layer_and_package_is_in_the_architecture() -> None:
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    package = ROOT / "src" / "deltaworks"
    folders = [p.name for p in package.iterdir() if p.is_dir() and (p / "__init__.py").exists()]
    modules = [p.stem for p in package.glob("*.py") if not p.stem.startswith("__")]
    assert sorted(name for name in (*folders, *modules) if f"`{name}`" not in page) == []
    places = re.findall(r"`?\b((?:\w+/)+\w+\.py)\b", page)
    known = {p.relative_to(package).as_posix() for p in package.rglob("*.py")}
    known |= {p.relative_to(ROOT).as_posix() for p in (ROOT / "tools").glob("*.py")}
    assert sorted(p for p in places if p not in known | {"transforms/sample.py"}) == []


def test_the_example_plugin_is_a_whole_plugin(monkeypatch: pytest.MonkeyPatch) -> None:
    from deltaworks.contracts.registry import _only_plugin

    module = types.ModuleType("deltaworks.transforms.sample")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(of_language("ARCHITECTURE.md", "python")[0].text, module.__dict__)  # noqa: S102
    plugin = _only_plugin(module, "transform")
    assert plugin.plugin_type() == "sample"
    assert plugin.model_validate({"share": 0.5}).document() == {"type": "sample", "share": 0.5}


def test_links_between_pages_lead_somewhere() -> None:
    link = re.compile(r"\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)")
    broken = [
        f"{page}: {target}"
        for page in (*PAGES, "CONTRIBUTING.md")
        for target in link.findall((ROOT / page).read_text(encoding="utf-8"))
        if not ((ROOT / page).parent / target).exists()
    ]
    assert broken == []
