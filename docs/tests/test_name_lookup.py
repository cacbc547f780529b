# SPDX-License-Identifier: Apache-2.0
"""A host name with so many addresses that the answer fits no datagram: the name server asks for TCP."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

# Runs in a network and mount namespace of its own, as its root: a name server on port 53, and the command.
INSIDE = textwrap.dedent("""
    import fcntl, socket, struct, subprocess, sys, threading

    def raise_loopback():
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
            request = struct.pack("16sh14x", b"lo", 1 | 64)
            fcntl.ioctl(any_socket, 0x8914, request)

    def answer(query, truncated):
        question = query[12:]
        end = question.index(0) + 5
        kind = struct.unpack(">H", question[end - 4:end - 2])[0]
        count = 0 if truncated or kind != 1 else 200
        flags = 0x8180 | (0x0200 if truncated else 0)
        head = query[:2] + struct.pack(">HHHHH", flags, 1, count, 0, 0)
        record = b"\\xc0\\x0c" + struct.pack(">HHIH", 1, 1, 60, 4) + bytes([127, 0, 0, 1])
        return head + question[:end] + record * count

    def by_datagram(server):
        while True:
            query, sender = server.recvfrom(4096)
            server.sendto(answer(query, True), sender)

    def by_stream(server):
        while True:
            link, _ = server.accept()
            threading.Thread(target=serve, args=(link,), daemon=True).start()

    def serve(link):
        while size := link.recv(2, socket.MSG_WAITALL):
            text = answer(link.recv(struct.unpack(">H", size)[0], socket.MSG_WAITALL), False)
            link.sendall(struct.pack(">H", len(text)) + text)

    resolv, *command = sys.argv[1:]
    raise_loopback()
    subprocess.run(["mount", "--bind", resolv, "/etc/resolv.conf"], check=True)
    datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    datagrams.bind(("127.0.0.1", 53))
    streams = socket.create_server(("127.0.0.1", 53))
    for run, server in ((by_datagram, datagrams), (by_stream, streams)):
        threading.Thread(target=run, args=(server,), daemon=True).start()
    sys.exit(subprocess.run(command).returncode)
""")


def test_a_long_answer_comes_by_tcp(binary: Path, tmp_path: Path) -> None:
    space = ["unshare", "--user", "--map-root-user", "--mount", "--net"]
    if subprocess.run([*space, "true"], capture_output=True).returncode != 0:
        pytest.skip("this machine allows no namespaces of one's own")
    key = tmp_path / "key.p8"
    subprocess.run(
        ["openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", key],
        check=True,
        capture_output=True,
    )
    config = tmp_path / "carillon.yaml"
    config.write_text(
        textwrap.dedent(f"""
            waivers: [plain_redis]
            kafka: {{ brokers: "127.0.0.1:1" }}
            redis: {{ url: "redis://many.test:6379" }}
            apps:
              - id: im
                topic: com.example.im
                environment: production
                credentials: {{ key_file: {key}, key_id: ABCDE12345, team_id: ABCDE12345 }}
        """)
    )
    resolv = tmp_path / "resolv.conf"
    resolv.write_text("nameserver 127.0.0.1\n")
    run = subprocess.run(
        [*space, sys.executable, "-c", INSIDE, resolv, binary, "check", "--config", config],
        capture_output=True,
        text=True,
        timeout=120,
    )
    lines = [line for line in (run.stdout + run.stderr).splitlines() if "many.test" in line]
    # The name leads to an address, where nobody listens.
    assert lines, run.stdout + run.stderr
    assert any("127.0.0.1" in line and "refused" in line.lower() for line in lines), lines
