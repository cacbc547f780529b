# SPDX-License-Identifier: Apache-2.0
"""The Grafana dashboard: rows of panels, from health at a glance down to the process."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

# Of the job and, where one is chosen, the instance.
OF = 'job=~"$job",instance=~"$instance"'
RATE = "$__rate_interval"
DATASOURCE = {"type": "prometheus", "uid": "$datasource"}


@dataclass(frozen=True)
class Panel:
    title: str
    # Expression and legend.
    targets: list[tuple[str, str]]
    unit: str = "short"
    kind: str = "timeseries"
    width: int = 8
    description: str = ""
    stacked: bool = False
    # Value from which on a colour shows.
    thresholds: list[tuple[float, str]] = field(default_factory=list)


def rate(metric: str, by: str, more: str = "") -> str:
    return f"sum by ({by}) (rate({metric}{{{OF}{more}}}[{RATE}]))"


def hour(metric: str, by: str, more: str = "") -> str:
    return f"sum by ({by}) (increase({metric}{{{OF}{more}}}[1h]))"


def total(metric: str, by: str, more: str = "") -> str:
    return f"sum by ({by}) ({metric}{{{OF}{more}}})"


def most(metric: str, by: str, more: str = "") -> str:
    return f"max by ({by}) ({metric}{{{OF}{more}}})"


def quantile(share: float, metric: str, by: str = "", more: str = "") -> str:
    labels = "le" + (f", {by}" if by else "")
    return f"histogram_quantile({share}, sum by ({labels}) (rate({metric}_bucket{{{OF}{more}}}[{RATE}])))"


APP = "app, env, credential"
NAMED_APP = "{{app}} {{env}} {{credential}}"
BAD = [(0, "green"), (1, "red")]

ROWS: list[tuple[str, list[Panel]]] = [
    (
        "Health",
        [
            Panel(
                "Workers",
                [('count(up{job=~"$job"} == 1)', "up"), ('count(up{job=~"$job"} == 0) or vector(0)', "down")],
                kind="stat",
                width=4,
                description="Workers that Prometheus reaches.",
            ),
            Panel(
                "Speed of spending the budget, last hour",
                [
                    ('carillon:latency_bad:ratio_rate1h{job=~"$job"} / 0.01', "later than 2 s"),
                    ('carillon:loss_bad:ratio_rate1h{job=~"$job"} / 0.001', "expired, dead letters"),
                    ('carillon:age_bad:ratio_rate1h{job=~"$job"} / 0.001', "oldest over 30 s"),
                ],
                kind="stat",
                width=8,
                thresholds=[(0, "green"), (1, "yellow"), (14.4, "red")],
                description="1: the error budget lasts exactly its 28 days. 14.4: two days.",
            ),
            Panel(
                "Trouble now",
                [
                    (f'count(carillon_breaker_state{{{OF},scope="endpoint"}} == 2) or vector(0)', "breakers open"),
                    (f"sum(carillon_apns_credential_paused{{{OF}}})", "credentials refused"),
                    (f"sum(carillon_token_removal_brake{{{OF}}}) or vector(0)", "removals braked"),
                    (f"max(carillon_token_loss{{{OF}}})", "tokens lost"),
                ],
                kind="stat",
                width=12,
                thresholds=BAD,
                description="Conditions that stop the pushes of an app, or reading.",
            ),
            Panel(
                "Oldest unsettled record",
                [(most("carillon_watermark_age_seconds", "instance"), "{{instance}}")],
                "s",
                description="No offset behind it is committed.",
            ),
            Panel(
                "What limits it",
                [(rate("carillon_backpressure_seconds_total", "cause"), "{{cause}}")],
                "percentunit",
                stacked=True,
                description="Share of time in which a limit delayed work, over all shards.",
            ),
            Panel(
                "From Kafka to APNs' acceptance",
                [
                    (quantile(0.5, "carillon_event_end_to_end_seconds"), "half"),
                    (quantile(0.99, "carillon_event_end_to_end_seconds"), "99 %"),
                    (quantile(0.99, "carillon_event_end_to_end_seconds", "lane"), "99 % {{lane}}"),
                ],
                "s",
            ),
        ],
    ),
    (
        "Statistics, the last hour",
        [
            Panel(
                "Outcomes in the last hour",
                [(hour("carillon_decisions_total", "app, verdict"), "{{app}} {{verdict}}")],
                description="Exact numbers by hour, task and template: `carillon stats`.",
            ),
            Panel(
                "Rejected and suppressed",
                [
                    (
                        hour("carillon_decisions_total", "verdict, reason", ',verdict=~"rejected|suppressed|expired"'),
                        "{{verdict}} {{reason}}",
                    )
                ],
                stacked=True,
            ),
            Panel(
                "Reports of devices",
                [
                    (hour("carillon_arrived_reports_total", "app"), "{{app}} arrived"),
                    (hour("carillon_open_reports_total", "app"), "{{app}} opened"),
                    (hour("carillon_open_reports_unchecked_total", "app"), "{{app}} opened, unchecked"),
                    (hour("carillon_stats_lost_total", "job"), "outcomes not counted"),
                ],
                description="The first report of each push and device.",
            ),
            Panel(
                "Answers of APNs, by credential",
                [(hour("carillon_push_attempts_total", f"{APP}, result"), NAMED_APP + " {{result}}")],
            ),
            Panel(
                "Accepted, by lane",
                [(hour("carillon_event_end_to_end_seconds_count", "lane"), "{{lane}}")],
                stacked=True,
            ),
        ],
    ),
    (
        "Flow",
        [
            Panel(
                "Records",
                [
                    (f"sum(rate(carillon_events_consumed_total{{{OF}}}[{RATE}]))", "read"),
                    (f"sum(rate(carillon_events_settled_total{{{OF}}}[{RATE}]))", "settled"),
                    (f"sum(rate(carillon_events_settled_before_total{{{OF}}}[{RATE}]))", "skipped: settled before"),
                ],
                "ops",
            ),
            Panel("Outcomes", [(rate("carillon_decisions_total", "verdict"), "{{verdict}}")], "ops", stacked=True),
            Panel(
                "What reached no device",
                [(rate("carillon_decisions_total", "reason", ',verdict!~"accepted|online"'), "{{reason}}")],
                "ops",
                stacked=True,
            ),
            Panel(
                "Open work",
                [
                    (f"sum(carillon_pending_events{{{OF}}})", "records"),
                    (f"sum(carillon_pending_recipients{{{OF}}})", "recipients"),
                    (f"sum(carillon_device_lane_waiting{{{OF}}})", "behind a push of the same device"),
                ],
            ),
            Panel(
                "Parked",
                [
                    (f"sum(rate(carillon_parked_total{{{OF}}}[{RATE}]))", "to carillon.parked"),
                    (f"sum(rate(carillon_parked_settled_total{{{OF}}}[{RATE}]))", "back from it"),
                ],
                "ops",
            ),
            Panel(
                "Long connection",
                [
                    (rate("carillon_deliveries_total", "app"), "{{app}} deliveries"),
                    (rate("carillon_delivery_ack_timeouts_total", "app"), "{{app}} without ack in time"),
                ],
                "ops",
            ),
            Panel(
                "Dead letters",
                [(rate("carillon_dlq_records_total", "reason"), "{{reason}}")],
                "ops",
                stacked=True,
            ),
            Panel(
                "User state",
                [(rate("carillon_user_state_total", "outcome"), "{{outcome}}")],
                "ops",
                stacked=True,
            ),
            Panel(
                "Duplicates and merged alerts",
                [
                    (f"sum(rate(carillon_duplicates_suppressed_total{{{OF}}}[{RATE}]))", "ended before"),
                    (rate("carillon_coalesced_total", "app"), "{{app}} included in a later push"),
                ],
                "ops",
            ),
        ],
    ),
    (
        "Kafka",
        [
            Panel(
                "Lag",
                [(most("carillon_kafka_lag_seconds", "topic"), "{{topic}}")],
                "s",
                description="Scaling follows this value.",
            ),
            Panel("Lag, records", [(total("carillon_kafka_lag_records", "topic"), "{{topic}}")]),
            Panel(
                "Partitions",
                [
                    (total("carillon_kafka_assigned_partitions", "instance"), "{{instance}} assigned"),
                    (total("carillon_kafka_paused_partitions", "instance"), "{{instance}} paused"),
                ],
            ),
            Panel("Commits", [(rate("carillon_kafka_commits_total", "result"), "{{result}}")], "ops"),
            Panel(
                "Rebalances",
                [
                    (f"sum(increase(carillon_kafka_rebalances_total{{{OF}}}[{RATE}]))", "revocations"),
                    (f"sum(increase(carillon_kafka_assignment_lost_total{{{OF}}}[{RATE}]))", "lost without notice"),
                    (f"sum(increase(carillon_kafka_partition_restarts_total{{{OF}}}[{RATE}]))", "new epochs"),
                ],
            ),
            Panel(
                "Must stay zero",
                [
                    (f"sum(increase(carillon_kafka_gap_records_total{{{OF}}}[{RATE}]))", "records lost"),
                    (f"sum(increase(carillon_record_failures_total{{{OF}}}[{RATE}]))", "records refused"),
                    (
                        f"sum(increase(carillon_kafka_producer_replacements_total{{{OF}}}[{RATE}]))",
                        "producers replaced",
                    ),
                ],
            ),
        ],
    ),
    (
        "APNs",
        [
            Panel("Answers", [(rate("carillon_push_attempts_total", "result"), "{{result}}")], "ops", stacked=True),
            Panel(
                "Latency",
                [(f"sum by (le) (rate(carillon_push_latency_seconds_bucket{{{OF}}}[{RATE}]))", "{{le}}")],
                "s",
                kind="heatmap",
                description="From writing a request to its answer.",
            ),
            Panel(
                "Connections",
                [(total("carillon_apns_connections", "app, env, state"), "{{app}} {{env}} {{state}}")],
                stacked=True,
            ),
            Panel(
                "Streams",
                [
                    (total("carillon_inflight_pushes", APP), f"{NAMED_APP} in flight"),
                    (total("carillon_apns_streams_limit", APP), f"{NAMED_APP} allowed"),
                ],
            ),
            Panel(
                "Waiting for a stream or another try",
                [(total("carillon_pending_pushes", APP), NAMED_APP)],
            ),
            Panel(
                "Oldest request without an answer",
                [(most("carillon_apns_oldest_stream_seconds", APP), NAMED_APP)],
                "s",
            ),
            Panel(
                "Connections that end",
                [
                    (rate("carillon_apns_goaway_total", "reason"), "GOAWAY {{reason}}"),
                    (f"sum(rate(carillon_apns_dead_connections_total{{{OF}}}[{RATE}]))", "no answer to PING"),
                    (f"sum(rate(carillon_apns_connect_failures_total{{{OF}}}[{RATE}]))", "before any push"),
                    (rate("carillon_apns_suspicions_total", "reason"), "did badly: {{reason}}"),
                    (f"sum(rate(carillon_apns_reconnects_total{{{OF}}}[{RATE}]))", "connects begun"),
                ],
                "ops",
            ),
            Panel(
                "Tokens removed and kept",
                [
                    (rate("carillon_tokens_invalidated_total", "app, reason"), "{{app}} {{reason}} removed"),
                    (rate("carillon_token_removals_withheld_total", "app, reason"), "{{app}} {{reason}} kept"),
                    (total("carillon_apns_held_tokens", "app, env"), "{{app}} {{env}} left alone for a while"),
                ],
            ),
            Panel(
                "Credentials",
                [
                    (most("carillon_jwt_age_seconds", APP), f"{NAMED_APP} age of the provider token"),
                    (most("carillon_apns_clock_skew_seconds", APP), f"{NAMED_APP} clock skew"),
                    (most("carillon_clock_skew_seconds", "instance, reference"), "{{instance}} ahead of {{reference}}"),
                    (
                        f"min by (app, credential) (carillon_credential_expiry_timestamp_seconds{{{OF}}}) - time()",
                        "{{app}} {{credential}} certificate left",
                    ),
                ],
                "s",
            ),
        ],
    ),
    (
        "Limiter, retries, breakers",
        [
            Panel(
                "Limit of pushes in flight",
                [(total("carillon_concurrency_limit", APP), NAMED_APP)],
            ),
            Panel("Limiter decreases", [(rate("carillon_limiter_decreases_total", APP), NAMED_APP)], "ops"),
            Panel(
                "Breakers",
                [(most("carillon_breaker_state", f"{APP}, scope"), f"{NAMED_APP} {{{{scope}}}}")],
                description="0 closed, 1 probing with one push, 2 open.",
                thresholds=BAD,
            ),
            Panel("Retries", [(rate("carillon_retries_total", "reason"), "{{reason}}")], "ops", stacked=True),
            Panel(
                "Retries left",
                [(total("carillon_retry_budget_tokens", "app, env, lane"), "{{app}} {{env}} {{lane}}")],
            ),
            Panel(
                "Sent again, or delayed by the budget",
                [
                    (rate("carillon_ambiguous_resends_total", "app"), "{{app}} first try may have arrived"),
                    (rate("carillon_retries_denied_total", "app"), "{{app}} budget empty"),
                ],
                "ops",
            ),
        ],
    ),
    (
        "Redis",
        [
            Panel(
                "Time to reply, 99 %",
                [(quantile(0.99, "carillon_redis_command_seconds", "op"), "{{op}}")],
                "s",
            ),
            Panel("Commands", [(rate("carillon_redis_command_seconds_count", "op"), "{{op}}")], "ops", stacked=True),
            Panel("Waiting for a reply", [(total("carillon_redis_pipeline_depth", "instance"), "{{instance}}")]),
            Panel(
                "Errors",
                [
                    (rate("carillon_redis_errors_total", "code"), "{{code}}"),
                    (f"sum(rate(carillon_redis_step_retries_total{{{OF}}}[{RATE}]))", "steps taken again"),
                    (f"sum(rate(carillon_redis_connects_total{{{OF}}}[{RATE}]))", "connects"),
                ],
                "ops",
            ),
            Panel(
                "Refuses writes",
                [
                    (f"sum(rate(carillon_redis_unclaimed_total{{{OF}}}[{RATE}]))", "pushed without a badge"),
                    (f"sum(rate(carillon_redis_owed_claims_total{{{OF}}}[{RATE}]))", "claims owed"),
                ],
                "ops",
            ),
            Panel("Keys", [(f"max(carillon_redis_keys{{{OF}}})", "keys")]),
            Panel(
                "Cluster: time to reply by node, 99 %",
                [(quantile(0.99, "carillon_redis_command_seconds", "node", ',node!=""'), "{{node}}")],
                "s",
                description="For a Redis Cluster only; also the next two panels.",
            ),
            Panel(
                "Cluster: waiting for a reply by node",
                [(total("carillon_redis_pipeline_depth", "node", ',node!=""'), "{{node}}")],
                description="A node far above the others is slow, or has the busiest users.",
            ),
            Panel(
                "Cluster: errors and redirects by node",
                [
                    (rate("carillon_redis_errors_total", "node, code", ',node!=""'), "{{node}} {{code}}"),
                    (rate("carillon_redis_redirects_total", "node, code"), "{{node}} {{code}}, redirected or deferred"),
                ],
                "ops",
                description="moved, ask, try_again: slots move, or a replica took over. cluster_down: slots without a master.",
            ),
        ],
    ),
    (
        "Process",
        [
            Panel(
                "CPU",
                [(rate("process_cpu_seconds_total", "instance"), "{{instance}}")],
                "percentunit",
                description="1 is one core.",
            ),
            Panel("Memory", [(total("process_resident_memory_bytes", "instance"), "{{instance}}")], "bytes"),
            Panel(
                "File descriptors",
                [
                    (total("process_open_fds", "instance"), "{{instance}} open"),
                    (total("process_max_fds", "instance"), "{{instance}} limit"),
                ],
            ),
            Panel(
                "Longest turn of a loop",
                [(most("carillon_loop_lag_seconds", "instance"), "{{instance}}")],
                "s",
            ),
            Panel(
                "Time series",
                [(total("carillon_metrics_series", "instance"), "{{instance}}")],
                thresholds=[(0, "green"), (2700, "red")],
            ),
            Panel(
                "Weak links",
                [(f"carillon_weak_links{{{OF}}}", "{{instance}} {{link}}: {{waiver}}")],
                kind="table",
                description="Links in clear or without proof of the peer, allowed by a waiver.",
            ),
        ],
    ),
]


def _variables() -> list[dict[str, Any]]:
    def query(name: str, label: str, expr: str, all_values: bool) -> dict[str, Any]:
        return {
            "name": name,
            "label": label,
            "type": "query",
            "datasource": DATASOURCE,
            "query": {"query": expr, "refId": name},
            "refresh": 2,
            "includeAll": all_values,
            "multi": all_values,
            "sort": 1,
        }

    return [
        {"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus"},
        query("job", "Job", "label_values(carillon_events_consumed_total, job)", False),
        query("instance", "Worker", 'label_values(carillon_events_consumed_total{job=~"$job"}, instance)', True),
    ]


def _annotation(name: str, colour: str, expr: str, text: str) -> dict[str, Any]:
    return {
        "name": name,
        "datasource": DATASOURCE,
        "enable": True,
        "iconColor": colour,
        "expr": expr,
        "titleFormat": name,
        "textFormat": text,
        "step": "60s",
    }


ANNOTATIONS = [
    _annotation("Start", "blue", 'changes(process_start_time_seconds{job=~"$job"}[2m]) > 0', "{{instance}}"),
    _annotation("Rebalance", "purple", 'increase(carillon_kafka_rebalances_total{job=~"$job"}[2m]) > 0', "{{instance}}"),
    _annotation("Alert", "red", 'ALERTS{alertname=~"Carillon.*",alertstate="firing"}', "{{alertname}}"),
]


def _panel(panel: Panel, number: int, x: int, y: int, height: int) -> dict[str, Any]:
    defaults: dict[str, Any] = {"unit": panel.unit, "min": 0}
    if panel.kind == "timeseries":
        defaults["custom"] = {"fillOpacity": 20 if panel.stacked else 0, "showPoints": "never"}
        if panel.stacked:
            defaults["custom"]["stacking"] = {"mode": "normal"}
    if panel.thresholds:
        steps = [{"value": value or None, "color": colour} for value, colour in panel.thresholds]
        defaults["thresholds"] = {"mode": "absolute", "steps": steps}
    instant = panel.kind in ("stat", "table")
    return {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.description,
        "datasource": DATASOURCE,
        "gridPos": {"x": x, "y": y, "w": panel.width, "h": height},
        "fieldConfig": {"defaults": defaults, "overrides": []},
        "options": {"legend": {"displayMode": "list", "placement": "bottom"}} if panel.kind == "timeseries" else {},
        "targets": [
            {
                "refId": chr(ord("A") + index),
                "datasource": DATASOURCE,
                "expr": expr,
                "legendFormat": legend,
                "instant": instant,
                "range": not instant,
            }
            | ({"format": "heatmap"} if panel.kind == "heatmap" else {})
            for index, (expr, legend) in enumerate(panel.targets)
        ],
    }


def dashboard() -> dict[str, Any]:
    """As Grafana imports it."""
    panels: list[dict[str, Any]] = []
    y = 0
    for title, row in ROWS:
        heading = {"id": len(panels) + 1, "type": "row", "title": title, "collapsed": False, "panels": []}
        panels.append(heading | {"gridPos": {"x": 0, "y": y, "w": 24, "h": 1}})
        y += 1
        x = height = 0
        for panel in row:
            if x + panel.width > 24:
                x, y = 0, y + height
            height = 5 if panel.kind == "stat" else 8
            panels.append(_panel(panel, len(panels) + 1, x, y, height))
            x += panel.width
        y += height
    return {
        "uid": "carillon",
        "title": "Carillon",
        "tags": ["carillon"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "timezone": "browser",
        "graphTooltip": 1,
        "templating": {"list": _variables()},
        "annotations": {"list": ANNOTATIONS},
        "panels": panels,
    }
