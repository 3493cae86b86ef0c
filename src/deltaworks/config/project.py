"""The project file, `deltaworks.yaml`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
)

from deltaworks.config.credentials.settings import DEFAULT_VAULT, VaultSettings, listed
from deltaworks.config.credentials.vault import Vault, open_vault
from deltaworks.config.documents import Document, load_document, shown_path
from deltaworks.config.interpolate import Given, Names, interpolate, variables_in
from deltaworks.config.object_stores import StorageSettings, StoreAccess, Stores, storage_problem
from deltaworks.config.secret_scan import secret_problems
from deltaworks.config.validation import problems_of
from deltaworks.errors import ConfigError, Problem, SpecError
from deltaworks.model.table_ref import absolute, table_path_problem
from deltaworks.suggest import did_you_mean

PROJECT_FILE = "deltaworks.yaml"
_ONE_OR_MORE = BeforeValidator(
    listed, json_schema_input_type=VaultSettings | tuple[VaultSettings, ...]
)
_SETTINGS = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class EngineSettings(BaseModel):
    """How Spark is started."""

    model_config = _SETTINGS

    master: str = "local[*]"
    """Where Spark runs: this machine, or a cluster's URL."""
    conf: dict[str, str] = Field(default_factory=dict)
    """Spark settings; they win over ours."""
    compiler: Literal["auto", "quick", "full"] = "auto"
    """How Java compiles: `quick` starts sooner, `full` works faster, `auto` goes by the input."""


class LockSettings(BaseModel):
    """How long to wait for another run."""

    model_config = _SETTINGS

    wait_seconds: float = 30.0
    """Give up, naming who has the lock, after this long."""


class RetrySettings(BaseModel):
    """How often a commit is tried again when another writer was faster."""

    model_config = _SETTINGS

    attempts: int = Field(default=5, ge=1)
    """Tries in all; 1 means none again."""
    wait_seconds: float = Field(default=0.2, ge=0)
    """The first pause; each further one is about twice as long, and a little random."""
    most_wait_seconds: float = Field(default=10.0, ge=0)
    """The longest pause."""


class ProjectFile(BaseModel):
    """What `deltaworks.yaml` may say."""

    model_config = _SETTINGS

    project: str
    """The project's name."""
    warehouse: str
    """Where tables live: a folder, or an object store's URL."""
    id: str = ""
    """Written once by `init`; keeps two projects of one name apart."""
    pipelines: str = "pipelines/*.{yaml,yml,json}"
    """Which files are pipelines."""
    engine: EngineSettings = Field(default_factory=EngineSettings)
    """How Spark is started."""
    locks: LockSettings = Field(default_factory=LockSettings)
    """How long to wait for another run."""
    retries: RetrySettings = Field(default_factory=RetrySettings)
    """How often a commit is tried again when another writer was faster."""
    storage: dict[str, StorageSettings] = Field(default_factory=dict)
    """How buckets and containers are reached, each by its location, such as s3://lake."""
    credentials: Annotated[tuple[VaultSettings, ...], _ONE_OR_MORE] = DEFAULT_VAULT
    """Where credentials are kept; several places are asked in order."""
    vars: dict[str, str] = Field(default_factory=dict)
    """Names for ${var:NAME}; `--var NAME=...` overrides."""
    profiles: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Named changes to all of the above, chosen with `--profile`."""

    @field_validator("storage")
    @classmethod
    def _buckets(cls, storage: dict[str, StorageSettings]) -> dict[str, StorageSettings]:
        for location in storage:
            if problem := storage_problem(location):
                raise ValueError(f'"{location}": {problem}')
        return storage


@dataclass(frozen=True, kw_only=True)
class ProjectConfig:
    """A project file, its profile applied, its paths resolved."""

    root: Path
    name: str
    project_id: str
    warehouse: str
    pipelines: str
    engine: EngineSettings
    locks: LockSettings
    retries: RetrySettings
    names: Names
    credentials: tuple[VaultSettings, ...] = DEFAULT_VAULT
    storage: Mapping[str, StorageSettings] = field(default_factory=dict)
    profile: str = ""
    file: Path | None = None

    @property
    def vault(self) -> Vault:
        """The project's credentials, by name."""
        return open_vault(
            self.credentials,
            root=self.root,
            project=self.project_id,
            environ=self.names.environ,
        )

    @cached_property
    def stores(self) -> Stores:
        """The object stores that the project reaches."""
        return Stores(self.storage, vault=lambda: self.vault, environ=self.names.environ)

    def store_access(self, location: str) -> StoreAccess | None:
        """How a location on an object store is reached; opens the credential that it names."""
        return self.stores.access(location)


def find_project_file(start: Path) -> Path | None:
    """The nearest project file at or above a folder."""
    for folder in (start, *start.parents):
        if (folder / PROJECT_FILE).is_file():
            return folder / PROJECT_FILE
    return None


def load_project(
    start: Path,
    *,
    environ: Mapping[str, str],
    profile: str = "",
    variables: Mapping[str, str] | None = None,
) -> ProjectConfig:
    """The project at or above a folder; a folder without one is a project of its own name."""
    file = find_project_file(start)
    if file is None:
        return _bare_project(start, environ=environ, profile=profile, variables=variables or {})
    document = load_document(file)
    if not isinstance(document.value, dict):
        raise ConfigError(f'"{shown_path(file)}" must hold names and values, such as project: shop')
    merged = _with_profile(document, profile)
    own = merged.value.get("vars")
    all_variables = {**(own if isinstance(own, dict) else {}), **(variables or {})}
    names = Names(all_variables, environ)
    ready, problems = interpolate(_without_profiles(merged), names)
    parsed = _parse(ready, (*secret_problems(document), *problems))
    warehouse = absolute(parsed.warehouse, root=file.parent)
    if problem := table_path_problem(warehouse):
        raise ConfigError(problem, file=document.shown, line=document.line(("warehouse",)))
    return ProjectConfig(
        root=file.parent,
        name=parsed.project,
        project_id=parsed.id or parsed.project,
        warehouse=warehouse,
        pipelines=parsed.pipelines,
        engine=parsed.engine,
        locks=parsed.locks,
        retries=parsed.retries,
        names=Names(
            {**parsed.vars, **(variables or {})},
            environ,
            of_project=frozenset((*parsed.vars, *variables_in(merged.value))),
            given=_must_be_used(variables),
        ),
        credentials=parsed.credentials,
        storage=parsed.storage,
        profile=profile,
        file=file,
    )


def _bare_project(
    root: Path, *, environ: Mapping[str, str], profile: str, variables: Mapping[str, str]
) -> ProjectConfig:
    if profile:
        raise ConfigError(
            f'profile "{profile}" needs a project file, and there is none at or above "{root}"',
            hint="run `deltaworks init` there",
        )
    return ProjectConfig(
        root=root,
        name=root.name or "project",
        project_id=root.name or "project",
        warehouse=absolute("./warehouse", root=root),
        pipelines="*.{yaml,yml}",
        engine=EngineSettings(),
        locks=LockSettings(),
        retries=RetrySettings(),
        names=Names(dict(variables), environ, given=_must_be_used(variables)),
    )


def _must_be_used(variables: Mapping[str, str] | None) -> frozenset[str]:
    return frozenset(variables) if isinstance(variables, Given) else frozenset()


def _with_profile(document: Document, profile: str) -> Document:
    if not profile:
        return document
    profiles = document.value.get("profiles")
    profiles = profiles if isinstance(profiles, dict) else {}
    if profile not in profiles:
        raise ConfigError(
            f'there is no profile "{profile}"',
            hint=did_you_mean(profile, profiles),
            file=document.shown,
            line=document.line(("profiles",)),
        )
    if not isinstance(profiles[profile], dict):
        return document  # parsing it says what is wrong
    merged, inside = _merge(document.value, profiles[profile]), ("profiles", profile)
    own = {where[2:]: line for where, line in document.lines.items() if where[:2] == inside}
    return replace(document, value=merged, lines={**document.lines, **own, (): 1})


def _without_profiles(document: Document) -> Document:
    """Variables of profiles that were not chosen need not be set."""
    profiles = document.value.get("profiles")
    if not isinstance(profiles, dict):
        return document
    named = {name: {} if isinstance(one, dict) else one for name, one in profiles.items()}
    return replace(document, value={**document.value, "profiles": named})


def _merge(under: Any, over: Any) -> Any:
    """Maps are merged name by name, deeply; anything else is replaced."""
    if isinstance(under, dict) and isinstance(over, dict):
        joined = {name: _merge(under[name], over[name]) for name in under.keys() & over.keys()}
        return {**under, **over, **joined}
    return over


def _parse(document: Document, problems: tuple[Problem, ...]) -> ProjectFile:
    value = _texts(document.value)
    try:
        parsed = ProjectFile.model_validate(value)
    except ValidationError as error:
        problems = (*problems, *problems_of(error, ProjectFile, document, ()))
        raise SpecError("the project file is wrong", problems=problems) from None
    if problems:
        raise SpecError("the project file is wrong", problems=problems)
    return parsed


def _texts(value: dict[str, Any]) -> dict[str, Any]:
    """Numbers and booleans in `vars` and `engine.conf` are the texts they were written as."""
    result = dict(value)
    if isinstance(result.get("vars"), dict):
        result["vars"] = {name: _text(item) for name, item in result["vars"].items()}
    engine = result.get("engine")
    if isinstance(engine, dict) and isinstance(engine.get("conf"), dict):
        conf = {name: _text(item) for name, item in engine["conf"].items()}
        result["engine"] = {**engine, "conf": conf}
    return result


def _text(value: Any) -> Any:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else value
