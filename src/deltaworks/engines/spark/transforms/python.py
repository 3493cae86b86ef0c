"""A function of the project: found in its file, and called with frames or rows."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from deltaworks.contracts.context import RunContext
from deltaworks.engines.spark.transforms.function_source import source_problem
from deltaworks.engines.spark.transforms.python_fingerprint import fingerprint_of, module_file
from deltaworks.errors import Problem, SpecError
from deltaworks.suggest import did_you_mean

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    from deltaworks.engines.spark.transforms.python_worker import UserCode

_WITH_CONTEXT = 2
_SENDING = threading.Lock()
_SENT: Counter[str] = Counter()
"""How many steps send a module along at this moment: runs side by side share one list of them."""


@dataclass(frozen=True, kw_only=True)
class ProjectFunction:
    """A function by name, in a file of the project or in a module that can be imported there."""

    name: str
    step: str
    root: Path
    file: Path | None
    module: str

    @staticmethod
    def named(text: str, *, root: Path, step: str) -> ProjectFunction:
        """The function that `transforms/cleaning.py:clean` or `cleaning:clean` names."""
        place, _, name = text.rpartition(":")
        root = root.resolve()
        if place.endswith(".py"):
            file: Path | None = _inside(root, place)
            module = ".".join(Path(place).with_suffix("").parts)
        else:
            file, module = _module_file(root, place), place
        return ProjectFunction(name=name, step=step, root=root, file=file, module=module)

    def on_frame(self, frame: DataFrame, ctx: RunContext) -> DataFrame:
        """What the function makes of a frame; it may take the run's context as well."""
        from pyspark.sql import DataFrame

        with self._found() as (function, code):
            takes = self._parameters(function, most=_WITH_CONTEXT)
            with code:
                result = function(frame, ctx) if takes == _WITH_CONTEXT else function(frame)
        if not isinstance(result, DataFrame):
            raise SpecError(
                f"function {self.name} returned {type(result).__name__}; expected a DataFrame",
                hint="return the frame, or say `row: true` for a function over rows",
                file=self._shown_file(),
                line=_first_line(function),
            )
        return result

    def on_rows(self, frame: DataFrame, gives: StructType) -> DataFrame:
        """What the function makes of each row; it is sent to Spark's workers, and called there."""
        from pyspark.sql import functions as F

        from deltaworks.engines.spark.frames.columns import quoted
        from deltaworks.engines.spark.transforms import python_worker as python_rows

        with self._found() as (function, code), _sent_along(python_rows):
            self._parameters(function, most=1)
            call = python_rows.RowFunction(
                function, code, takes=frame.schema, gives=gives, root=str(self.root)
            )
            packed = python_rows.Packed(call)
            # not deterministic, or Spark may call it once for each column it gives
            made = F.udf(packed, gives, useArrow=False).asNondeterministic()
            columns = [F.col(quoted(name)).alias(f"c{i}") for i, name in enumerate(frame.columns)]
            return frame.select(made(F.struct(*columns)).alias("row")).select("row.*")

    def problem(self, *, row: bool) -> Problem | None:
        """What is wrong with the function as its file defines it; an installed one is not read."""
        if self.file is None:
            return None
        most = 1 if row else _WITH_CONTEXT
        return source_problem(self.file, self._shown_file(), self.name, most=most)

    def fingerprint(self) -> str:
        """Another one as soon as code of the project that it runs is edited."""
        return "" if self.file is None else fingerprint_of(self.file, self.root)

    @contextmanager
    def _found(self) -> Iterator[tuple[Callable[..., Any], UserCode]]:
        """The function, while modules of the project can be imported."""
        from deltaworks.engines.spark.transforms.python_worker import UserCode

        code = UserCode(
            name=self.name, step=self.step, file=str(self.file or ""), shown_file=self._shown_file()
        )
        with _importable(self.root):
            with code:
                module = self._loaded()
            function = getattr(module, self.name, None)
            if not callable(function):
                raise self._no_function(module)
            with _by_value(_own_modules(self.root)):
                yield function, code

    def _loaded(self) -> ModuleType:
        if self.file is None:
            return importlib.import_module(self.module)
        spec = importlib.util.spec_from_file_location(self.module, self.file)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[self.module] = module
        spec.loader.exec_module(module)
        return module

    def _no_function(self, module: ModuleType) -> SpecError:
        names = [
            name
            for name, found in vars(module).items()
            if inspect.isfunction(found) and found.__module__ == module.__name__
        ]
        where = self._shown_file() or self.module
        return SpecError(
            f'{where} has no function "{self.name}"', hint=did_you_mean(self.name, names)
        )

    def _parameters(self, function: Callable[..., Any], *, most: int) -> int:
        """How many arguments the function takes by position."""
        by_place = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        taken = [p for p in inspect.signature(function).parameters.values() if p.kind in by_place]
        needed = [p for p in taken if p.default is inspect.Parameter.empty]
        if not taken or len(needed) > most:
            wanted = "(row)" if most == 1 else "(df) or (df, ctx)"
            raise SpecError(
                f"function {self.name} takes {len(needed)} arguments",
                hint=f"write it as {self.name}{wanted}",
                file=self._shown_file(),
                line=_first_line(function),
            )
        return min(max(len(needed), 1), most)

    def _shown_file(self) -> str:
        return str(self.file.relative_to(self.root)) if self.file else ""


def _first_line(function: Callable[..., Any]) -> int:
    code = getattr(function, "__code__", None)
    return 0 if code is None else int(code.co_firstlineno)


def _inside(root: Path, place: str) -> Path:
    """A file of the project; one outside is refused, however the path is written."""
    path = (root / place).resolve()
    if not path.is_relative_to(root):
        raise SpecError(f'"{place}" lies outside the project', hint="move it into the project")
    if path.is_file():
        return path
    beside = sorted(path.parent.glob("*.py")) if path.parent.is_dir() else []
    choices = [str(other.relative_to(root)) for other in beside]
    raise SpecError(
        f'there is no file "{place}" in the project',
        hint=did_you_mean(place, choices) or "paths start at the project's folder",
    )


def _module_file(root: Path, module: str) -> Path | None:
    """The project's own file for a module; None when it has to be installed somewhere."""
    if (own := module_file(root, tuple(module.split(".")))) is not None:
        return own
    if importlib.util.find_spec(module.partition(".")[0]) is None:
        raise SpecError(
            f'there is no module "{module}"',
            hint=f'write "{module.replace(".", "/")}.py" in the project, or install it',
        )
    return None


def _own_modules(root: Path) -> dict[str, ModuleType]:
    """Modules that come from the project's files, and not from packages installed inside it."""
    installed = [Path(entry).resolve() for entry in sys.path if entry]
    inner = [entry for entry in installed if entry != root and entry.is_relative_to(root)]
    found = {}
    for name, module in list(sys.modules.items()):
        # a folder without __init__.py has no file of its own, only a place
        places = [getattr(module, "__file__", None) or "", *getattr(module, "__path__", ())]
        place = next((place for place in places if place), None)
        if place is None:
            continue
        path = Path(place).resolve()
        if path.is_relative_to(root) and not any(path.is_relative_to(entry) for entry in inner):
            found[name] = module
    return found


@contextmanager
def _importable(root: Path) -> Iterator[None]:
    """Let modules of the project be imported; they are read anew for every step of every run."""
    before, quiet = dict(sys.modules), sys.dont_write_bytecode
    sys.path.insert(0, str(root))
    sys.dont_write_bytecode = True
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.dont_write_bytecode = quiet
        sys.path.remove(str(root))
        for name in _own_modules(root):
            if name not in before:
                del sys.modules[name]
            else:
                sys.modules[name] = before[name]


@contextmanager
def _by_value(modules: dict[str, ModuleType]) -> Iterator[None]:
    """Send these modules to Spark's workers as they are, because they cannot import them there."""
    from pyspark import cloudpickle

    pickles: Any = cloudpickle
    own = {module.__name__: module for module in modules.values()}  # one may have two names
    with _SENDING:
        for name, module in own.items():
            if not _SENT[name]:
                pickles.register_pickle_by_value(module)
            _SENT[name] += 1
    try:
        yield
    finally:
        with _SENDING:
            for name, module in own.items():
                _SENT[name] -= 1
                if not _SENT[name]:
                    pickles.unregister_pickle_by_value(module)


def _sent_along(module: ModuleType) -> Any:
    return _by_value({module.__name__: module})
