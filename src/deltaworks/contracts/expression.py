"""SQL fragments of a pipeline file: parsed before they are put into a statement."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated

from pydantic import AfterValidator

if TYPE_CHECKING:
    from sqlglot import exp
    from sqlglot.errors import ParseError

_PAIRS = {")": "(", "]": "[", "}": "{"}


def _checked(text: str) -> str:
    if problem := expression_problem(text):
        raise ValueError(problem)
    return text


SqlExpression = Annotated[str, AfterValidator(_checked)]
"""One SQL expression, such as `amount >= 0`."""


def expression_problem(text: str) -> str:
    """Why a text is not one SQL expression; empty when it is."""
    from sqlglot import exp, parse
    from sqlglot.errors import ParseError, SqlglotError

    if problem := _unbalanced(text):
        return problem
    try:
        trees = parse(text, dialect="spark")
    except ParseError:
        return (
            ""  # a parser of our own must not refuse what Spark may know; Spark has the last word
        )
    except SqlglotError as problem_found:
        return f'"{text}" cannot be read as SQL: {str(problem_found).splitlines()[0]}'
    tree = trees[0] if len(trees) == 1 else None
    statements = exp.Query | exp.DDL | exp.DML | exp.Command | exp.Drop | exp.TruncateTable
    if tree is None or isinstance(tree, statements):
        return f'"{text}" is a statement; an expression such as "amount >= 0" is wanted'
    if isinstance(tree, exp.Alias):
        return f'"{text}" is not one expression: "{tree.alias}" is left over'
    return ""


def _unbalanced(text: str) -> str:
    """Refuse what could break out of the parentheses an expression is put into."""
    from sqlglot import tokenize
    from sqlglot.errors import SqlglotError

    try:
        tokens = tokenize(text, read="spark")
    except SqlglotError:
        return f'"{text}" has a quote or comment that is not closed'
    if not tokens:
        return "an SQL expression is wanted, this is empty"
    open_pairs: list[str] = []
    for token in tokens:
        kind = token.token_type.name
        if kind == "SEMICOLON" or (kind == "COMMA" and not open_pairs):
            return f'"{text}" holds "{token.text}": one expression is wanted'
        if token.token_type.name in {"L_PAREN", "L_BRACKET", "L_BRACE"}:
            open_pairs.append(token.text)
        elif token.token_type.name in {"R_PAREN", "R_BRACKET", "R_BRACE"} and (
            not open_pairs or open_pairs.pop() != _PAIRS[token.text]
        ):
            return f'"{text}" closes "{token.text}" that was not opened'
    return f'"{text}" opens "{open_pairs[-1]}" and does not close it' if open_pairs else ""


def condition_problem(text: str) -> str:
    """Why a text is not one condition, with the place of the mistake; empty when it is."""
    from sqlglot import parse
    from sqlglot.errors import ParseError

    if problem := expression_problem(text):
        return problem
    try:
        parse(text, dialect="spark")
    except ParseError as error:
        return f'"{text}" cannot be parsed {parse_place(error)}'
    return ""


def parse_place(error: ParseError) -> str:
    """Where a parser stopped, for people: the word and its place."""
    first = error.errors[0] if error.errors else {}
    word, line, end = str(first.get("highlight")), first.get("line"), first.get("col")
    if not isinstance(end, int) or not isinstance(line, int):
        return "as SQL"
    place = f"at character {max(end - len(word) + 1, 1)}"
    return f'{place}{f" of line {line}" if line > 1 else ""}, near "{word}"'


def is_bare_name(text: str) -> bool:
    """Whether a text can only be the name of a column or nested field, not an expression."""
    return re.fullmatch(r"[^\W\d]\w*(\.[^\W\d]\w*)*", text) is not None


def columns_of(text: str) -> tuple[tuple[str, str], ...]:
    """Every (qualifier, column) an expression names; none when only Spark can parse it."""
    from sqlglot import exp, parse_one
    from sqlglot.errors import SqlglotError

    try:
        tree = parse_one(text, dialect="spark")
    except SqlglotError:
        return ()
    return tuple((_qualifier(column), column.name) for column in tree.find_all(exp.Column))


def _qualifier(column: exp.Column) -> str:
    """The first word of `source.address.city`; empty for a bare name."""
    return column.parts[0].name if len(column.parts) > 1 else ""


def without_target(text: str) -> str:
    """A merge condition as it reads for a row that has no match: target columns are NULL."""
    from sqlglot import exp, parse_one
    from sqlglot.errors import SqlglotError

    try:
        tree = parse_one(text, dialect="spark")
    except SqlglotError:
        return text  # only Spark can parse it, and says so if it names the target

    def blank(node: exp.Expression) -> exp.Expression:
        root = node
        while isinstance(root, exp.Dot | exp.Bracket):  # target.lines[0].sku
            root = root.this
        is_target = isinstance(root, exp.Column) and _qualifier(root).lower() == "target"
        return exp.Null() if is_target else node

    return str(tree.transform(blank).sql(dialect="spark"))


def tables_of(query: str, *, named_under: str = "extract") -> tuple[str, ...]:
    """Names of the inputs a query reads, in order; what it defines itself is left out."""
    from sqlglot import exp, parse
    from sqlglot.errors import SqlglotError

    try:
        trees = parse(query, dialect="spark")
    except SqlglotError as problem:
        raise ValueError(f"the query cannot be parsed: {str(problem).splitlines()[0]}") from None
    if len(trees) != 1 or not isinstance(trees[0], exp.Query):
        raise ValueError("one SELECT query is wanted")
    own = {cte.alias.lower() for cte in trees[0].find_all(exp.CTE)}
    names: dict[str, None] = {}
    for table in trees[0].find_all(exp.Table):
        if table.db or table.catalog:
            raise ValueError(
                f'"{table.sql(dialect="spark")}" is outside the pipeline; '
                f"name it under `{named_under}` and read it by that name"
            )
        if table.name and table.name.lower() not in own:  # a function such as range(9) has no name
            names[table.name] = None
    return tuple(names)
