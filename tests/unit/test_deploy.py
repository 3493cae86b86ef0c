"""The files in docs/deploy are right as far as that can be told without a cluster."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from deltaworks.config.project import load_project
from deltaworks.engines.spark.java.find import find_spark_home
from deltaworks.engines.spark.session.conf import SessionSettings, build_conf, refuse_contradictions
from tests.workbench import run_cli

FOLDER = Path(__file__).parents[2] / "docs" / "deploy"
ENVIRON = {"POD_NAME": "shop-1", "POD_IP": "10.0.0.7"}
PROFILES = ("standalone", "yarn", "kubernetes", "connect")
JARS = ("spark-core", "spark-yarn", "spark-kubernetes", "spark-launcher")


def documents() -> list[Any]:
    return list(YAML(typ="safe").load_all((FOLDER / "kubernetes.yaml").read_text()))


def named_in_spark(settings: set[str]) -> set[str]:
    """Those of the settings whose names stand in Spark's own classes."""
    found: set[str] = set()
    for name in JARS:
        (jar,) = (find_spark_home({}) / "jars").glob(f"{name}_*.jar")
        with zipfile.ZipFile(jar) as classes:
            for entry in classes.namelist():
                if entry.endswith(".class") and re.search(r"onfig|package|Launcher", entry):
                    content = classes.read(entry)
                    found |= {key for key in settings if key.encode() in content}
    return found


@pytest.mark.parametrize("profile", PROFILES)
def test_each_profile_is_one_that_a_project_can_have(profile: str) -> None:
    config = load_project(FOLDER, environ=ENVIRON, profile=profile)
    assert not config.engine.master.startswith("local")
    settings = SessionSettings(
        app_name="shop", master=config.engine.master, conf=config.engine.conf
    )
    refuse_contradictions(settings)
    conf = build_conf(
        settings,
        jars=[Path("/jars/delta.jar")],
        scratch=Path("/scratch"),
        java_options=[],
        memory_bytes=8 * 2**30,
        cores=2,
    )
    assert config.engine.conf.items() <= conf.items()
    assert conf["spark.jars"] == "file:///jars/delta.jar"


def test_every_setting_of_spark_is_one_that_spark_knows() -> None:
    text = (FOLDER / "deltaworks.yaml").read_text() + (FOLDER / "README.md").read_text()
    settings = set(re.findall(r"\bspark\.[a-z]+(?:\.\w+)+\b", text)) - {"spark.sql.extensions"}
    settings = {key for key in settings if not key.startswith("spark.sql.")}
    assert len(settings) > 10
    assert settings - named_in_spark(settings) == set()


def test_the_objects_of_kubernetes_belong_together() -> None:
    kinds = {document["kind"]: document for document in documents()}
    assert set(kinds) == {"Namespace", "ServiceAccount", "Role", "RoleBinding", "CronJob"}
    pod = kinds["CronJob"]["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    account = kinds["ServiceAccount"]["metadata"]["name"]
    assert pod["serviceAccountName"] == account
    assert kinds["RoleBinding"]["subjects"][0]["name"] == account
    assert kinds["RoleBinding"]["roleRef"]["name"] == kinds["Role"]["metadata"]["name"]
    config = load_project(FOLDER, environ=ENVIRON, profile="kubernetes")
    conf = config.engine.conf
    assert conf["spark.kubernetes.namespace"] == kinds["Namespace"]["metadata"]["name"]
    assert set(ENVIRON) == {one["name"] for one in pod["containers"][0]["env"]}


def test_every_command_and_option_exists() -> None:
    (container,) = documents()[-1]["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    command, *options = container["args"]
    shown = run_cli(command, "--help").stdout
    for option in options:
        if option.startswith("--"):
            assert option in shown
    recipe = (FOLDER / "Containerfile").read_text()
    used = re.findall(r"\bdeltaworks ((?:jars )?[a-z]+)((?: --[a-z]+)*)", recipe)
    assert ("jars fetch", " --all") in used
    for words, flags in used:
        help_text = run_cli(*words.split(), "--help").stdout
        assert help_text.startswith(f"Usage: deltaworks {words}")
        assert all(flag in help_text for flag in flags.split())


def test_the_extras_and_versions_of_the_recipe_are_those_of_the_package() -> None:
    project = (FOLDER.parents[1] / "pyproject.toml").read_text()
    recipe = (FOLDER / "Containerfile").read_text()
    (extras,) = re.findall(r"deltaworks\[([a-z,]+)\]", recipe)
    for extra in extras.split(","):
        assert re.search(rf"^{extra} = \[", project, re.MULTILINE)
    for pin in re.findall(r'"((?:pandas|pyarrow)[^"]+)"', recipe):
        assert f'"{pin}"' in project
    (spark,) = re.findall(r"apache/spark:([\d.]+)", recipe)
    assert f'"pyspark=={spark}"' in project
