"""The pipelines of a project: found by name, and judged together."""

from __future__ import annotations

import pytest

from deltaworks.config.project import load_project
from deltaworks.errors import ConfigError, Problem, SpecError
from deltaworks.pipeline.catalog import find_pipeline, load_catalog, pipeline_files
from tests.workbench import Workbench

CSV = "extract: {type: csv, path: a}\n"


def sink(table: str) -> str:
    return f"{CSV}load: {{type: delta, table: {table}}}\n"


def problems(desk: Workbench) -> tuple[Problem, ...]:
    config = load_project(desk.root, environ={})
    return load_catalog(config, pipeline_files(config)).problems


def test_a_pipeline_is_found_by_its_name_and_not_its_files(desk: Workbench) -> None:
    desk.write("pipelines/file.yaml", "pipeline: orders\n" + sink("t"))
    config = load_project(desk.root, environ={})
    assert find_pipeline(config, "orders").name == "file.yaml"
    with pytest.raises(ConfigError) as caught:
        find_pipeline(config, "order")
    assert caught.value.hint == 'did you mean "orders"?'


def test_the_project_file_says_which_files_are_pipelines(desk: Workbench) -> None:
    for name in ("a.yaml", "b.yml", "c.json", "d.txt", "e.yaml"):
        desk.write(f"pipelines/{name}", "pipeline: p\n")

    def found(setting: str) -> list[str]:
        desk.write("deltaworks.yaml", f"project: shop\nwarehouse: w\n{setting}")
        return [path.name for path in pipeline_files(load_project(desk.root, environ={}))]

    assert found("") == ["a.yaml", "b.yml", "c.json", "e.yaml"]
    assert found("pipelines: pipelines/*.yaml\n") == ["a.yaml", "e.yaml"]
    assert found('pipelines: "pipelines/{a,d}.{yaml,txt}"\n') == ["a.yaml", "d.txt"]


def test_a_broken_neighbour_does_not_hide_a_good_file(desk: Workbench) -> None:
    desk.pipeline("orders", sink("t"))
    desk.write("pipelines/broken.yaml", "pipeline: [\n")
    assert find_pipeline(load_project(desk.root, environ={}), "orders").stem == "orders"


def test_when_the_name_is_nowhere_the_broken_file_is_shown(desk: Workbench) -> None:
    desk.write("pipelines/orders.yaml", "pipeline: orders\nextract: {\n")
    with pytest.raises(SpecError) as caught:
        find_pipeline(load_project(desk.root, environ={}), "orders")
    assert caught.value.problems[0].code == "yaml"


def test_an_empty_project_says_how_to_start(desk: Workbench) -> None:
    with pytest.raises(ConfigError) as caught:
        find_pipeline(load_project(desk.root, environ={}), "orders")
    assert "deltaworks init" in caught.value.hint


def test_two_pipelines_may_not_have_one_name(desk: Workbench) -> None:
    desk.write("pipelines/a.yaml", "pipeline: orders\n" + sink("t"))
    desk.write("pipelines/b.yaml", "\npipeline: orders\n" + sink("u"))
    found = problems(desk)
    assert [(p.code, p.line) for p in found] == [("twice", 2)]
    assert "a.yaml" in found[0].message
    assert found[0].file.endswith("b.yaml")
    with pytest.raises(ConfigError, match=r"is defined in .*a.yaml and in .*b.yaml"):
        find_pipeline(load_project(desk.root, environ={}), "orders")


@pytest.mark.parametrize("path", ["warehouse/_deltaworks/batches", "warehouse", "warehouse/t/in"])
def test_one_pipeline_by_itself_may_not_write_there_either(desk: Workbench, path: str) -> None:
    reads = "extract: {type: delta, table: t}\n"
    desk.pipeline("orders", f"{reads}load: {{type: delta, path: {path}}}\n")
    answer = desk.cli("run", "orders")
    assert answer.code == 2
    assert "orders.yaml:3" in answer.stderr


@pytest.mark.parametrize(
    ("inner", "outer"),
    [("sales.orders", "sales"), ("sales.eu.orders", "sales"), ("a.b", "a")],
)
def test_a_table_may_not_lie_inside_another(desk: Workbench, inner: str, outer: str) -> None:
    desk.pipeline("inner", sink(inner))
    desk.pipeline("outer", sink(outer))
    found = problems(desk)
    assert [p.code for p in found] == ["nested_table"]
    assert found[0].message == f'table "{inner}" lies inside table "{outer}"'
    assert found[0].file.endswith("inner.yaml")


def test_a_path_inside_a_tables_folder_is_found_too(desk: Workbench) -> None:
    desk.pipeline("inner", CSV + "load: {type: parquet, path: warehouse/sales/files}\n")
    desk.pipeline("outer", sink("sales"))
    assert [p.code for p in problems(desk)] == ["nested_table"]


def test_a_table_may_not_lie_inside_one_that_is_only_read(desk: Workbench) -> None:
    desk.pipeline("inner", "extract: {type: delta, table: a}\nload: {type: delta, table: a.b}\n")
    assert [p.code for p in problems(desk)] == ["nested_table"]


def test_a_name_that_only_begins_alike_is_another_table(desk: Workbench) -> None:
    desk.pipeline("a", sink("sales"))
    desk.pipeline("b", sink("sales_eu"))
    desk.pipeline("c", sink("salesmen.all"))
    assert problems(desk) == ()


def test_several_pipelines_may_write_one_table(desk: Workbench) -> None:
    desk.pipeline("a", sink("sales"))
    desk.pipeline("b", sink("sales"))
    assert problems(desk) == ()


@pytest.mark.parametrize("name", ["orders__quarantine", "sales.orders__quarantine", "__quarantine"])
def test_names_of_quarantine_tables_are_reserved(desk: Workbench, name: str) -> None:
    desk.pipeline("a", sink(name))
    found = problems(desk)
    assert len(found) == 1
    assert f'"{name}"' in found[0].message


def test_a_table_by_path_may_not_take_a_quarantines_place(desk: Workbench) -> None:
    desk.pipeline("orders", CSV + "load: {type: delta, path: warehouse/orders__quarantine}\n")
    assert [p.code for p in problems(desk)] == ["reserved"]


def test_a_table_may_not_lie_in_our_own_folder(desk: Workbench) -> None:
    desk.pipeline("orders", CSV + "load: {type: delta, path: warehouse/_deltaworks/runs}\n")
    assert [p.code for p in problems(desk)] == ["reserved"]


def test_problems_in_and_between_files_come_together(desk: Workbench) -> None:
    desk.pipeline("a", sink("sales"))
    desk.pipeline("b", sink("sales.eu"))
    desk.pipeline("c", "extract: {type: cvs}\nload: {type: delta, table: t}\n")
    desk.write("pipelines/d.yaml", "pipeline: [\n")
    assert sorted(p.code for p in problems(desk)) == ["nested_table", "unknown_type", "yaml"]


def test_writers_run_before_readers(desk: Workbench) -> None:
    desk.pipeline("a_report", "extract: {type: delta, table: b}\nload: {type: delta, table: c}\n")
    desk.pipeline("b_middle", "extract: {type: delta, table: a}\nload: {type: delta, table: b}\n")
    desk.pipeline("c_first", sink("a"))
    config = load_project(desk.root, environ={})
    plans = load_catalog(config, pipeline_files(config)).plans
    names = [plan.pipeline.name for plan in plans]
    assert names == ["c_first", "b_middle", "a_report"]


def test_pipelines_that_read_each_other_keep_the_files_order(desk: Workbench) -> None:
    desk.pipeline("a", "extract: {type: delta, table: b}\nload: {type: delta, table: c}\n")
    desk.pipeline("b", "extract: {type: delta, table: c}\nload: {type: delta, table: b}\n")
    config = load_project(desk.root, environ={})
    plans = load_catalog(config, pipeline_files(config)).plans
    names = [plan.pipeline.name for plan in plans]
    assert names == ["a", "b"]


@pytest.mark.parametrize(
    ("path", "reads"),
    [
        ("exports/orders", True),
        ("exports/orders/", True),
        ("./exports/x/../orders", True),
        ("exports/orders/day=1", True),
        ("exports/orders/*.csv", True),
        ("exports/*/part-*", True),
        ("exports/**/*.csv", True),
        ("**/*.csv", True),
        ("exports", True),
        ("exports/orders_old", False),
        ("exports/order", False),
        ("exports/*.csv", False),
        ("imports/**/*.csv", False),
    ],
)
def test_who_reads_a_folder_of_files_runs_after_who_writes_it(
    desk: Workbench, path: str, reads: bool
) -> None:
    desk.pipeline(
        "a_reader", f"extract: {{type: csv, path: '{path}'}}\nload: {{type: delta, table: t}}\n"
    )
    desk.pipeline("b_writer", f"{CSV}load: {{type: csv, path: exports/orders, mode: overwrite}}\n")
    config = load_project(desk.root, environ={})
    after = load_catalog(config, pipeline_files(config)).after
    assert after == {"a_reader": {"b_writer"} if reads else set(), "b_writer": set()}


def test_a_pipeline_may_read_the_folder_it_writes(desk: Workbench) -> None:
    desk.pipeline("a", "extract: {type: csv, path: x}\nload: {type: csv, path: x/out}\n")
    config = load_project(desk.root, environ={})
    assert load_catalog(config, pipeline_files(config)).after == {"a": set()}
