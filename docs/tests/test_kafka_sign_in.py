# SPDX-License-Identifier: Apache-2.0
"""The examples of docs/kafka-sign-in.md sign in, or are refused with the cure."""

from __future__ import annotations

import http.server
import json
import os
import re
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest
import yaml

from chaos.servers import Broker
from docs.tests.kafka_front import Front, SignIn

TOP = Path(__file__).parents[2]
PAGE = (TOP / "docs/kafka-sign-in.md").read_text()
PASSWORD, SECRET, TOKEN = "correct horse", "hush", "e30.eyJzdWIiOiJjIiwiaWF0IjoxLCJleHAiOjQwMDAwMDAwMDB9.c2ln"


def recipe(title: str) -> dict[str, Any]:
    """The example below a title."""
    found = re.search(rf"^## {title}\n\n```yaml\n(.*?)```", PAGE, re.DOTALL | re.MULTILINE)
    assert found, title
    return yaml.safe_load(found[1])["kafka"]


RECIPES = ["SCRAM", "Client certificate", "OAUTHBEARER with OIDC"]


def test_each_example_is_tested() -> None:
    assert PAGE.count("```yaml\nkafka:") == len(RECIPES)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that the recipes name. One certificate is the authority, the broker's and the client's."""
    folder = tmp_path_factory.mktemp("sign-in")
    secrets = folder / "secrets"
    secrets.mkdir()
    request = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=localhost -days 2"
    names = ["-addext", "subjectAltName=DNS:localhost"]
    for key, certificate in (("kafka-client-key", "kafka-client"), ("other-key", "other")):
        files = ["-keyout", secrets / f"{key}.pem", "-out", secrets / f"{certificate}.pem"]
        subprocess.run([*request.split(), *names, *files], check=True, capture_output=True)
    (secrets / "kafka-ca.pem").write_bytes((secrets / "kafka-client.pem").read_bytes())
    (secrets / "kafka-password").write_text(PASSWORD)
    (secrets / "wrong-password").write_text("wrong")
    (secrets / "oidc-secret").write_text(SECRET)
    return folder


@pytest.fixture(scope="module")
def broker(binary: Path, folder: Path) -> Iterator[Broker]:
    broker = Broker(folder, binary, 2)
    broker.open()
    yield broker
    broker.kill()


@pytest.fixture(scope="module")
def newer(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a carillon that loads the librdkafka of the wheel, which has OIDC."""
    folder = tmp_path_factory.mktemp("newer")
    wheel = Path(confluent_kafka.__file__).parents[1] / "confluent_kafka.libs"
    (folder / "librdkafka.so.1").symlink_to(next(wheel.glob("librdkafka-*.so.1")))
    return {"LD_LIBRARY_PATH": str(folder)}


def check(
    binary: Path,
    folder: Path,
    kafka: dict[str, Any],
    *options: str,
    env: dict[str, str] | None = None,
    redis: dict[str, Any] | None = None,
) -> list[Any]:
    """The findings about Kafka."""
    credentials = {"key_file": "no.p8", "key_id": "ABC123DEFG", "team_id": "DEF123GHIJ"}
    app = {"id": "im", "topic": "com.example.im", "credentials": credentials}
    path = folder / "carillon.yaml"
    path.write_text(json.dumps({"kafka": kafka, "redis": redis or {"url": "redis://127.0.0.1:1"}, "apps": [app]}))
    command = [binary, "check", "--json", "--config", path, *options]
    environment = {**os.environ, **(env or {})}
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=120, env=environment)
    findings = [json.loads(line) for line in done.stdout.splitlines()]
    assert findings, done.stderr
    return [finding for finding in findings if finding["check"] in {"kafka", "topic", "group", "configuration"}]


def faults(findings: list[Any]) -> list[str]:
    return [finding["text"] for finding in findings if finding["grade"] == "fail"]


@pytest.mark.parametrize("title", RECIPES[:2])
def test_a_recipe_is_accepted(title: str, binary: Path, folder: Path) -> None:
    findings = check(binary, folder, recipe(title), "--offline")
    assert [finding["grade"] for finding in findings] == ["ok"], findings


def test_the_settings_of_redis_are_accepted(binary: Path, folder: Path) -> None:
    found = re.search(r"^## Redis\n\n```yaml\n(.*?)```", PAGE, re.DOTALL | re.MULTILINE)
    assert found
    (folder / "secrets/redis-password").write_text(PASSWORD)
    for end in (".pem", "-key.pem"):
        (folder / f"secrets/redis-client{end}").write_bytes((folder / f"secrets/kafka-client{end}").read_bytes())
    redis = yaml.safe_load(found[1])["redis"]
    assert faults(check(binary, folder, recipe("SCRAM"), "--offline", redis=redis)) == []
    redis["key_file"] = "secrets/other-key.pem"
    [text] = faults(check(binary, folder, recipe("SCRAM"), "--offline", redis=redis))
    assert text.startswith("redis.certificate_file: ") and "key values mismatch" in text


def is_static(binary: Path) -> bool:
    return "librdkafka" not in subprocess.run(["ldd", binary], capture_output=True, text=True).stdout


def test_oidc_is_refused_with_the_cure_or_accepted(binary: Path, folder: Path, newer: dict[str, str]) -> None:
    kafka = recipe("OAUTHBEARER with OIDC")
    shown = re.search(r"```\n(kafka\.options\.sasl\.oauthbearer.*?)\n```", PAGE, re.DOTALL)
    assert shown
    assert faults(check(binary, folder, kafka, "--offline")) == [shown[1].replace("\n", " ")]
    if not is_static(binary):
        assert faults(check(binary, folder, kafka, "--offline", env=newer)) == []


def test_msk_iam_is_refused_with_the_cure(binary: Path, folder: Path) -> None:
    options = {"security.protocol": "SASL_SSL", "sasl.mechanism": "AWS_MSK_IAM"}
    [text] = faults(check(binary, folder, {"brokers": "b-1.example:9098", "options": options}, "--offline"))
    assert text.startswith("kafka.options.sasl.mechanism: librdkafka cannot sign in by AWS_MSK_IAM")
    assert "SASL/SCRAM" in text and "client certificates" in text


def test_a_key_of_another_certificate_is_refused(binary: Path, folder: Path) -> None:
    kafka = recipe("Client certificate")
    kafka["options"]["ssl.key.location"] = "secrets/other-key.pem"
    [text] = faults(check(binary, folder, kafka, "--offline"))
    assert "ssl.key.location" in text and "mismatch" in text


def front(broker: Broker, folder: Path, **sign_in: Any) -> Front:  # noqa: ANN401
    secrets = folder / "secrets"
    certificate, key = secrets / "kafka-client.pem", secrets / "kafka-client-key.pem"
    return Front(broker.bootstrap, SignIn(certificate=certificate, key=key, **sign_in))


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN"])
def test_a_password_signs_in(mechanism: str, binary: Path, folder: Path, broker: Broker) -> None:
    listener = front(broker, folder, mechanism=mechanism, user="carillon", password=PASSWORD)
    kafka = {**recipe("SCRAM"), "brokers": listener.bootstrap}
    kafka["options"]["sasl.mechanism"] = mechanism
    assert faults(check(binary, folder, kafka)) == []
    assert listener.logins > 0
    kafka["secret_files"]["sasl.password"] = "secrets/wrong-password"
    texts = faults(check(binary, folder, kafka))
    listener.close()
    assert texts and "Authentication failed" in texts[0] and "kafka.secret_files" in texts[0]


def test_a_client_certificate_signs_in(binary: Path, folder: Path, broker: Broker) -> None:
    listener = front(broker, folder, clients=folder / "secrets/kafka-ca.pem")
    kafka = {**recipe("Client certificate"), "brokers": listener.bootstrap}
    assert faults(check(binary, folder, kafka)) == []
    for part in ("certificate", "key"):
        del kafka["options"][f"ssl.{part}.location"]
    texts = faults(check(binary, folder, kafka))
    listener.close()
    assert texts and "ssl.certificate.location with ssl.key.location" in texts[0], texts


class Issuer(http.server.BaseHTTPRequestHandler):
    """Gives a token for the right secret."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        right = self.headers["Authorization"] == "Basic Y2FyaWxsb246aHVzaA=="
        body = json.dumps({"access_token": TOKEN, "token_type": "Bearer", "expires_in": 3600}).encode()
        self.send_response(200 if right else 401)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def test_a_token_signs_in(binary: Path, folder: Path, broker: Broker, newer: dict[str, str]) -> None:
    if is_static(binary):
        pytest.skip("this binary has librdkafka linked in")
    issuer = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Issuer)
    threading.Thread(target=issuer.serve_forever, daemon=True).start()
    listener = front(broker, folder, mechanism="OAUTHBEARER", token=TOKEN)
    kafka = {**recipe("OAUTHBEARER with OIDC"), "brokers": listener.bootstrap}
    kafka["options"]["sasl.oauthbearer.token.endpoint.url"] = f"http://127.0.0.1:{issuer.server_port}/token"
    assert faults(check(binary, folder, kafka, env=newer)) == []
    assert listener.logins > 0
    listener.close()
    issuer.shutdown()
