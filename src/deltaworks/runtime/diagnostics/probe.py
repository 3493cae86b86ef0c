"""Try to reach what a name stands for: a bucket, a credential, a path or a pipeline's source."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from urllib.parse import urlsplit

from deltaworks.config.credentials.credential import Credential
from deltaworks.config.project import ProjectConfig
from deltaworks.contracts.context import ProjectContext
from deltaworks.errors import ConfigError, DeltaworksError, InputError, TableNotFound
from deltaworks.model.probe import ProbeKind, ProbeResult, Reason
from deltaworks.model.table_ref import absolute, is_url
from deltaworks.pipeline.catalog import is_pipeline_file, pipeline_names
from deltaworks.pipeline.stages import Extract, Plan
from deltaworks.storage.listing import file_bounds, found_files
from deltaworks.storage.tcp_check import reach
from deltaworks.suggest import did_you_mean

_PORTS = {"https": 443, "http": 80}


def probe(name: str, config: ProjectConfig, load: Callable[[str], Plan]) -> tuple[ProbeResult, ...]:
    """Try all that a name stands for; pipelines come before credentials of the same name."""
    if is_url(name) or ("/" in name and not is_pipeline_file(name)):
        return (_location(name, config),)
    known = pipeline_names(config)
    pipeline, _, source = name.rpartition(".")
    if is_pipeline_file(name) or name in known:
        return _sources(load(name), "", config)
    if pipeline in known:
        return _sources(load(pipeline), source, config)
    return _credential(name, config, (*config.storage, *known))


def _location(location: str, config: ProjectConfig) -> ProbeResult:
    """A bucket with a key in it, or files at a path."""
    if is_url(location):
        return _timed(location, "store", lambda: _a_key(location, config))
    path = absolute(location, root=config.root)
    return _timed(location, "path", lambda: found_files(file_bounds(path, written=location)))


def _sources(plan: Plan, source: str, config: ProjectConfig) -> tuple[ProbeResult, ...]:
    """The sources of a pipeline, or the one that is named."""
    project_ctx, name = ProjectContext.of(config), plan.pipeline.name
    extracts = {stage.name: stage for stage in plan.stages if isinstance(stage, Extract)}
    if source and source not in extracts:
        hint = did_you_mean(source, extracts)
        raise ConfigError(f'pipeline "{name}" has no source "{source}"', hint=hint)
    chosen = [extracts[source]] if source else extracts.values()
    return tuple(
        _timed(f"{name}.{stage.name}", "source", _look(stage, project_ctx)) for stage in chosen
    )


def _credential(name: str, config: ProjectConfig, others: Iterable[str]) -> tuple[ProbeResult, ...]:
    """Every bucket that is reached by a credential, and the server it names."""
    try:
        record = config.vault.get(name)
    except ConfigError as error:
        error.hint = did_you_mean(name, others) or error.hint
        raise
    buckets = [place for place, settings in config.storage.items() if settings.credential == name]
    results = [_location(bucket, config) for bucket in buckets]
    if server := _server(record):
        host, port, tls = server
        results.append(_timed(name, "credential", lambda: _answer(host, port, tls=tls)))
    if results:
        return tuple(results)
    raise ConfigError(
        f'nothing says what credential "{name}" opens',
        hint=f"name it under `storage`: s3://BUCKET: {{credential: {name}}}, "
        "or give it `host` and `port`",
    )


def _look(stage: Extract, project_ctx: ProjectContext) -> Callable[[], str]:
    return lambda: stage.plugin.probe(project_ctx)


def _a_key(location: str, config: ProjectConfig) -> str:
    from deltaworks.engines.deltars.bucket_check import first_key

    access = config.store_access(location)
    if access is None:
        raise ConfigError(
            f'"{location}" is on no store that is known', hint="s3://, gs:// or abfss://"
        )
    key = first_key(location, access)
    return f'key "{key}"' if key else "no keys yet"


def _answer(host: str, port: int, *, tls: bool) -> str:
    reach(host, port, tls=tls)
    return f"{host}:{port} answers"


def _server(record: Credential) -> tuple[str, int, bool] | None:
    """Host, port and whether it speaks TLS, of a record that names a server."""
    if record.host and record.port:
        return record.host, record.port, False
    address = urlsplit(record.endpoint)
    if address.hostname is None:
        return None
    port = address.port or _PORTS.get(address.scheme, _PORTS["https"])
    return address.hostname, port, address.scheme == "https"


def _timed(name: str, kind: ProbeKind, look: Callable[[], str]) -> ProbeResult:
    start = time.perf_counter()
    try:
        found = look()
    except DeltaworksError as error:
        return ProbeResult(
            name=name,
            kind=kind,
            latency_ms=_since(start),
            reason=_reason(error),
            message=error.message,
            hint=error.hint,
            exit_code=error.exit_code,
        )
    return ProbeResult(name=name, kind=kind, latency_ms=_since(start), found=found)


def _since(start: float) -> float:
    return round((time.perf_counter() - start) * 1000, 1)


def _reason(error: DeltaworksError) -> Reason:
    if isinstance(error, InputError | TableNotFound):
        return "missing"
    reason: Reason = error.context.get("reason", "other")  # type: ignore[assignment]
    return reason
