# SPDX-License-Identifier: Apache-2.0
"""Rules and dashboard as they are generated: valid, of series that exist, and each alert fires and ends when it should."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from deploy.monitoring.dashboard import dashboard
from deploy.monitoring.exported import read_exported, unknown_series
from deploy.monitoring.generate import files
from deploy.monitoring.rules import groups
from deploy.monitoring.terms import DRILL, PRODUCTION

TOP = Path(__file__).parents[2]
RULES = TOP / "deploy/monitoring/carillon.rules.yaml"
ALERTS = {rule["alert"] for group in groups(PRODUCTION) for rule in group["rules"] if "alert" in rule}
EXPORTED = read_exported()

AT = 'instance="a",job="carillon"'
APP = f'{AT},app="im",env="production",credential="default"'


@dataclass
class Case:
    """Series of a sample a minute; which alerts fire at which minute, all of them, with their severities."""

    series: dict[str, str]
    fires: dict[int, list[str]]
    up: str = "1x200"


CASES = {
    "absent": Case({}, {9: [], 20: ["CarillonAbsent page"]}, up="1x10 stale"),
    "down": Case({'up{instance="b",job="carillon"}': "1x10 0x10 1x20"}, {9: [], 14: [], 18: ["CarillonDown ticket"], 23: []}),
    # time() is 0 at the beginning.
    "expiry": Case(
        {f"carillon_credential_expiry_timestamp_seconds{{{AT}}}": "5000000x5 864000x5 90000x5 5000000x5"},
        {
            4: [],
            9: ["CarillonCredentialExpiry ticket"],
            14: ["CarillonCredentialExpiring page", "CarillonCredentialExpiry ticket"],
            18: [],
        },
    ),
    "refused": Case(
        {f'carillon_credential_replacement_refused{{{AT},app="im",credential="default"}}': "0x10 1x20 0x20"},
        {9: [], 13: ["CarillonCredentialRefused ticket"], 40: []},
    ),
    "reload": Case(
        {f'carillon_config_reloads_total{{{AT},result="refused"}}': "0x10 1x50"},
        {9: [], 13: ["CarillonReloadRefused ticket"], 40: []},
    ),
    "loop": Case({f'carillon_ready{{{AT},part="loop"}}': "1x10 0x5 1x20"}, {9: [], 13: ["CarillonLoopStuck page"], 20: []}),
    "streams": Case(
        {
            f"carillon_apns_streams_limit{{{APP}}}": "500x10 0x10 500x20",
            f'carillon_apns_connections{{{APP},state="ready"}}': "2x40",
        },
        {9: [], 15: ["CarillonNoStreams page"], 25: []},
    ),
    "log": Case({f"carillon_log_lines_dropped_total{{{AT}}}": "0x10 40x50"}, {9: [], 13: ["CarillonLogLost ticket"], 25: []}),
    # Its series begins with the first one.
    "dead letter": Case(
        {f'carillon_dlq_records_total{{{AT},reason="wrong_type"}}': "_x10 1x20 2x50"},
        {9: [], 13: ["CarillonDeadLetters ticket"], 29: [], 33: ["CarillonDeadLetters ticket"], 60: []},
    ),
    "series": Case(
        {f"carillon_metrics_series{{{AT}}}": "2000x10 2800x10 2000x10"},
        {9: [], 12: [], 18: ["CarillonSeriesBudget ticket"], 23: []},
    ),
    "series refused": Case(
        {f"carillon_metrics_series_refused_total{{{AT}}}": "0x10 1x20"}, {9: [], 18: ["CarillonSeriesBudget ticket"]}
    ),
    "descriptors": Case(
        {f"process_open_fds{{{AT}}}": "100x10 190x20 100x10", f"process_max_fds{{{AT}}}": "200x60"},
        {9: [], 15: [], 25: ["CarillonDescriptorsLow ticket"], 33: []},
    ),
    "clock": Case(
        {f'carillon_clock_skew_seconds{{{AT},reference="redis"}}': "0x10 -70x10 -400x10 0x20"},
        {9: [], 11: [], 15: ["CarillonClockOff ticket"], 25: ["CarillonClockOff ticket", "CarillonClockWrong page"], 36: []},
    ),
    "clock of a broker": Case(
        {f'carillon_clock_skew_seconds{{{AT},reference="kafka"}}': "0x10 -400x30"}, {9: [], 15: ["CarillonClockOff ticket"]}
    ),
    "new epoch": Case(
        {f"carillon_kafka_partition_restarts_total{{{AT}}}": "0x10 1x50"},
        {9: [], 13: ["CarillonPartitionRestarted ticket"], 25: []},
    ),
    "gap": Case({f"carillon_kafka_gap_records_total{{{AT}}}": "0x10 5x50"}, {9: [], 13: ["CarillonDataGap page"], 25: []}),
    "stuck": Case(
        {
            f"carillon_watermark_age_seconds{{{AT}}}": "0x10 200x5 1x400",
            f"carillon_pending_events{{{AT}}}": "1x400",
        },
        {
            9: [],
            14: [
                "CarillonAgeBurn page 1h",
                "CarillonAgeBurn page 6h",
                "CarillonAgeBurn ticket 3d",
                "CarillonWatermarkStuck page",
            ],
            # The last five minutes are well again.
            25: ["CarillonAgeBurn page 6h", "CarillonAgeBurn ticket 3d"],
            90: ["CarillonAgeBurn ticket 3d"],
        },
    ),
    "lag": Case(
        {f'carillon_kafka_lag_seconds{{{AT},topic="im.events"}}': "0x10 10+30x15 0x20"},
        {9: [], 12: [], 20: ["CarillonLagGrowing ticket"], 28: []},
    ),
    "lag that stays": Case(
        {f'carillon_kafka_lag_seconds{{{AT},topic="im.events"}}': "500x60"},
        {20: [], 40: []},
    ),
    "no assignment": Case(
        {f"carillon_kafka_assigned_partitions{{{AT}}}": "8x10 0x10 8x10"},
        {9: [], 14: [], 18: ["CarillonNoAssignment page"], 22: []},
    ),
    "one of two without partitions": Case(
        {
            f"carillon_kafka_assigned_partitions{{{AT}}}": "8x30",
            'carillon_kafka_assigned_partitions{instance="b",job="carillon"}': "0x30",
        },
        {20: []},
    ),
    "rebalances": Case(
        {f"carillon_kafka_rebalances_total{{{AT}}}": "0x20 0+1x20 20x60"},
        {19: [], 25: [], 37: ["CarillonRebalanceStorm ticket"], 70: []},
    ),
    "a rollout of four": Case({f"carillon_kafka_rebalances_total{{{AT}}}": "0x20 0+2x8 16x40"}, {24: [], 28: [], 31: []}),
    "commits": Case(
        {
            f'carillon_kafka_commits_total{{{AT},result="failed"}}': "0x10 0+3x15 45x30",
            f'carillon_kafka_commits_total{{{AT},result="ok"}}': "0+2x60",
        },
        {9: [], 22: ["CarillonCommitsFailing ticket"], 40: []},
    ),
    "records": Case(
        {f"carillon_record_failures_total{{{AT}}}": "0x10 3x50"}, {9: [], 13: ["CarillonRecordsRefused ticket"], 25: []}
    ),
    "breaker": Case(
        {f'carillon_breaker_state{{{APP},scope="endpoint"}}': "0x9 2 1 2 1 2 1 2 1 2 0x10"},
        {9: [], 11: [], 15: ["CarillonBreakerOpen page"], 20: [], 25: []},
    ),
    "unreachable": Case(
        {
            f'carillon_apns_connections{{{APP},state="ready"}}': "2x9 0x10 2x20",
            f"carillon_apns_connect_failures_total{{{APP}}}": "0x9 0+3x9 30x20",
        },
        {9: [], 11: [], 15: ["CarillonApnsUnreachable page"], 21: []},
    ),
    "no connection where none is wanted": Case(
        {
            f'carillon_apns_connections{{{APP},state="ready"}}': "0x30",
            f"carillon_apns_connect_failures_total{{{APP}}}": "5x30",
        },
        {20: []},
    ),
    "credential": Case(
        {f"carillon_apns_credential_paused{{{APP}}}": "0x10 1x5 0x10"}, {9: [], 13: ["CarillonAuthRejected page"], 17: []}
    ),
    "nothing accepted": Case(
        {
            f'carillon_push_attempts_total{{{APP},result="rejected"}}': "0x10 0+10x60",
            f'carillon_push_attempts_total{{{APP},result="accepted"}}': "0+100x10 1000x15 1000+100x30",
        },
        {14: [], 20: ["CarillonNothingAccepted page"], 30: []},
    ),
    "nothing to push": Case({f'carillon_push_attempts_total{{{APP},result="accepted"}}': "1000x60"}, {30: []}),
    "alarm": Case(
        {f'carillon_apns_alarms_total{{{APP},reason="BadTopic"}}': "_x10 1x50"},
        {9: [], 13: ["CarillonMisconfigured ticket"], 40: []},
    ),
    "dead connections": Case(
        {f"carillon_apns_dead_connections_total{{{APP}}}": "0x10 6x50"},
        {9: [], 13: ["CarillonDeadConnections ticket"], 25: []},
    ),
    "goaways": Case(
        {f'carillon_apns_goaway_total{{{APP},reason="Shutdown"}}': "_x10 30x50"},
        {9: [], 13: ["CarillonGoawayStorm ticket"], 25: []},
    ),
    "goaways of a first rollout": Case(
        {f'carillon_apns_goaway_total{{{APP},reason="Shutdown"}}': "0 10 20 30x50"}, {3: [], 5: [], 12: []}
    ),
    "few goaways": Case({f'carillon_apns_goaway_total{{{APP},reason="Shutdown"}}': "0x10 9x50"}, {13: [], 25: []}),
    "ambiguous": Case(
        {
            f'carillon_push_attempts_total{{{APP},result="ambiguous"}}': "0x10 0+5x15 75x40",
            f'carillon_push_attempts_total{{{APP},result="accepted"}}': "0+100x70",
        },
        {9: [], 20: ["CarillonAmbiguousHigh ticket"], 45: []},
    ),
    "few ambiguous": Case(
        {
            f'carillon_push_attempts_total{{{APP},result="ambiguous"}}': "0+1x60",
            f'carillon_push_attempts_total{{{APP},result="accepted"}}': "0+1000x60",
        },
        {30: []},
    ),
    "retries": Case(
        {f"carillon_retries_denied_total{{{APP}}}": "0x10 0+5x15 75x30"},
        {9: [], 14: [], 20: ["CarillonRetryBudgetEmpty ticket"], 35: []},
    ),
    "invalidation": Case(
        {
            f'carillon_tokens_invalidated_total{{{AT},app="im",reason="Unregistered"}}': "_x10 80x60",
            f'carillon_push_attempts_total{{{APP},result="rejected"}}': "0+50x70",
            f'carillon_push_attempts_total{{{APP},result="accepted"}}': "0+10x70",
        },
        {9: [], 13: ["CarillonMassInvalidation page"], 40: []},
    ),
    "usual invalidation": Case(
        {
            f'carillon_tokens_invalidated_total{{{AT},app="im",reason="Unregistered"}}': "0+10x60",
            f'carillon_push_attempts_total{{{APP},result="accepted"}}': "0+1000x60",
        },
        {40: []},
    ),
    "brake": Case(
        {f'carillon_token_removal_brake{{{AT},app="im",reason="Unregistered"}}': "0x10 1x5 0x5"},
        {9: [], 12: ["CarillonRemovalBrake page"], 17: []},
    ),
    "redis down": Case(
        {
            f'carillon_ready{{{AT},part="redis"}}': "1x10 0x5 1x10",
            f'carillon_ready{{{AT},part="process"}}': "1x10 0x15",
        },
        {9: [], 13: ["CarillonRedisDown page"], 18: []},
    ),
    "redis": Case(
        {
            f'carillon_redis_command_seconds_bucket{{{AT},op="read",le="0.1"}}': "0+100x10 1000+10x15 1150+100x30",
            f'carillon_redis_command_seconds_bucket{{{AT},op="read",le="1"}}': "0+100x60",
            f'carillon_redis_command_seconds_bucket{{{AT},op="read",le="+Inf"}}': "0+100x60",
        },
        {9: [], 20: ["CarillonRedisDegraded ticket"], 35: []},
    ),
    "redis without writes": Case(
        {f"carillon_redis_unclaimed_total{{{AT}}}": "0x10 4x30"}, {9: [], 12: ["CarillonRedisRefusesWrites page"], 20: []}
    ),
    "older data": Case(
        {
            f"carillon_redis_rollbacks_total{{{AT}}}": "0x10 1x30",
            f"carillon_redis_older_data{{{AT}}}": "0x10 1x1 0x30",
        },
        {9: [], 12: ["CarillonRedisOlderData page"], 20: []},
    ),
    "tokens": Case({f"carillon_token_loss{{{AT}}}": "0x10 1x5 0x5"}, {9: [], 12: ["CarillonTokenLoss page"], 17: []}),
    "late": Case(
        {
            f'carillon_event_end_to_end_seconds_bucket{{{AT},le="2"}}': "0+50x200",
            f"carillon_event_end_to_end_seconds_count{{{AT}}}": "0+100x200",
        },
        {
            # Half a minute is no hour: the budget is spent by the time that was watched.
            1: [],
            10: [],
            30: ["CarillonLatencyBurn page 1h"],
            70: ["CarillonLatencyBurn page 1h", "CarillonLatencyBurn page 6h", "CarillonLatencyBurn ticket 3d"],
        },
    ),
    "a little late": Case(
        {
            f'carillon_event_end_to_end_seconds_bucket{{{AT},le="2"}}': "0+95x950",
            f"carillon_event_end_to_end_seconds_count{{{AT}}}": "0+100x950",
        },
        {30: [], 940: ["CarillonLatencyBurn ticket 3d"]},
        up="1x950",
    ),
    "late but few": Case(
        {
            f'carillon_event_end_to_end_seconds_bucket{{{AT},le="2"}}': "0x200",
            f"carillon_event_end_to_end_seconds_count{{{AT}}}": "0+1x200",
        },
        {30: []},
    ),
    "expired": Case(
        {
            f'carillon_decisions_total{{{AT},app="im",verdict="expired",reason="expired"}}': "0+5x90",
            f'carillon_decisions_total{{{AT},app="im",verdict="accepted",reason="ok"}}': "0+95x90",
            f"carillon_events_settled_total{{{AT}}}": "0+100x90",
        },
        {
            1: [],
            30: ["CarillonLossBurn page 1h"],
            70: ["CarillonLossBurn page 1h", "CarillonLossBurn page 6h", "CarillonLossBurn ticket 3d"],
        },
    ),
    # A Prometheus that begins to watch, or a first rollout: few samples, and counters that are old or begin.
    "a rebalance at the beginning": Case({f"carillon_kafka_rebalances_total{{{AT}}}": "0 1x30"}, {1: [], 2: [], 3: [], 10: []}),
    "a backlog at the beginning": Case(
        {
            f'carillon_event_end_to_end_seconds_bucket{{{AT},le="2"}}': "0x4 0+1000x60",
            f"carillon_event_end_to_end_seconds_count{{{AT}}}": "0+1000x60",
        },
        {1: [], 2: [], 4: [], 10: []},
    ),
    "old counters at the beginning": Case(
        {
            f"process_start_time_seconds{{{AT}}}": "-100000x60",
            f'carillon_tokens_invalidated_total{{{AT},app="im",reason="Unregistered"}}': "5000x60",
            f'carillon_push_attempts_total{{{APP},result="accepted"}}': "100000+50x60",
            f'carillon_apns_goaway_total{{{APP},reason="Shutdown"}}': "500x60",
            f'carillon_apns_alarms_total{{{APP},reason="BadTopic"}}': "3x60",
            f"carillon_log_lines_dropped_total{{{AT}}}": "3x60",
            f'carillon_dlq_records_total{{{AT},reason="wrong_type"}}': "30x60",
            f'carillon_decisions_total{{{AT},app="im",verdict="expired",reason="expired"}}': "500x60",
            f'carillon_decisions_total{{{AT},app="im",verdict="accepted",reason="ok"}}': "100000+50x60",
            f"carillon_events_settled_total{{{AT}}}": "100000+50x60",
        },
        {0: [], 1: [], 5: [], 13: [], 30: []},
    ),
    # The first scrape has them already.
    "the first counts of a new worker": Case(
        {
            f"process_start_time_seconds{{{AT}}}": "-20x60",
            f'carillon_dlq_records_total{{{AT},reason="wrong_type"}}': "3x60",
        },
        {1: ["CarillonDeadLetters ticket"], 30: []},
    ),
    "nothing expired": Case(
        {
            f'carillon_decisions_total{{{AT},app="im",verdict="accepted",reason="ok"}}': "0+95x60",
            f"carillon_events_settled_total{{{AT}}}": "0+100x60",
        },
        {30: []},
    ),
}


def promtool(*arguments: str) -> str:
    done = subprocess.run(["promtool", *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_what_is_generated_is_what_lies_here() -> None:
    for path, text in files().items():
        assert path.read_text() == text, f"run `python -m deploy.monitoring.generate`: {path}"


def test_the_rules_are_valid(tmp_path: Path) -> None:
    drill = tmp_path / "drill.yaml"
    drill.write_text(yaml.safe_dump({"groups": groups(DRILL)}))
    promtool("check", "rules", str(RULES), str(drill))


def test_every_alert_fires_and_ends_when_it_should(tmp_path: Path) -> None:
    tests = [_unit_test(name, case) for name, case in CASES.items()]
    path = tmp_path / "test.yaml"
    path.write_text(yaml.safe_dump({"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": tests}))
    promtool("test", "rules", str(path))
    fired = {alert.split()[0] for case in CASES.values() for alerts in case.fires.values() for alert in alerts}
    assert fired == ALERTS
    quiet = {alert for alert in ALERTS if any(_begins_and_ends(case, alert) for case in CASES.values())}
    # Burns end by time alone: the windows move on.
    assert ALERTS - quiet <= {"CarillonAbsent", "CarillonLatencyBurn", "CarillonLossBurn", "CarillonAgeBurn"}


def _begins_and_ends(case: Case, alert: str) -> bool:
    fires = [any(one.split()[0] == alert for one in case.fires[minute]) for minute in sorted(case.fires)]
    return re.search(r"\.x+\.", "".join("x" if one else "." for one in fires)) is not None


def _unit_test(name: str, case: Case) -> dict[str, Any]:
    series = {f"up{{{AT}}}": case.up, **case.series}
    by = 'sum by (alertname, severity, window) (ALERTS{alertstate="firing"}) > bool 0'
    return {
        "name": name,
        "interval": "1m",
        "input_series": [{"series": key, "values": values} for key, values in series.items()],
        "promql_expr_test": [
            {
                "expr": by,
                "eval_time": f"{minute}m",
                "exp_samples": [{"labels": _labels(alert), "value": 1} for alert in alerts],
            }
            for minute, alerts in case.fires.items()
        ],
    }


def _labels(alert: str) -> str:
    name, severity, *window = alert.split()
    labels = f'alertname="{name}",severity="{severity}"'
    return f'{{{labels},window="{window[0]}"}}' if window else f"{{{labels}}}"


def expressions() -> list[tuple[str, str]]:
    found = [(rule.get("alert") or rule["record"], rule["expr"]) for group in groups(PRODUCTION) for rule in group["rules"]]
    made = dashboard()
    for panel in made["panels"]:
        found += [(panel["title"], target["expr"]) for target in panel.get("targets", [])]
    found += [(annotation["name"], annotation["expr"]) for annotation in made["annotations"]["list"]]
    for variable in made["templating"]["list"]:
        if variable["type"] == "query":
            found.append((variable["name"], re.search(r"\((.*),", variable["query"]["query"])[1]))
    return found


@pytest.mark.parametrize(("place", "expr"), expressions())
def test_every_expression_is_of_series_that_workers_export(place: str, expr: str) -> None:
    records = {rule["record"] for group in groups(PRODUCTION) for rule in group["rules"] if "record" in rule}
    assert unknown_series(expr, EXPORTED, records) == []


@pytest.mark.parametrize(
    "expr",
    [
        "sum(carillon_kafka_lagg_records)",
        'carillon_breaker_state{scop="endpoint"}',
        "sum by (partition) (carillon_kafka_lag_records)",
        "carillon:lag_hours",
        "rate(carillon_push_latency_seconds[5m])",
    ],
)
def test_a_series_or_label_that_is_not_exported_is_found(expr: str) -> None:
    assert unknown_series(expr, EXPORTED, {"carillon:lag_seconds"}) != []


def test_the_dashboard_is_well_formed(tmp_path: Path) -> None:
    made = dashboard()
    panels = made["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    assert len({panel["title"] for panel in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        place = panel["gridPos"]
        cells = {(x, y) for x in range(place["x"], place["x"] + place["w"]) for y in range(place["y"], place["y"] + place["h"])}
        assert place["x"] + place["w"] <= 24 and not cells & taken, panel["title"]
        taken |= cells
        assert panel["type"] == "row" or panel["targets"]
    rules = [
        {"record": "panel", "expr": expr.replace("$__rate_interval", "1m").replace("$job", "j").replace("$instance", "i")}
        for _, expr in expressions()
    ]
    # One group each: promtool finds equal ones remarkable.
    path = tmp_path / "panels.yaml"
    path.write_text(yaml.safe_dump({"groups": [{"name": f"g{i}", "rules": [rule]} for i, rule in enumerate(rules)]}))
    promtool("check", "rules", "--lint=none", str(path))


def test_every_alert_has_a_runbook_and_every_runbook_an_alert() -> None:
    text = (TOP / "docs/runbooks.md").read_text()
    headings = re.findall(r"^### (Carillon\w+)$", text, re.M)
    assert sorted(headings) == sorted(ALERTS)
    for group in groups(PRODUCTION):
        for rule in (rule for rule in group["rules"] if "alert" in rule):
            assert rule["annotations"]["runbook_url"] == f"docs/runbooks.md#{rule['alert'].lower()}"
