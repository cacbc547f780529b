# SPDX-License-Identifier: Apache-2.0
"""A front before `carillon broker` that takes TLS, client certificates and SASL, which the mock of librdkafka lacks.

It answers the login by itself (KIP-43, KIP-152; SCRAM: RFC 5802; OAUTHBEARER: RFC 7628), and passes everything else on. In the
answers it writes its own port for the broker's, and it adds the login to the requests that the broker lists.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import socket
import ssl
import struct
import threading
from dataclasses import dataclass, field
from pathlib import Path

HOST = b"\x00\x09127.0.0.1"
NAME = b"\x00\x09localhost"
UNSUPPORTED_VERSION, UNSUPPORTED_MECHANISM, FAILED = 35, 33, 58
API_VERSIONS, HANDSHAKE, AUTHENTICATE = 18, 17, 36
# The last forms of Metadata and FindCoordinator before the flexible ones.
LAST = {3: 8, 10: 2}


@dataclass
class SignIn:
    """What a client needs."""

    mechanism: str = ""
    user: str = ""
    password: str = ""
    token: str = ""
    # Certificate and key of the listener.
    certificate: Path | None = None
    key: Path | None = None
    # The authority of client certificates; none are asked for without it.
    clients: Path | None = None


@dataclass
class Scram:
    """A server's side of one SCRAM login."""

    sign_in: SignIn
    first: str = ""
    served: str = ""
    salt: bytes = field(default_factory=lambda: os.urandom(16))

    @property
    def _hash(self) -> str:
        return self.sign_in.mechanism.replace("SCRAM-SHA-", "sha")

    def answer(self, message: bytes) -> bytes | None:
        """None for a wrong password."""
        text = message.decode()
        if not self.first:
            self.first = text.removeprefix("n,,")
            fields = dict(part.split("=", 1) for part in self.first.split(","))
            if fields["n"] != self.sign_in.user:
                return None
            salt = base64.b64encode(self.salt).decode()
            self.served = f"r={fields['r']}{os.urandom(8).hex()},s={salt},i=4096"
            return self.served.encode()
        bare, _, proof = text.rpartition(",p=")
        salted = hashlib.pbkdf2_hmac(self._hash, self.sign_in.password.encode(), self.salt, 4096)
        whole = f"{self.first},{self.served},{bare}".encode()
        client = hmac.digest(salted, b"Client Key", self._hash)
        signature = hmac.digest(hashlib.new(self._hash, client).digest(), whole, self._hash)
        wanted = bytes(a ^ b for a, b in zip(client, signature, strict=True))
        if not hmac.compare_digest(wanted, base64.b64decode(proof)):
            return None
        server = hmac.digest(hmac.digest(salted, b"Server Key", self._hash), whole, self._hash)
        return b"v=" + base64.b64encode(server)


class Front:
    def __init__(self, broker: str, sign_in: SignIn) -> None:
        self.sign_in = sign_in
        self.logins = 0
        self.failures: list[str] = []
        self._broker = int(broker.rpartition(":")[2])
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._tls: ssl.SSLContext | None = None
        if sign_in.certificate is not None:
            self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self._tls.load_cert_chain(sign_in.certificate, sign_in.key)
            if sign_in.clients is not None:
                self._tls.verify_mode = ssl.CERT_REQUIRED
                self._tls.load_verify_locations(sign_in.clients)
        self._sockets: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def bootstrap(self) -> str:
        return f"localhost:{self.port}"

    def close(self) -> None:
        self._listener.close()
        for each in self._sockets:
            each.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        try:
            if self._tls is not None:
                client = self._tls.wrap_socket(client, server_side=True)
            broker = socket.create_connection(("127.0.0.1", self._broker))
            self._sockets += [client, broker]
            if self.sign_in.mechanism and not self._login(client, broker):
                client.close()
                return
            self.logins += 1
            threading.Thread(target=self._back, args=(broker, client), daemon=True).start()
            while frame := read(client):
                broker.sendall(frame)
        except OSError as fault:
            self.failures.append(str(fault))

    def _back(self, broker: socket.socket, client: socket.socket) -> None:
        there, here = HOST + struct.pack(">i", self._broker), NAME + struct.pack(">i", self.port)
        try:
            while frame := read(broker):
                client.sendall(frame.replace(there, here))
        except OSError:
            pass
        client.close()

    def _login(self, client: socket.socket, broker: socket.socket) -> bool:
        scram = Scram(self.sign_in)
        while frame := read(client):
            key, version = struct.unpack(">hh", frame[4:8])
            body = frame[14 + max(0, struct.unpack(">h", frame[12:14])[0]) :]
            done: bool | None = None
            if key == API_VERSIONS:
                answer = versions(frame, version, broker)
            elif key == HANDSHAKE:
                asked = body[2 : 2 + struct.unpack(">h", body[:2])[0]].decode()
                right = asked == self.sign_in.mechanism
                answer = struct.pack(">hi", 0 if right else UNSUPPORTED_MECHANISM, 1) + text(self.sign_in.mechanism)
                done = None if right else False
            elif key == AUTHENTICATE:
                reply, done = self._authenticate(scram, body[4:])
                failed = struct.pack(">h", FAILED) + text("Authentication failed") + struct.pack(">i", 0)
                answer = failed if reply is None else struct.pack(">hhi", 0, -1, len(reply)) + reply
            else:
                return False
            client.sendall(struct.pack(">i", len(answer) + 4) + frame[8:12] + answer)
            if done is not None:
                return done
        return False

    def _authenticate(self, scram: Scram, message: bytes) -> tuple[bytes | None, bool | None]:
        wanted = self.sign_in
        if wanted.mechanism.startswith("SCRAM"):
            reply = scram.answer(message)
            return reply, False if reply is None else (True if reply.startswith(b"v=") else None)
        if wanted.mechanism == "PLAIN":
            right = message == f"\0{wanted.user}\0{wanted.password}".encode()
        else:
            right = f"auth=Bearer {wanted.token}\x01".encode() in message
        return (b"", True) if right else (None, False)


def read(source: socket.socket) -> bytes:
    """A whole frame with its size; empty at the end."""
    frame = b""
    size = 4
    while len(frame) < size:
        more = source.recv(size - len(frame))
        if not more:
            return b""
        frame += more
        if len(frame) == size == 4:
            size += struct.unpack(">i", frame)[0]
    return frame


def text(words: str) -> bytes:
    return struct.pack(">h", len(words)) + words.encode()


def versions(request: bytes, version: int, broker: socket.socket) -> bytes:
    """The requests that the broker knows, in forms whose places have two bytes of length, and the login."""
    if version > 2:
        return struct.pack(">hi", UNSUPPORTED_VERSION, 1) + struct.pack(">hhh", API_VERSIONS, 0, 2)
    broker.sendall(request)
    answer = read(broker)[8:]
    count = struct.unpack(">i", answer[2:6])[0]
    listed = [struct.unpack(">hhh", answer[6 + at * 6 : 12 + at * 6]) for at in range(count)]
    known = [(key, low, min(high, LAST.get(key, high))) for key, low, high in listed if key != API_VERSIONS]
    known += [(HANDSHAKE, 0, 1), (API_VERSIONS, 0, 2), (AUTHENTICATE, 0, 0)]
    return (
        answer[:2]
        + struct.pack(">i", len(known))
        + b"".join(struct.pack(">hhh", *one) for one in known)
        + answer[6 + count * 6 :]
    )
