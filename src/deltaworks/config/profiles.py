"""Every profile of a project file, checked beside the one in use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from deltaworks.config.documents import load_document
from deltaworks.config.interpolate import is_unset_environment
from deltaworks.config.project import find_project_file, load_project
from deltaworks.errors import DeltaworksError, Problem


@dataclass(frozen=True)
class ProfileFindings:
    """What is wrong with profiles, and what they need from the environment."""

    problems: tuple[Problem, ...] = ()
    notes: tuple[Problem, ...] = ()


def profile_names(start: Path) -> tuple[str, ...]:
    """The profiles of the project at or above a folder; none when its file cannot be read."""
    file = find_project_file(start)
    try:
        value = None if file is None else load_document(file).value
    except DeltaworksError:
        return ()
    profiles = value.get("profiles") if isinstance(value, dict) else None
    return tuple(profiles) if isinstance(profiles, dict) else ()


def other_profiles(
    start: Path, *, environ: Mapping[str, str], profile: str, variables: Mapping[str, str]
) -> ProfileFindings:
    """What is found in the profiles that are not in use, without what is wrong in all of them."""

    def found(name: str) -> tuple[Problem, ...]:
        try:
            load_project(start, environ=environ, profile=name, variables=variables)
        except DeltaworksError as error:
            return error.problems
        return ()

    known = set(found(profile))
    problems: list[Problem] = []
    notes: list[Problem] = []
    for name in profile_names(start):
        if name == profile:
            continue
        own = [problem for problem in found(name) if problem not in known]
        unset = {problem.path for problem in own if is_unset_environment(problem)}
        notes += of_profile(name, filter(is_unset_environment, own))
        problems += of_profile(name, (problem for problem in own if problem.path not in unset))
    return ProfileFindings(tuple(problems), tuple(notes))


def of_profile(name: str, problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Problems that say which profile has them."""
    return tuple(
        replace(problem, message=f'profile "{name}": {problem.message}') for problem in problems
    )
