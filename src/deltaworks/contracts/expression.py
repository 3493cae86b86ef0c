"""SQL expressions, types and columns in the options of plug-ins, parsed when a file is read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated

from pydantic import AfterValidator

from deltaworks.model.text_fault import TextFault, excerpt
from deltaworks.model.type_text import parse_columns, parse_type

if TYPE_CHECKING:
    from sqlglot import Token, exp
    from sqlglot.errors import ParseError

_PAIRS = {")": "(", "]": "[", "}": "{"}
_HINT = "correct the SQL there; a column that is named like an SQL keyword needs backticks"
_UNEXPECTED = ("Invalid expression", "Expecting )")
"""How sqlglot reports a token that must not stand where it stands."""
_STRUCTURE = frozenset(
    [
        "and",
        "or",
        "not",
        "in",
        "is",
        "null",
        "like",
        "ilike",
        "rlike",
        "between",
        "case",
        "when",
        "then",
        "else",
        "end",
        "cast",
        "as",
    ]
)
"""Keywords that make up an expression; other keywords may be names of columns."""


def _checked(text: str) -> str:
    if fault := expression_fault(text):
        raise fault
    return text


SqlExpression = Annotated[str, AfterValidator(_checked)]
"""One SQL expression, such as `amount >= 0`."""


def expression_problem(text: str) -> str:
    """Why a text is not one SQL expression; empty when it is."""
    fault = expression_fault(text)
    return fault.message if fault else ""


def expression_fault(text: str) -> TextFault | None:
    """Why a text is not one SQL expression, and where; None when it is."""
    try:
        tokens = _tokens(text)
        if not tokens:
            return TextFault("expected an SQL expression; this is empty")
        _refuse_several(tokens)
        _refuse_unbalanced(tokens)
        trees = _parsed(text, tokens)
    except TextFault as fault:
        return TextFault(f'"{excerpt(text, fault.at or 0)}" {fault}', hint=fault.hint, at=fault.at)
    found = None if trees is None else _not_one_expression(text, trees)
    if found is None:
        return None
    # `comment = 'x'` begins like a statement, and is none where `comment` is a column
    named = _keywords_as_names(text, tokens)
    return found if named == text or expression_fault(named) else None


def _kinds_of_statements() -> tuple[type[exp.Expression], ...]:
    """What is run, and has no value."""
    from sqlglot import exp

    made = (exp.Query, exp.DDL, exp.DML, exp.Drop, exp.TruncateTable, exp.Alter, exp.Comment)
    asked = (exp.Command, exp.Describe, exp.Analyze, exp.Set, exp.Use, exp.Grant, exp.Kill)
    kept = (exp.Cache, exp.Uncache, exp.Refresh, exp.Transaction, exp.Commit, exp.Rollback)
    return (*made, *asked, *kept)


def _not_one_expression(text: str, trees: Sequence[exp.Expression | None]) -> TextFault | None:
    from sqlglot import exp

    tree = trees[0] if len(trees) == 1 else None
    shown = excerpt(text)
    if tree is None or isinstance(tree, _kinds_of_statements()):
        return TextFault(f'"{shown}" is a statement; expected an expression such as "amount >= 0"')
    if isinstance(tree, exp.Alias):
        return TextFault(f'"{shown}" is not one expression: "{tree.alias}" is left over')
    return None


def _tokens(text: str) -> list[Token]:
    from sqlglot import tokenize
    from sqlglot.errors import SqlglotError

    try:
        return list(tokenize(text, read="spark"))
    except SqlglotError:
        raise TextFault("has a quote or comment that is not closed", hint="close it") from None


def _refuse_several(tokens: Sequence[Token]) -> None:
    """Refuse what separates one expression from another."""
    depth = 0
    for token in tokens:
        kind = token.token_type.name
        depth += kind in {"L_PAREN", "L_BRACKET", "L_BRACE"}
        depth -= kind in {"R_PAREN", "R_BRACKET", "R_BRACE"}
        if kind == "SEMICOLON" or (kind == "COMMA" and depth <= 0):
            raise TextFault(f'holds "{token.text}": expected one expression', at=token.start)


def _refuse_unbalanced(tokens: Sequence[Token]) -> None:
    """Refuse what could break out of the parentheses an expression is put into."""
    opened: list[Token] = []
    for token in tokens:
        kind = token.token_type.name
        if kind in {"L_PAREN", "L_BRACKET", "L_BRACE"}:
            opened.append(token)
        elif kind in {"R_PAREN", "R_BRACKET", "R_BRACE"} and (
            not opened or opened.pop().text != _PAIRS[token.text]
        ):
            raise TextFault(f'closes "{token.text}" that was not opened', at=token.start)
    if opened:
        message = f'opens "{opened[-1].text}" and does not close it'
        raise TextFault(message, at=opened[-1].start)


def _parsed(text: str, tokens: Sequence[Token]) -> Sequence[exp.Expression | None] | None:
    """The statements of a text; None for what only Spark can parse."""
    try:
        return _strictly_parsed(text, tokens)
    except TextFault:
        if _only_spark_knows(text, tokens):
            return None
        raise


def _strictly_parsed(text: str, tokens: Sequence[Token]) -> Sequence[exp.Expression | None]:
    from sqlglot import parse
    from sqlglot.errors import ParseError

    try:
        return parse(text, dialect="spark")
    except ParseError as error:
        raise _fault(error, tokens) from None


def _only_spark_knows(text: str, tokens: Sequence[Token]) -> bool:
    """Whether Spark may parse what sqlglot does not: `>>>`, `X '1F'`, `a:b`, keywords as names."""
    from sqlglot import parse
    from sqlglot.errors import ParseError

    for token, after in pairwise(tokens):
        is_hex = token.text.upper() == "X" and after.token_type.name == "STRING"
        is_path = token.token_type.name == "COLON"
        if is_hex or is_path or text[token.start : token.start + 3] == ">>>":
            return True
    try:
        parse(_keywords_as_names(text, tokens), dialect="spark")
    except ParseError:
        return False
    return True


def _keywords_as_names(text: str, tokens: Sequence[Token]) -> str:
    """A text in which keywords that may be names of columns are in backticks."""
    named = list(text)
    for token in tokens:
        word = text[token.start : token.end + 1]
        may_be_name = word.isidentifier() and word.lower() not in _STRUCTURE
        if may_be_name and token.token_type.name != "VAR":
            named[token.start] = f"`{named[token.start]}"
            named[token.end] = f"{named[token.end]}`"
    return "".join(named)


def _fault(error: ParseError, tokens: Sequence[Token]) -> TextFault:
    """What a parser found, in our words, at the token where it stopped."""
    found = error.errors[0]
    at_fault = [t for t in tokens if (t.line, t.col) == (found["line"], found["col"])]
    token = at_fault[0] if at_fault else tokens[-1]
    is_unexpected = str(found["description"]).startswith(_UNEXPECTED)
    if token is tokens[-1] and not is_unexpected:
        hint = "complete the SQL, or remove what is left over"
        return TextFault(f'is incomplete after "{token.text}"', hint=hint, at=token.start)
    return TextFault(f'cannot be parsed at "{token.text}"', hint=_HINT, at=token.start)


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


def _statements(query: str) -> Sequence[exp.Expression | None]:
    try:
        tokens = _tokens(query)
        _refuse_unbalanced(tokens)
        return _strictly_parsed(query, tokens)
    except TextFault as fault:
        raise TextFault(f"the query {fault}", hint=fault.hint, at=fault.at) from None


def tables_of(query: str, *, named_under: str = "extract") -> tuple[str, ...]:
    """Names of the inputs a query reads, in order; what it defines itself is left out."""
    from sqlglot import exp

    trees = _statements(query)
    if len(trees) != 1 or not isinstance(trees[0], exp.Query):
        raise ValueError("expected one SELECT query")
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


def _type(text: str) -> str:
    parse_type(text)
    return text


def _columns(text: str) -> str:
    parse_columns(text)
    return text


TypeText = Annotated[str, AfterValidator(_type)]
"""One SQL type, such as `decimal(12,2)`."""

SchemaText = Annotated[str, AfterValidator(_columns)]
"""Columns and their SQL types, such as `id bigint, amount double`."""
