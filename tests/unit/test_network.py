from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from deltaworks.engines.spark.java.network import java_network_options, proxy_options, trust_options
from deltaworks.errors import ConfigError


def bundle(path: Path, *certificates: bytes) -> Path:
    path.write_text("# comment\n" + "".join(map(ssl.DER_cert_to_PEM_cert, certificates)))
    return path


def store(options: list[str]) -> Path:
    return Path(options[0].removeprefix("-Djavax.net.ssl.trustStore="))


def test_an_empty_environment_needs_no_options(tmp_path: Path) -> None:
    assert java_network_options({}, cache=tmp_path) == []


def test_all_named_bundles_are_trusted_and_each_certificate_once(tmp_path: Path) -> None:
    one = bundle(tmp_path / "one.pem", b"first", b"second")
    two = bundle(tmp_path / "two.pem", b"second", b"third")
    environ = {"SSL_CERT_FILE": str(one), "PIP_CERT": str(two), "REQUESTS_CA_BUNDLE": "/gone"}
    content = store(trust_options(environ, cache=tmp_path / "ca che")).read_bytes()
    assert content[:12] == bytes.fromhex("feedfeed 00000002 00000003")
    assert [content.count(name) for name in (b"first", b"second", b"third")] == [1, 1, 1]


def test_the_store_is_kept_until_the_certificates_change(tmp_path: Path) -> None:
    environ = {"SSL_CERT_FILE": str(bundle(tmp_path / "ca.pem", b"old"))}
    first = store(trust_options(environ, cache=tmp_path))
    written = first.stat().st_mtime_ns
    assert store(trust_options(environ, cache=tmp_path)) == first
    assert first.stat().st_mtime_ns == written
    bundle(tmp_path / "ca.pem", b"new")
    assert store(trust_options(environ, cache=tmp_path)) != first


def test_a_store_the_user_gave_java_is_left_alone(tmp_path: Path) -> None:
    environ = {
        "SSL_CERT_FILE": str(bundle(tmp_path / "ca.pem", b"one")),
        "JAVA_TOOL_OPTIONS": "-Djavax.net.ssl.trustStore=/mine",
    }
    assert trust_options(environ, cache=tmp_path) == []


def test_a_damaged_certificate_names_its_file(tmp_path: Path) -> None:
    path = tmp_path / "ca.pem"
    path.write_text("-----BEGIN CERTIFICATE-----\nA\n-----END CERTIFICATE-----\n")
    with pytest.raises(ConfigError, match=r"ca\.pem holds a damaged certificate"):
        trust_options({"SSL_CERT_FILE": str(path)}, cache=tmp_path)


def test_proxies_are_passed_on_without_user_and_password() -> None:
    options = proxy_options(
        {"https_proxy": "http://me:pa55@proxy.example:3128", "HTTP_PROXY": "other.example:8080"}
    )
    assert options[:4] == [
        "-Dhttp.proxyHost=other.example",
        "-Dhttp.proxyPort=8080",
        "-Dhttps.proxyHost=proxy.example",
        "-Dhttps.proxyPort=3128",
    ]
    assert "pa55" not in " ".join(options)


def test_exceptions_are_written_the_way_java_reads_them() -> None:
    environ = {"HTTPS_PROXY": "http://p:1", "NO_PROXY": ".corp.example, host 10.0.0.0/8"}
    assert proxy_options(environ)[-1] == (
        "-Dhttp.nonProxyHosts=corp.example|*.corp.example|host|*.host|localhost|127.*|[::1]"
    )


def test_no_proxy_star_turns_proxies_off() -> None:
    assert proxy_options({"HTTPS_PROXY": "http://p:1", "no_proxy": "*"}) == []


@pytest.mark.parametrize("value", ["http://", "http://host:port", "http://me:pa55@:0"])
def test_a_proxy_that_is_no_address_is_refused_without_repeating_it(value: str) -> None:
    with pytest.raises(ConfigError) as caught:
        proxy_options({"HTTPS_PROXY": value})
    assert "HTTPS_PROXY" in str(caught.value)
    assert "pa55" not in str(caught.value)
