"""Types and columns as SQL spells them, parsed without Spark."""

from __future__ import annotations

import pytest

from deltaworks.model.text_fault import TextFault
from deltaworks.model.type_text import SqlColumn, SqlType, parse_columns, parse_type


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("bigint", SqlType("bigint")),
        ("LONG", SqlType("bigint")),
        ("integer", SqlType("int")),
        ("decimal", SqlType("decimal", (10, 0))),
        ("numeric(5)", SqlType("decimal", (5, 0))),
        ("decimal( 38 , 38 )", SqlType("decimal", (38, 38))),
        ("varchar(20)", SqlType("varchar", (20,))),
        ("timestamp_ltz", SqlType("timestamp")),
        ("timestamp without time zone", SqlType("timestamp")),
        ("string collate UTF8_LCASE", SqlType("string")),
        ("interval day to second", SqlType("interval")),
        ("interval year", SqlType("interval")),
        ("interval", SqlType("interval")),
        ("geometry(ANY)", SqlType("geometry", (0,))),
        ("array<int>", SqlType("array", (), (SqlType("int"),))),
        ("map<string,array<int>>", parse_type("MAP < string, array < integer > >")),
        ("struct<>", SqlType("struct")),
        ("struct<a: int, b string>", parse_type("STRUCT<a int,b:string>")),
        ("date /* a day */", SqlType("date")),
    ],
)
def test_a_type_is_known_by_every_name_that_spark_has_for_it(text: str, kind: SqlType) -> None:
    assert parse_type(text) == kind


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("bigintt", 'there is no type "bigintt"', 'did you mean "bigint"?'),
        ("text", 'there is no type "text"', 'did you mean "string"?'),
        ("xyzzy", 'there is no type "xyzzy"', "available: boolean, int,"),
        (
            "decimal(40,2)",
            '"decimal(40,2)" has 40 digits, and a decimal has 1 to 38',
            "decimal(38,",
        ),
        (
            "decimal(5,7)",
            '"decimal(5,7)" has 7 digits after the point, and 5 in all',
            "first number",
        ),
        ("decimal(1,2,3)", '"decimal(1,2,3)" has more than two numbers', "decimal(12,2)"),
        ("decimal(a)", 'cannot be parsed at "a"', ""),
        ("decimal(12", '")" is missing after "12"', ""),
        ("int(4)", '"int" takes nothing in parentheses', "write int"),
        ("varchar", '"varchar" has no length', "varchar(20)"),
        ("array", '"array" does not say what it holds', "array<string>"),
        ("map<string>", '"," is missing before ">"', ""),
        ("array<int", '">" is missing after "int"', ""),
        ("array<itn>", 'there is no type "itn"', 'did you mean "int"?'),
        ("int int", 'cannot be parsed at "int"', ""),
        ("", "a type is missing", "available: boolean"),
        ("struct<a int, A int>", 'columns "a" and "A" differ only in case', "rename"),
        ("struct<a: itn>", 'column "a": there is no type "itn"', 'did you mean "int"?'),
    ],
)
def test_a_wrong_type_is_refused_with_what_is_allowed(text: str, message: str, hint: str) -> None:
    with pytest.raises(TextFault) as found:
        parse_type(text)
    assert found.value.message == message
    assert hint in found.value.hint


def test_columns_have_names_types_and_nullability() -> None:
    text = "id bigint NOT NULL COMMENT 'the key, of course', `a b``c` map<string, date>, größe: int"
    assert parse_columns(text) == (
        SqlColumn("id", SqlType("bigint"), nullable=False),
        SqlColumn("a b`c", SqlType("map", (), (SqlType("string"), SqlType("date")))),
        SqlColumn("größe", SqlType("int")),
    )
    assert parse_columns("struct<id bigint, `2 x` int>")[1].name == "2 x"


@pytest.mark.parametrize(
    ("text", "message", "at"),
    [
        ("id bigint, amount doubel", 'column "amount": there is no type "doubel"', 18),
        ("id bigint, amount", 'column "amount" has no type', 11),
        ("id bigint,, a int", 'cannot be parsed at ","', 10),
        ("id bigint,", 'a column is missing after ","', 9),
        ("id bigint id2 bigint", 'cannot be parsed at "id2"', 10),
        ("order-id bigint", 'cannot be parsed at "-"', 5),
        ("id bigint not", 'cannot be parsed at "not"', 10),
        ("id bigint, id string", 'column "id" is named twice', None),
        ("id bigint, ID string", 'columns "id" and "ID" differ only in case', None),
        ("", "a column is missing", 0),
    ],
)
def test_wrong_columns_are_refused_with_the_place(text: str, message: str, at: int | None) -> None:
    with pytest.raises(TextFault) as found:
        parse_columns(text)
    assert (found.value.message, found.value.at) == (message, at)
