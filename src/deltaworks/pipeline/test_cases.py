"""Tests of pipelines, as files of the project say them: rows in, rows out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)

from deltaworks.config.documents import Document, load_document
from deltaworks.config.interpolate import Names
from deltaworks.config.project import ProjectConfig
from deltaworks.config.validation import problems_of
from deltaworks.contracts.expression import SchemaText
from deltaworks.contracts.plugin import TextMap
from deltaworks.errors import ConfigError, Problem, SpecError
from deltaworks.pipeline.catalog import plan_of, require_used
from deltaworks.pipeline.spec import ONLY_SOURCE
from deltaworks.pipeline.stages import Apply, Extract, Plan
from deltaworks.suggest import did_you_mean

TESTS = "tests/*.yaml"
ONLY_SINK = ""
"""What `expect` names when it names nothing: what the only sink has."""
_SETTINGS = ConfigDict(
    frozen=True, extra="forbid", populate_by_name=True, use_attribute_docstrings=True
)

Row = dict[str, Any]


class Given(BaseModel):
    """Rows that a source is to give."""

    model_config = _SETTINGS

    rows: tuple[Row, ...] = ()
    """The rows, each by column."""
    file: str = ""
    """A CSV or JSON file with the rows, instead."""
    schema_: SchemaText = Field(default="", alias="schema")
    """Columns and types as SQL spells them, where the source does not say them."""

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if self.rows and self.file:
            raise ValueError('say either "rows" or "file"')
        return self


def _given(value: Any) -> Any:
    if isinstance(value, list):
        return {"rows": value}
    return {"file": value} if isinstance(value, str) else value


def _given_by_source(value: Any) -> Any:
    is_one = not isinstance(value, dict) or {"rows", "file"} & value.keys()
    return {ONLY_SOURCE: value} if is_one else value


def _expected_by_name(value: Any) -> Any:
    return {ONLY_SINK: value} if isinstance(value, list) else value


class Case(BaseModel):
    """One test: what the sources give, and what must come of it."""

    model_config = _SETTINGS

    name: str
    """What the test shows, in a few words."""
    given: Annotated[
        dict[str, Annotated[Given, BeforeValidator(_given)]], BeforeValidator(_given_by_source)
    ]
    """Rows, or a file with rows, for each source; without names for the only one."""
    expect: Annotated[dict[str, tuple[Row, ...]], BeforeValidator(_expected_by_name)] = Field(
        default_factory=dict
    )
    """Rows of sinks and steps, in any order; columns that are left out are not compared."""
    expect_quarantined: int | None = Field(default=None, ge=0)
    """How many rows are quarantined."""
    expect_error: str = ""
    """The code of the error that stops the run, or words of its message."""
    vars: TextMap = Field(default_factory=dict)
    """Variables of the pipeline, for this test."""

    @model_validator(mode="after")
    def _can_fail(self) -> Self:
        if not self.expect and self.expect_quarantined is None and not self.expect_error:
            raise ValueError("a test must expect something: rows, quarantined rows, or an error")
        if self.expect_error and (self.expect or self.expect_quarantined is not None):
            raise ValueError("a run that stops with an error leaves no rows to expect")
        return self


class CaseFile(BaseModel):
    """What a file of tests may say."""

    model_config = _SETTINGS

    pipeline: str
    """The pipeline that is tested."""
    tests: tuple[Case, ...] = Field(min_length=1)
    """The tests."""


@dataclass(frozen=True, kw_only=True)
class LocatedCase:
    """A test and where it stands."""

    case: Case
    pipeline: str
    document: Document
    number: int

    @property
    def file(self) -> str:
        """The file, as the user would write it."""
        return self.document.shown

    @property
    def line(self) -> int:
        """The line on which the test begins."""
        return self.document.line(("tests", self.number))

    def refuse(self, where: str, message: str, hint: str) -> SpecError:
        """The error for something in the test that does not fit its pipeline."""
        problem = self.document.problem(
            ("tests", self.number, where), code="wrong_value", message=message, hint=hint
        )
        return SpecError(message, problems=[problem])


def case_files(root: Path) -> tuple[Path, ...]:
    """The project's files of tests, by name; other files may stand beside them."""
    return tuple(path for path in sorted(root.glob(TESTS)) if _is_case_file(path))


def _is_case_file(path: Path) -> bool:
    value = load_document(path).value
    return isinstance(value, dict) and bool({"pipeline", "tests"} & value.keys())


def read_cases(path: Path) -> tuple[LocatedCase, ...]:
    """The tests in a file; raises with every problem of the file at once."""
    document = load_document(path)
    try:
        parsed = CaseFile.model_validate(document.value)
    except ValidationError as error:
        problems = problems_of(error, CaseFile, document, ())
        raise SpecError(f'"{document.shown}" is wrong', problems=problems) from None
    if twins := _twins(document, parsed):
        raise SpecError(f'"{document.shown}" is wrong', problems=twins)
    return tuple(
        LocatedCase(case=case, pipeline=parsed.pipeline, document=document, number=i)
        for i, case in enumerate(parsed.tests)
    )


def _twins(document: Document, parsed: CaseFile) -> list[Problem]:
    names = [case.name for case in parsed.tests]
    return [
        document.problem(
            ("tests", i, "name"),
            code="twice",
            message=f'the name "{name}" is used more than once',
            hint="give one of them another name",
        )
        for i, name in enumerate(names)
        if name in names[:i]
    ]


def planned_cases(
    cases: Sequence[LocatedCase], config: ProjectConfig, names: Names
) -> list[tuple[LocatedCase, Plan]]:
    """Tests with the plans they are of; variables of a test are its own, and must be of use to it.

    Those that the names say were given must be of use to one of them.
    """
    found = []
    for one in cases:
        own = replace(names, variables={**names.variables, **one.case.vars})
        found.append((one, plan_of(config, one.pipeline, own, given=one.case.vars)))
    require_used(names, [plan for _, plan in found])
    return found


def chosen_cases(root: Path, targets: tuple[str, ...]) -> tuple[LocatedCase, ...]:
    """All tests, or those that files, names of pipelines or names of tests choose."""
    files = [_file(root, target) for target in targets if target.endswith((".yaml", ".yml"))]
    names = [target for target in targets if not target.endswith((".yaml", ".yml"))]
    chosen = [case for path in files for case in read_cases(path)]
    if names or not targets:
        every = [case for path in case_files(root) for case in read_cases(path)]
        if not every:
            raise ConfigError(f'no test is defined in "{TESTS}"', hint="write one; see docs/cli.md")
        known = dict.fromkeys([one.pipeline for one in every] + [one.case.name for one in every])
        for name in names:
            if name not in known:
                raise ConfigError(f'there is no test "{name}"', hint=did_you_mean(name, known))
        chosen.extend(
            one for one in every if not names or {one.pipeline, one.case.name} & set(names)
        )
    return tuple(chosen)


def _file(root: Path, target: str) -> Path:
    path = Path(target).expanduser()
    inside = root / path
    return inside if not path.exists() and inside.exists() else path.absolute()


def require_names(placed: LocatedCase, plan: Plan) -> None:
    """Refuse a test that names what its pipeline does not have, or leaves a source without rows."""
    sources = [stage.name for stage in plan.sources]
    for name in placed.case.given:
        if name not in sources:
            message = f'pipeline "{placed.pipeline}" has no source "{name}"'
            raise placed.refuse("given", message, did_you_mean(name, sources))
    for name in sources:
        if name not in placed.case.given:
            message = f'"given" has no rows for source "{name}"'
            raise placed.refuse("given", message, f"write them, or say {name}: []")
    names = result_names(plan)
    for name in placed.case.expect:
        if name == ONLY_SINK and len(plan.loads) > 1:
            message = f'pipeline "{placed.pipeline}" has several sinks'
            raise placed.refuse("expect", message, f"name them: {', '.join(names)}")
        if name not in (*names, ONLY_SINK):
            message = f'pipeline "{placed.pipeline}" has no sink or step "{name}"'
            raise placed.refuse("expect", message, did_you_mean(name, names))


def result_names(plan: Plan) -> tuple[str, ...]:
    """What a test may look at: sinks, then steps and sources."""
    steps = [stage.name for stage in plan.stages if isinstance(stage, Apply | Extract)]
    return tuple(dict.fromkeys([*(load.name for load in plan.loads), *steps]))


def expected_columns(rows: tuple[Row, ...]) -> tuple[str, ...]:
    """The columns that expected rows name; all of them name the same ones."""
    if not rows:
        return ()
    first: Mapping[str, Any] = rows[0]
    for row in rows:
        if row.keys() != first.keys():
            odd = min(row.keys() ^ first.keys())
            raise ConfigError(
                f'some of the expected rows name column "{odd}" and some do not',
                hint=f"write `{odd}: null` where it is NULL, or leave it out everywhere",
            )
    return tuple(first)
