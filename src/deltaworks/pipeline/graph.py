"""Who reads whom: from a pipeline's names to stages in order."""

from __future__ import annotations

from collections.abc import Iterable
from graphlib import CycleError, TopologicalSorter

from deltaworks.contracts.check import RowCheck
from deltaworks.contracts.plugin import Plugin
from deltaworks.contracts.tolerance import limit_problems
from deltaworks.errors import Problem, SpecError
from deltaworks.pipeline.spec import Pipeline
from deltaworks.pipeline.stages import Apply, Extract, Load, Plan, Stage, Verify
from deltaworks.suggest import did_you_mean


def build_plan(pipeline: Pipeline) -> Plan:
    """The stages in the order they run; raises with every unknown, circular or unused name."""
    builder = _Builder(pipeline)
    stages = builder.stages()
    if builder.problems:
        raise SpecError(f'pipeline "{pipeline.name}" is wrong', problems=builder.problems)
    return Plan(pipeline=pipeline, stages=stages)


class _Builder:
    """Collects problems while it resolves names."""

    def __init__(self, pipeline: Pipeline) -> None:
        self.pipeline = pipeline
        self.problems: list[Problem] = []
        self.step_names = unique_names(
            [(step.name, step.plugin_type()) for step in pipeline.transform], set(pipeline.extract)
        )
        self.known = [*pipeline.extract, *self.step_names]

    def problem(
        self, place: tuple[str | int, ...], code: str, message: str, hint: str = ""
    ) -> None:
        origin = self.pipeline.origin
        self.problems.append(
            Problem(
                code=code,
                message=message,
                hint=hint,
                file=origin.file,
                line=origin.line(*place),
            )
        )

    def stages(self) -> tuple[Stage, ...]:
        self._refuse_contradictions()
        self._refuse_twins()
        applies = self._applies()
        verifies = self._verifies()
        loads = self._loads()
        self._refuse_targetless(verifies, loads)
        if self.problems:
            return ()
        ordered = self._ordered(applies)
        self._refuse_unused(applies, verifies, loads)
        result: list[Stage] = []
        for stage in ordered:
            result.append(stage)
            result.extend(check for check in verifies if check.inputs[0] == stage.name)
        return (*result, *loads)

    def _refuse_contradictions(self) -> None:
        """Fields that exclude each other; a file's were reported already, code's were not."""
        pipeline = self.pipeline
        plugins: list[Plugin] = [
            *pipeline.extract.values(),
            *pipeline.transform,
            *pipeline.checks,
            *pipeline.load,
        ]
        for plugin in plugins:
            for message in (*plugin.problems(), *limit_problems(plugin)):
                self.problem((), "wrong_value", f"{plugin.plugin_type()}: {message}")

    def _refuse_twins(self) -> None:
        given = [*self.pipeline.extract, *(s.name for s in self.pipeline.transform if s.name)]
        for i, step in enumerate(self.pipeline.transform):
            if step.name and given.count(step.name) > 1:
                self._twin(("transform", i, "name"), step.name)
            elif step.name:
                self._refuse_case(("transform", i, "name"), step.name, given)
        sinks = [sink.name for sink in self.pipeline.load]
        for i, name in enumerate(sinks):
            if name and sinks.count(name) > 1:
                self._twin(("load", i, "name"), name)

    def _twin(self, place: tuple[str | int, ...], name: str) -> None:
        message = f'the name "{name}" is used more than once'
        self.problem(place, "twice", message, "give one of them another name")

    def _refuse_case(self, place: tuple[str | int, ...], name: str, given: list[str]) -> None:
        """Queries find steps by name, and SQL ignores case."""
        before = given[: given.index(name)]
        other = next((one for one in before if one.lower() == name.lower()), None)
        if other is not None:
            message = f'the names "{other}" and "{name}" differ only in case'
            self.problem(place, "twice", message, "give one of them another name")

    def _known(self, name: str, place: tuple[str | int, ...]) -> str:
        if name not in self.known:
            hint = did_you_mean(name, self.known)
            self.problem(place, "unknown_step", f'there is no step or source "{name}"', hint)
        return name

    def _default_input(self, i: int) -> str:
        if i > 0:
            return self.step_names[i - 1]
        if len(self.pipeline.extract) > 1:
            hint = f"input: {next(iter(self.pipeline.extract))}"
            message = "the first step must name its input, because there are several sources"
            self.problem(("transform", i), "missing_key", message, hint)
        return next(iter(self.pipeline.extract))

    def _last(self, place: tuple[str | int, ...]) -> str:
        if self.step_names:
            return self.step_names[-1]
        if len(self.pipeline.extract) > 1:
            hint = f"input: {next(iter(self.pipeline.extract))}"
            message = 'say "input", because there are several sources'
            self.problem(place, "missing_key", message, hint)
        return next(iter(self.pipeline.extract))

    def _applies(self) -> list[Apply]:
        result = []
        for i, step in enumerate(self.pipeline.transform):
            place = ("transform", i)
            first = (
                self._known(step.input, (*place, "input")) if step.input else self._default_input(i)
            )
            others = tuple(self._known(name, place) for name in step.other_inputs())
            line = self.pipeline.origin.line(*place)
            name = self.step_names[i]
            result.append(Apply(name=name, plugin=step, inputs=(first, *others), line=line))
        return result

    def _verifies(self) -> list[Verify]:
        result = []
        for i, check in enumerate(self.pipeline.checks):
            place = ("checks", i)
            target = (
                self._known(check.input, (*place, "input")) if check.input else self._last(place)
            )
            line = self.pipeline.origin.line(*place)
            name = check.rule_text()
            result.append(Verify(name=name, plugin=check, inputs=(target,), line=line))
        return result

    def _loads(self) -> list[Load]:
        many = len(self.pipeline.load) > 1
        names = unique_names([(s.name, s.own_name()) for s in self.pipeline.load], set())
        result = []
        for i, sink in enumerate(self.pipeline.load):
            place: tuple[str | int, ...] = ("load", i) if many else ("load",)
            source = self._known(sink.input, (*place, "input")) if sink.input else self._last(place)
            line = self.pipeline.origin.line(*place)
            result.append(Load(name=names[i], plugin=sink, inputs=(source,), line=line))
        return result

    def _refuse_targetless(self, verifies: list[Verify], loads: list[Load]) -> None:
        """A check that looks at the rows in a target needs one that can be looked at."""
        for i, stage in enumerate(verifies):
            if not (isinstance(stage.plugin, RowCheck) and stage.plugin.looks_at_targets()):
                continue
            taking = [load for load in loads if load.inputs[0] == stage.inputs[0]]
            columns = stage.plugin.columns_used()
            silent = [
                f'sink "{load.name}" {reason}'
                for load in taking
                if (reason := load.plugin.why_not_beside(columns))
            ]
            if not taking:
                message = f'check "{stage.name}" looks at a table, and no sink takes its rows'
                hint = "check the result that is loaded, or use `scope: batch`"
                self.problem(("checks", i), "wrong_value", message, hint)
            elif silent:
                message = f'check "{stage.name}" looks at a table, and {silent[0]}'
                self.problem(("checks", i), "wrong_value", message, "use `scope: batch`")

    def _ordered(self, applies: list[Apply]) -> list[Extract | Apply]:
        sources = {
            name: Extract(name=name, plugin=source, line=self._source_line(name))
            for name, source in self.pipeline.extract.items()
        }
        by_name: dict[str, Extract | Apply] = {**sources, **{a.name: a for a in applies}}
        sorter: TopologicalSorter[str] = TopologicalSorter()
        for name, stage in by_name.items():
            sorter.add(name, *stage.inputs)
        try:
            return [by_name[name] for name in sorter.static_order()]
        except CycleError as error:
            circle = error.args[1]
            place = ("transform", self.step_names.index(circle[0]))
            path = " -> ".join(f'"{name}"' for name in reversed(circle))
            self.problem(place, "cycle", f"steps read each other in a circle: {path}")
            return []

    def _source_line(self, name: str) -> int:
        return self.pipeline.origin.line("extract", name)

    def _refuse_unused(
        self, applies: list[Apply], verifies: list[Verify], loads: list[Load]
    ) -> None:
        used = _names_read([*applies, *loads])
        for i, name in enumerate(self.step_names):
            if name not in used:
                hint = f'remove it, or name it as an "input": {name}'
                message = f'nothing uses the result of step "{name}"'
                self.problem(("transform", i), "unused_step", message, hint)
        for name in self.pipeline.extract:
            if name not in used:
                hint = f'remove it, or name it as an "input": {name}'
                message = f'nothing uses source "{name}"'
                self.problem(("extract", name), "unused_step", message, hint)


def _names_read(stages: Iterable[Apply | Load]) -> set[str]:
    return {name for stage in stages for name in stage.inputs}


def unique_names(given: list[tuple[str, str]], taken: set[str]) -> list[str]:
    """The names users gave; the others take their own, numbered when repeated."""
    used = taken | {name for name, _ in given if name}
    names = []
    for name, own_name in given:
        candidate, count = name or own_name, 1
        while not name and candidate in used:
            count += 1
            candidate = f"{own_name}_{count}"
        used.add(candidate)
        names.append(candidate)
    return names
