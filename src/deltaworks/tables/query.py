"""A SELECT statement over tables by name: parsed, and its tables put in as an engine names them.

The text of the query stays as it was written; only names of tables are replaced in it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from deltaworks.contracts.expression import parse_place
from deltaworks.errors import ConfigError

if TYPE_CHECKING:
    from sqlglot import exp

_WRITE = "a pipeline writes tables: `deltaworks run`"
_INSTEAD: Mapping[str, str] = {
    **dict.fromkeys(("INSERT", "UPDATE", "DELETE", "MERGE", "CREATE", "REPLACE", "COPY"), _WRITE),
    **dict.fromkeys(("ALTER", "DROP", "TRUNCATE"), _WRITE),
    "DESCRIBE": "use `deltaworks table show`, or `deltaworks table history`",
    "DESC": "use `deltaworks table show`, or `deltaworks table history`",
    "SHOW": "use `deltaworks table list`",
    "RESTORE": "use `deltaworks table restore`",
    "OPTIMIZE": "use `after_load` in a pipeline file",
    "VACUUM": "use `after_load` in a pipeline file",
}
_BEGINNINGS = ("SELECT", "WITH", "VALUES", "FROM", "(")


@dataclass(frozen=True, kw_only=True)
class NamedTable:
    """A place in a query that names a table."""

    name: str
    start: int
    end: int
    has_alias: bool
    """Whether the query calls the table by another name."""
    is_pinned: bool
    """Whether the query reads the table at a version of its own."""
    alias: str
    """What the query calls the table where it gives no other name."""


@dataclass(frozen=True, kw_only=True)
class Qualifier:
    """A table's whole name before a column, such as `silver.flights` in `silver.flights.id`."""

    name: str
    start: int
    end: int


@dataclass(frozen=True, kw_only=True)
class Query:
    """A SELECT statement."""

    text: str
    tables: tuple[NamedTable, ...]
    """Every place that reads a table, in order."""
    qualifiers: tuple[Qualifier, ...]
    """Every place that says by a table's whole name which column is meant."""

    @property
    def names(self) -> tuple[str, ...]:
        """The tables, each once."""
        return tuple(dict.fromkeys(table.name for table in self.tables))

    def over(self, relation: Callable[[NamedTable], str], quote: str) -> str:
        """The query with what an engine reads in place of each table's name."""
        aliases = {table.name: f"{quote}{self._alias(table)}{quote}" for table in self.tables}
        spans = {one.start: (one.end, aliases[one.name]) for one in self.qualifiers}
        for table in self.tables:
            is_named = table.has_alias or table.is_pinned
            alias = "" if is_named else f" AS {aliases[table.name]}"
            spans[table.start] = (table.end, f"{relation(table)}{alias}")
        text = self.text
        for start, (end, words) in sorted(spans.items(), reverse=True):
            text = f"{text[:start]}{words}{text[end:]}"
        return text

    def _alias(self, table: NamedTable) -> str:
        """The last part of a name, or the name where two tables have that part."""
        others = {one.name for one in self.tables if one.alias == table.alias}
        return table.alias if len(others) == 1 else table.name


def parse_query(text: str, *, dialect: str) -> Query:
    """A SELECT statement; refused when the text is another one, or none."""
    from sqlglot import exp, parse
    from sqlglot.errors import ParseError

    query = text.strip().rstrip(";").rstrip()
    _refuse_others(query, dialect)
    try:
        trees = parse(query, dialect=dialect)
    except ParseError as error:
        raise ConfigError(f"the query cannot be parsed {parse_place(error)}") from None
    tree = trees[0] if len(trees) == 1 else None
    if not isinstance(tree, exp.Query | exp.Values):
        raise ConfigError("one SELECT statement is needed")
    if tree.find(exp.DML, exp.DDL, exp.Into) is not None:
        raise ConfigError("only SELECT statements are answered", hint=_WRITE)
    tables = _tables(tree)
    return Query(text=query, tables=tables, qualifiers=_qualifiers(tree, tables))


def _refuse_others(query: str, dialect: str) -> None:
    """Refuse statements by their first word: not every one of them can be parsed."""
    from sqlglot import tokenize
    from sqlglot.errors import SqlglotError

    try:
        tokens = tokenize(query, read=dialect)
    except SqlglotError:
        raise ConfigError("the query has a quote or comment that is not closed") from None
    first = tokens[0].text.upper() if tokens else ""
    if first not in _BEGINNINGS:
        hint = _INSTEAD.get(first, 'write a query such as "SELECT * FROM orders"')
        raise ConfigError(f'only SELECT statements are answered, not "{first}"', hint=hint)


def _tables(tree: exp.Expression) -> tuple[NamedTable, ...]:
    from sqlglot import exp

    own = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    real = _ids_in_scopes(tree)
    found = [
        _named(table)
        for table in tree.find_all(exp.Table)
        if table.name and (id(table) in real or table.name.lower() not in own)
    ]
    return tuple(sorted(found, key=lambda table: table.start))


def _qualifiers(tree: exp.Expression, tables: Sequence[NamedTable]) -> tuple[Qualifier, ...]:
    from sqlglot import exp

    names = {table.name for table in tables if "." in table.name and not table.has_alias}
    found = []
    for column in tree.find_all(exp.Column):
        parts: list[Any] = list(column.parts)[:-1]
        name = ".".join(part.name for part in parts)
        if name in names:
            start, end = parts[0].meta["start"], parts[-1].meta["end"] + 1
            found.append(Qualifier(name=name, start=start, end=end))
    return tuple(found)


def _ids_in_scopes(tree: exp.Expression) -> set[int]:
    """The tables that are not queries of the statement's own, though one may have that name."""
    from sqlglot import exp
    from sqlglot.optimizer.scope import traverse_scope

    scopes = traverse_scope(tree) if isinstance(tree, exp.Query) else []
    return {
        id(source)
        for scope in scopes
        for source in scope.sources.values()
        if isinstance(source, exp.Table)
    }


def _named(table: exp.Table) -> NamedTable:
    parts: list[Any] = list(table.parts)
    last = parts[-1]
    return NamedTable(
        name=".".join(part.name for part in parts),
        start=parts[0].meta["start"],
        end=last.meta["end"] + 1,
        has_alias=bool(table.alias),
        is_pinned=table.args.get("version") is not None,
        alias=last.name if last.args.get("quoted") else last.name.lower(),
    )
