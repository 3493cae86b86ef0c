"""The places that a plan reads and writes, and the credentials its stages name for them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from deltaworks.config.object_stores import StorageSettings, store_place
from deltaworks.config.project import ProjectConfig
from deltaworks.contracts.context import ProjectContext
from deltaworks.errors import ConfigError
from deltaworks.pipeline.stages import Extract, Load, Plan, Stage, Verify


def places_of(plan: Plan, project_ctx: ProjectContext) -> tuple[str, ...]:
    """Every location that a run of the plan touches, its warehouse first."""
    return (
        project_ctx.warehouse,
        *(place for stage in plan.stages for place in _places(stage, project_ctx)),
    )


def _places(stage: Stage, project_ctx: ProjectContext) -> Iterator[str]:
    if isinstance(stage, Extract):
        yield from stage.plugin.files_read(project_ctx)
    if isinstance(stage, Extract | Verify):
        yield from stage.plugin.tables_read(project_ctx)
    if isinstance(stage, Load):
        yield stage.plugin.target(project_ctx).location


def with_credentials(config: ProjectConfig, plan: Plan) -> ProjectConfig:
    """The project's settings, its buckets opened by the credentials that stages name."""
    storage = dict(config.storage)
    named: dict[str, str] = {}
    for stage in plan.stages:
        for name in stage.plugin.credentials():
            for place in _places(stage, ProjectContext.of(config)):
                if (store := store_place(place)) is None:
                    continue
                bucket = f"{place.partition('://')[0]}://{store[1]}"
                if named.setdefault(bucket, name) != name:
                    raise ConfigError(
                        f'bucket "{bucket}" cannot be opened by two credentials at once, '
                        f'"{named[bucket]}" and "{name}"',
                        file=plan.pipeline.origin.file,
                        line=stage.line,
                        hint="name one of them, or make two pipelines",
                    )
                storage = _opened(storage, bucket, name)
    return replace(config, storage=storage) if named else config


def storage_of(config: ProjectConfig, plan: Plan) -> dict[str, StorageSettings]:
    """How the buckets that a run of the plan touches are opened; others need not be."""
    touched = [store_place(place) for place in places_of(plan, ProjectContext.of(config))]
    buckets = {place[:2] for place in touched if place is not None}
    opened = with_credentials(config, plan).storage
    return {name: how for name, how in opened.items() if (store_place(name) or ())[:2] in buckets}


def _opened(
    storage: dict[str, StorageSettings], bucket: str, credential: str
) -> dict[str, StorageSettings]:
    """Settings in which a bucket is opened by a credential, keys of its own aside."""
    place = store_place(bucket)
    own = next((name for name in storage if (store_place(name) or ())[:2] == (place or ())[:2]), "")
    settings = storage.get(own, StorageSettings())
    keys = dict.fromkeys(("access_key", "secret_key", "session_token", "account_key", "sas_token"))
    changed = settings.model_copy(update={**keys, "credential": credential})
    return {**storage, (own or bucket): changed}
