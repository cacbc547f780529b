# SPDX-License-Identifier: Apache-2.0
"""What users do: a list of records and their times, drawn from the seed.

Everything here is a plain value, so that a run can be told apart from its traffic and played again.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

from chaos.evidence import EVENTS, USER_STATE, Device

APP = "im"
TOPIC = "com.example.im"
GATEWAY = "gw1"
# The simulator answers 410 to tokens that begin so.
DEAD_PREFIX = "dead"
BIG_GROUP = "g-big"


@dataclass(frozen=True)
class Send:
    """One record and when it is written, Unix ms."""

    at_ms: int
    topic: str
    key: str
    value: dict[str, Any] | None
    raw: str = ""


@dataclass
class Population:
    """Who there is. Roles do not overlap, so that each of them has its own, exact, rule."""

    users: list[str] = field(default_factory=list)
    roles: dict[str, str] = field(default_factory=dict)
    devices: list[Device] = field(default_factory=list)
    # (uid, device) -> token and version.
    tokens: dict[tuple[str, str], tuple[str, int]] = field(default_factory=dict)
    groups: dict[str, dict[str, int]] = field(default_factory=dict)

    def of_role(self, role: str) -> list[str]:
        return [uid for uid in self.users if self.roles[uid] == role]


@dataclass(frozen=True)
class Load:
    """How much of it."""

    seconds: float = 40.0
    # Messages per second from one user to another.
    direct_per_s: float = 18.0
    # Messages per second to a small group.
    group_per_s: float = 1.5
    # Members of the large group.
    big_members: int = 2500
    big_times: tuple[float, ...] = ()
    users: int = 90
    # Users with a live desktop, whose phones stay silent for it; half of the phones are live too.
    desktops: int = 0
    # Users with a live desktop and phones that are pushed later: after a hold in memory, and in `carillon.parked`.
    holders: int = 0
    parkers: int = 0


ROLES = (
    ("tokenless", 4),
    ("dead", 3),
    ("fg", 10),
    ("bg", 4),
    ("from", 8),
    ("to", 8),
    ("rebinder", 8),
    ("reader", 12),
    ("reporter", 6),
    ("muted", 6),
)
# How long the phones of users with a live desktop wait; 0: for good.
HOLDS = {"desktop": 0, "holder": 2, "parker": 6}


def population(seed: int, load: Load) -> Population:
    rng = random.Random(f"population/{seed}")
    people = Population(users=[f"u{index:03d}" for index in range(load.users)])
    names = list(people.users)
    rng.shuffle(names)
    for role, count in (*ROLES, ("desktop", load.desktops), ("holder", load.holders), ("parker", load.parkers)):
        for _ in range(min(count, len(names))):
            people.roles[names.pop()] = role
    for uid in names:
        people.roles[uid] = "plain"
    for uid in people.users:
        _devices(rng, people, uid)
    for index in range(6):
        members = rng.sample(people.users, rng.randint(8, 20))
        people.groups[f"g{index}"] = {uid: rng.choice([0, 0, 0, 0, 0, 1, 2, 5]) for uid in members}
    big = {f"m{index:05d}": 0 for index in range(load.big_members)}
    big.update({uid: 0 for uid in rng.sample(people.users, 30)})
    people.groups[BIG_GROUP] = big
    return people


def _state(rng: random.Random, role: str) -> str:
    if role in HOLDS:
        return rng.choice(["", "fg"])
    return role if role in ("fg", "bg") else ""


def make_token(rng: random.Random) -> str:
    return f"{rng.getrandbits(256):064x}".replace(DEAD_PREFIX, "0000")


def _devices(rng: random.Random, people: Population, uid: str) -> None:
    role = people.roles[uid]
    # A phone that changes hands is bound by its next owner later.
    if role in ("tokenless", "to"):
        return
    count = 2 if role == "plain" and rng.random() < 0.5 else 1
    for index in range(count):
        device = f"d-{uid}-{index}"
        people.devices.append(Device(uid, device, _state(rng, role)))
        token = make_token(rng)
        if role == "dead":
            token = DEAD_PREFIX + token[len(DEAD_PREFIX) :]
        people.tokens[(uid, device)] = (token, 1)
    if role in HOLDS:
        people.devices.append(Device(uid, f"pc-{uid}", "desktop"))


def _record(kind: str, event_id: str, sent_ms: int, **fields: Any) -> dict[str, Any]:  # noqa: ANN401
    return {"v": 1, "kind": kind, "app": APP, "event_id": event_id, "sent_ms": sent_ms, **fields}


def bind(event_id: str, sent_ms: int, uid: str, device: str, token: str, version: int) -> dict[str, Any]:
    fields = {
        "device": device,
        "token": token,
        "env": "production",
        "topic": TOPIC,
        "type": "alert",
        "bind_ver": version,
    }
    return _record("bind", event_id, sent_ms, uid=uid, token=fields)


def ack(event_id: str, sent_ms: int, uid: str, device: str, epoch: int, msg_ids: list[str]) -> dict[str, Any]:
    return _record("ack", event_id, sent_ms, uid=uid, device=device, conn_epoch=epoch, msg_ids=msg_ids)


def first_records(people: Population, at_ms: int) -> list[Send]:
    """Tokens, settings and mutes, written and settled before the traffic begins."""
    sends: list[Send] = []
    for index, ((uid, device), (token, version)) in enumerate(people.tokens.items()):
        sends.append(Send(at_ms, USER_STATE, uid, bind(f"b{index}", at_ms, uid, device, token, version)))
    for role, hold_s in HOLDS.items():
        for uid in people.of_role(role):
            fields = {"uid": uid, "push_when_desktop_online": False, "hold_s": hold_s}
            sends.append(Send(at_ms, USER_STATE, uid, _record("settings", f"se-{uid}", at_ms, **fields)))
    for index, uid in enumerate(people.of_role("muted")):
        for group, members in people.groups.items():
            if uid in members:
                level = (-1, 1, 2, 4, 5)[(index + len(group)) % 5]
                fields = {"uid": uid, "conv_id": group, "level": level}
                sends.append(Send(at_ms, USER_STATE, uid, _record("mute", f"mu-{uid}-{group}", at_ms, **fields)))
    return sends


class Story:
    """Draws the traffic of one run."""

    def __init__(self, seed: int, load: Load, people: Population, base_ms: int) -> None:
        self.rng = random.Random(f"traffic/{seed}")
        self.load = load
        self.people = people
        self.base_ms = base_ms
        self.sends: list[Send] = []
        self.seqs: dict[str, int] = {}
        self.count = 0
        # Of each conversation what was said in it, for reads and recalls.
        self.said: list[Send] = []

    def tell(self) -> list[Send]:
        self._messages()
        self._big()
        self._recalls()
        self._repeats()
        self._reads()
        self._reports()
        self._moves()
        self._rebinds()
        self._bad()
        end = self._ms(self.load.seconds + 1)
        return sorted((send for send in self.sends if send.at_ms <= end), key=lambda send: send.at_ms)

    def _ms(self, at_s: float) -> int:
        return self.base_ms + int(at_s * 1000)

    def _add(self, send: Send) -> None:
        self.sends.append(send)

    def _name(self, letter: str) -> str:
        self.count += 1
        return f"{letter}{self.count}"

    def _messages(self) -> None:
        at = 0.0
        rate = self.load.direct_per_s + self.load.group_per_s
        while (at := at + self.rng.expovariate(rate)) < self.load.seconds:
            if self.rng.random() < self.load.group_per_s / rate:
                self._say(at, self._group_message(self.rng.choice([g for g in self.people.groups if g != BIG_GROUP])))
            else:
                self._say(at, self._direct_message())

    def _direct_message(self) -> dict[str, Any]:
        sender, receiver = self.rng.sample(self.people.users, 2)
        # Few conversations carry most of the talk: there the order of a conversation is put to the test.
        if self.rng.random() < 0.5:
            receiver = self.people.users[self.people.users.index(receiver) % 20]
            sender = self.people.users[(self.people.users.index(receiver) + 1) % 20]
        conv = "p-" + "-".join(sorted((sender, receiver)))
        return {"conv": {"id": conv, "type": "p2p"}, "from": {"uid": sender}, "to": {"uids": [receiver]}}

    def _group_message(self, group: str) -> dict[str, Any]:
        members = list(self.people.groups[group])
        people = [uid for uid in members if uid in self.people.roles]
        value: dict[str, Any] = {"conv": {"id": group, "type": "group"}, "from": {"uid": self.rng.choice(people)}}
        if self.rng.random() < 0.15:
            value["to"] = {"exclude": [self.rng.choice(people)]}
        if self.rng.random() < 0.25:
            everybody = self.rng.random() < 0.3
            named = self.rng.sample(people, min(2, len(people)))
            value["mention"] = {"all": everybody, "uids": named}
        return value

    def _say(self, at_s: float, value: dict[str, Any]) -> None:
        conv = value["conv"]["id"]
        self.seqs[conv] = seq = self.seqs.get(conv, 0) + 1
        sent = self._ms(at_s)
        push: dict[str, Any] = {"content": f"hello {seq}"}
        dice = self.rng.random()
        if dice < 0.03:
            push["enabled"] = False
        elif dice < 0.06:
            push["badge"] = False
        elif dice < 0.10:
            push["force"] = self._force(value)
        record = _record("message", self._name("e"), sent, msg_id=f"m{self.count}", server_seq=seq, push=push, **value)
        if self.rng.random() < 0.02:
            record["expire_at_ms"] = sent + self.rng.randint(2000, 6000)
        send = Send(sent, EVENTS, conv, record)
        self.said.append(send)
        self._add(send)

    def _force(self, value: dict[str, Any]) -> dict[str, Any]:
        if self.rng.random() < 0.3:
            return {"mode": "all"}
        named = value.get("to", {}).get("uids") or list(self.people.groups[value["conv"]["id"]])[:3]
        return {"mode": "list", "uids": named[:3], "content": "look at this"}

    def _big(self) -> None:
        for at in self.load.big_times:
            self._say(at, self._group_message(BIG_GROUP))

    def _recalls(self) -> None:
        for send in list(self.said):
            value = send.value
            if value is None or value["conv"]["id"] == BIG_GROUP or self.rng.random() > 0.06:
                continue
            at = send.at_ms + self.rng.randint(300, 8000)
            # A recall that is no alert itself is settled at once, however long the message's own push waits.
            push = {"enabled": False} if self.rng.random() < 0.6 else {"content": "recalled"}
            badge = "keep" if self.rng.random() < 0.15 else "decrease"
            record = _record("revoke", self._name("e"), at, msg_id=f"r{self.count}", push=push)
            record |= {name: value[name] for name in ("conv", "from", "to") if name in value}
            record["revoke"] = {"target_msg_id": value["msg_id"], "badge": badge}
            if self.rng.random() < 0.15:
                # Its alert is too late when it comes; the badge is lowered all the same.
                record["expire_at_ms"] = at + 1
            self._add(Send(at, EVENTS, send.key, record))

    def _repeats(self) -> None:
        """A producer that tries again: the same record a second time."""
        for send in list(self.said):
            if self.rng.random() < 0.02:
                self._add(Send(send.at_ms + self.rng.randint(500, 9000), send.topic, send.key, send.value))

    def _reads(self) -> None:
        for send in list(self.said):
            value = send.value
            if value is None or self.rng.random() > 0.4:
                continue
            uids = value.get("to", {}).get("uids") or list(self.people.groups.get(send.key, {}))
            for uid in uids:
                if self.people.roles.get(uid) != "reader" or uid == value["from"]["uid"]:
                    continue
                at = send.at_ms + self.rng.randint(200, 7000)
                mark = {"up_to_seq": value["server_seq"]} if self.rng.random() < 0.5 else {"up_to_ms": send.at_ms}
                record = _record("read", self._name("s"), at, uid=uid, conv_id=send.key, **mark)
                self._add(Send(at, USER_STATE, uid, record))

    def _reports(self) -> None:
        for uid in self.people.of_role("reporter"):
            at = self._ms(self.rng.uniform(0.2, 0.9) * self.load.seconds)
            device = next(device.device for device in self.people.devices if device.uid == uid)
            fields = {"uid": uid, "device": device, "value": self.rng.randint(0, 7)}
            client_ms = at - self.rng.randint(0, 1500)
            record = _record("badge_report", self._name("s"), at, client_ms=client_ms, **fields)
            self._add(Send(at, USER_STATE, uid, record))

    def _moves(self) -> None:
        """A phone changes hands: the token of one user is bound by another."""
        for old, new in zip(self.people.of_role("from"), self.people.of_role("to"), strict=True):
            device = next(device.device for device in self.people.devices if device.uid == old)
            token, _ = self.people.tokens[(old, device)]
            at = self._ms(self.rng.uniform(0.15, 0.7) * self.load.seconds)
            record = bind(self._name("s"), at, new, device, token, 10)
            self._add(Send(at, USER_STATE, new, record))

    def _rebinds(self) -> None:
        """A user's own device gets a new token, twice in a run."""
        for uid in self.people.of_role("rebinder"):
            device = next(device.device for device in self.people.devices if device.uid == uid)
            for version, share in ((2, (0.1, 0.4)), (3, (0.5, 0.8))):
                at = self._ms(self.rng.uniform(*share) * self.load.seconds)
                token = make_token(self.rng)
                record = bind(self._name("s"), at, uid, device, token, version)
                self._add(Send(at, USER_STATE, uid, record))

    def _bad(self) -> None:
        for index, raw in enumerate(('{"v":1,', '{"v":1,"kind":"nothing","app":"im","event_id":"x","sent_ms":1}')):
            at = self._ms(self.rng.uniform(0.1, 0.9) * self.load.seconds)
            self._add(Send(at, EVENTS, f"bad{index}", None, raw))
