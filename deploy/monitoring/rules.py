# SPDX-License-Identifier: Apache-2.0
"""Every recording rule and alert: the source of carillon.rules.yaml, of the PrometheusRule and of the drill's rules.

Expressions use the worker's present metrics (metrics.txt), summed over workers, so they are valid for one and for many.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from deploy.monitoring.terms import Terms

# Workers of one installation. An absent label is the same as an empty one.
BY = "job, namespace"
INSTANCE = "job, namespace, instance"
JOB = 'job="carillon"'
DAY_S = 86_400

Rule = dict[str, Any]


@dataclass(frozen=True)
class Objective:
    """The promised share of good events over 28 days."""

    name: str
    # Allowed share of bad events.
    budget: float
    # Share of bad events within a window, and number of events; None: time itself is counted.
    bad: Callable[[Terms, str], str]
    total: str | None
    what: str


@dataclass(frozen=True)
class Alert:
    name: str
    # page: now; ticket: within the working day.
    severity: str
    expr: str
    # How long the condition must last; empty: fires at once.
    holds: str
    summary: str
    description: str

    @property
    def runbook(self) -> str:
        return f"docs/runbooks.md#{self.name.lower()}"


WATCHED = f"max by ({BY}) (up{{{JOB}}}) == 1"
# A count over so much time reads too many samples.
LONG = {"6h", "1d", "3d"}


def began(series: str, terms: Terms, window: str) -> str:
    """Series that began within the window: their first value is an increase, which `increase` misses.

    A counter that is as old as Prometheus' knowledge of its worker has not begun, unless the worker has.
    """
    d = terms.d(window)
    started = f"process_start_time_seconds > time() - {terms.seconds_of(window)}"
    if window in LONG:
        return f"(({series} unless {series} offset {d}) and on ({INSTANCE}) (up{{{JOB}}} offset {d} or {started}))"
    seen = f"max by ({INSTANCE}) (sum_over_time(up{{{JOB}}}[{d}]))"
    later = f"count_over_time({series}[{d}]) < on ({INSTANCE}) group_left () {seen}"
    return f"(({series} unless {series} offset {d}) and (({later}) or {series} and on ({INSTANCE}) ({started})))"


def gained(series: str, terms: Terms, window: str) -> str:
    """Increase of a counter within the window, also of a series that began in it."""
    return f"(increase({series}[{terms.d(window)}]) > 0 or {began(series, terms, window)} or 0 * {series})"


def _sum(series: str, terms: Terms, window: str) -> str:
    """Sum over all workers; 0 before the first count."""
    return f"(sum by ({BY}) {gained(series, terms, window)} or 0 * sum by ({BY}) (carillon_events_settled_total))"


def _loss(terms: Terms, window: str) -> str:
    expired, dead, ended = (_sum(series, terms, window) for series in (EXPIRED, DEAD, ENDED))
    return f"({expired} + {dead}) / ({ended} + {dead} > 0)"


ENDED = "carillon_decisions_total"
EXPIRED = 'carillon_decisions_total{verdict="expired"}'
DEAD = "carillon_dlq_records_total"

# S1, S2, S3.
OBJECTIVES = [
    Objective(
        "latency",
        0.01,
        lambda terms, window: (
            f'1 - sum by ({BY}) (rate(carillon_event_end_to_end_seconds_bucket{{le="2"}}[{terms.d(window)}]))'
            f" / sum by ({BY}) (rate(carillon_event_end_to_end_seconds_count[{terms.d(window)}]))"
        ),
        f"sum by ({BY}) (increase(carillon_event_end_to_end_seconds_count[WINDOW]))",
        "pushes that APNs accepted later than 2 s after Kafka had the event",
    ),
    Objective(
        "loss",
        0.001,
        _loss,
        f"sum by ({BY}) (increase(carillon_decisions_total[WINDOW]))",
        "outcomes that are `expired`, and dead letters",
    ),
    Objective(
        "age",
        0.001,
        lambda terms, window: f"avg_over_time(carillon:oldest_unsettled_late[{terms.d(window)}])",
        None,
        "time in which the oldest unsettled record was older than 30 s",
    ),
]

# Speed of spending the budget (1: evenly), the two windows, and the severity.
# Steps that show how much of a long window Prometheus has watched.
STEPS = {"1h": "1m", "6h": "5m", "3d": "30m"}
BURNS = [(14.4, "1h", "5m", "page"), (6, "6h", "30m", "page"), (1, "3d", "6h", "ticket")]


def came_up(series: str, terms: Terms, window: str) -> str:
    """A counter rose within the window, or its series began in it, which `increase` does not see."""
    return f"increase({series}[{terms.d(window)}]) > 0 or {began(series, terms, window)} > 0"


def objective_rules(terms: Terms) -> list[Rule]:
    late = f"max by ({BY}) (carillon_watermark_age_seconds) > bool {terms.s(30):g}"
    rules: list[Rule] = [{"record": "carillon:oldest_unsettled_late", "expr": late}]
    windows = sorted({window for burn in BURNS for window in burn[1:3]}, key=_minutes)
    for objective in OBJECTIVES:
        for window in windows:
            expr = objective.bad(terms, window)
            rules.append({"record": f"carillon:{objective.name}_bad:ratio_rate{window}", "expr": expr})
    for window, step in STEPS.items():
        expr = f"clamp_max(count_over_time(({WATCHED})[{terms.d(window)}:{terms.d(step)}]) / {terms.steps(window, step):g}, 1)"
        rules.append({"record": f"carillon:watched:ratio{window}", "expr": expr})
    return rules


def _minutes(window: str) -> int:
    return int(window[:-1]) * {"m": 1, "h": 60, "d": 1440}[window[-1]]


def burn_rules(terms: Terms) -> list[Rule]:
    rules = []
    for objective in OBJECTIVES:
        name = f"Carillon{objective.name.capitalize()}Burn"
        series = f"carillon:{objective.name}_bad:ratio_rate"
        for factor, long, short, severity in BURNS:
            bound = f"{factor:g} * {objective.budget:g}"
            # Bad time in which nobody watched spent nothing: at a beginning a few seconds would pass for an hour.
            expr = f"{series}{long} * carillon:watched:ratio{long} > {bound} and {series}{short} > {bound}"
            if objective.total is not None:
                expr += f" and {objective.total.replace('WINDOW', terms.d(long))} >= {terms.n(100)}"
            description = (
                f"In the last {long}, {{{{ $value | humanizePercentage }}}} was {objective.what}; "
                f"{objective.budget:.1%} is allowed. At this speed the budget of 28 days lasts {28 / factor:.1f} days."
            )
            rules.append(
                _rule(Alert(name, severity, expr, "", f"{objective.what}: {factor:g} times the budget", description))
                | {"labels": {"severity": severity, "window": long}}
            )
    return rules


def recorded(terms: Terms) -> list[Rule]:
    """Rules that scaling, alerts and the dashboard share."""
    return [
        {"record": "carillon:lag_records", "expr": f"sum by ({BY}) (carillon_kafka_lag_records)"},
        {"record": "carillon:lag_seconds", "expr": f"max by ({BY}) (carillon_kafka_lag_seconds)"},
        {
            "record": "carillon:redis_command_seconds:p99",
            "expr": f"histogram_quantile(0.99, sum by ({BY}, le) "
            f"(rate(carillon_redis_command_seconds_bucket[{terms.d('5m')}])))",
        },
    ]


def alerts(terms: Terms) -> list[Alert]:
    return [*process_alerts(terms), *kafka_alerts(terms), *apns_alerts(terms), *redis_alerts(terms)]


def process_alerts(terms: Terms) -> list[Alert]:
    d = terms.d
    return [
        Alert(
            "CarillonAbsent",
            "page",
            f"absent(up{{{JOB}}} == 1)",
            d("2m"),
            "No worker answers Prometheus",
            "No known worker reads im.events. Records wait in Kafka; nothing is lost before its retention ends.",
        ),
        Alert(
            "CarillonDown",
            "ticket",
            f"up{{{JOB}}} == 0",
            d("5m"),
            "{{ $labels.instance }} does not answer Prometheus",
            "Its partitions move to the other workers when its session ends.",
        ),
        Alert(
            "CarillonCredentialExpiry",
            "ticket",
            f"carillon_credential_expiry_timestamp_seconds - time() < {14 * DAY_S}",
            "",
            "The certificate {{ $labels.credential }} of {{ $labels.app }} expires in {{ $value | humanizeDuration }}",
            "After that APNs refuses every push of the app. A renewed file takes over without a restart.",
        ),
        Alert(
            "CarillonCredentialExpiring",
            "page",
            f"carillon_credential_expiry_timestamp_seconds - time() < {2 * DAY_S}",
            "",
            "The certificate {{ $labels.credential }} of {{ $labels.app }} expires in {{ $value | humanizeDuration }}",
            "After that APNs refuses every push of the app. A renewed file takes over without a restart.",
        ),
        Alert(
            "CarillonCredentialRefused",
            "ticket",
            "carillon_credential_replacement_refused == 1",
            "",
            "{{ $labels.instance }} does not use the changed credential {{ $labels.credential }} of {{ $labels.app }}",
            "The old one stays in use. /readyz and the log have the cause.",
        ),
        Alert(
            "CarillonReloadRefused",
            "ticket",
            f'increase(carillon_config_reloads_total{{result="refused"}}[{d("15m")}]) > 0',
            "",
            "{{ $labels.instance }} could not apply a changed configuration",
            "The old one stays in effect. The log has the cause.",
        ),
        Alert(
            "CarillonDeadLetters",
            "ticket",
            came_up("carillon_dlq_records_total", terms, "15m"),
            "",
            "Records go to the dead-letter topic: {{ $labels.reason }}",
            "Their header carillon-error has the error and its place. Usually a producer changed.",
        ),
        Alert(
            "CarillonLogLost",
            "ticket",
            came_up("carillon_log_lines_dropped_total", terms, "10m"),
            "",
            "{{ $labels.instance }} cannot write its log",
            "The disk is full, or the reader of standard error stopped. The worker continues.",
        ),
        Alert(
            "CarillonSeriesBudget",
            "ticket",
            "carillon_metrics_series > 0.9 * 3000 or carillon_metrics_series_refused_total > 0",
            d("5m"),
            "{{ $labels.instance }} is near or over its limit of 3000 time series",
            "Values beyond the limit are counted and not shown: other alerts may miss them.",
        ),
        Alert(
            "CarillonClockOff",
            "ticket",
            "abs(carillon_clock_skew_seconds) > 60",
            d("2m"),
            "{{ $labels.instance }}: its clock and that of {{ $labels.reference }} differ by {{ $value | humanizeDuration }}",
            "Above 300 s the worker stops reading, so that nothing expires by a wrong clock.",
        ),
        Alert(
            "CarillonClockWrong",
            "page",
            'abs(carillon_clock_skew_seconds{reference="redis"}) > 300',
            d("1m"),
            "{{ $labels.instance }} reads nothing: its clock and that of Redis differ by {{ $value | humanizeDuration }}",
            "Records wait in Kafka. Reading goes on by itself when the clocks agree.",
        ),
        Alert(
            "CarillonLoopStuck",
            "page",
            'carillon_ready{part="loop"} == 0',
            d("1m"),
            "{{ $labels.instance }}: a shard does not turn",
            "It reads, pushes and commits nothing. After ten seconds /livez is 503, so that a supervisor restarts it.",
        ),
        Alert(
            "CarillonDescriptorsLow",
            "ticket",
            f"process_open_fds{{{JOB}}} / process_max_fds{{{JOB}}} > 0.8",
            d("10m"),
            "{{ $labels.instance }} has {{ $value | humanizePercentage }} of its file descriptors open",
            "The last ones are reserved for Redis, Kafka and APNs; operators are refused first.",
        ),
    ]


def kafka_alerts(terms: Terms) -> list[Alert]:
    d, s = terms.d, terms.s
    return [
        Alert(
            "CarillonDataGap",
            "page",
            f"increase(carillon_kafka_gap_records_total[{d('10m')}]) > 0",
            "",
            '{{ $labels.instance }} passed over offsets: {{ $value | printf "%.0f" }} records',
            "Kafka's retention deleted them before they were read. They are lost here.",
        ),
        Alert(
            "CarillonPartitionRestarted",
            "ticket",
            f"increase(carillon_kafka_partition_restarts_total[{d('10m')}]) > 0",
            "",
            "{{ $labels.instance }}: a partition began again at a lower offset",
            "Its topic was created again, or its log lost its end. All of it is read; ended work is not repeated.",
        ),
        Alert(
            "CarillonWatermarkStuck",
            "page",
            f"carillon_watermark_age_seconds > {s(120):g} and carillon_pending_events > 0",
            d("1m"),
            "{{ $labels.instance }}: the oldest unsettled record waits for {{ $value | humanizeDuration }}",
            "No offset behind it is committed. Coalescing (coalesce.window_s) can hold a record for its window.",
        ),
        Alert(
            "CarillonLagGrowing",
            "ticket",
            f"carillon:lag_seconds > {s(60):g} and deriv(carillon:lag_seconds[{d('10m')}]) > 0",
            d("5m"),
            "The oldest record waiting in Kafka is {{ $value | humanizeDuration }} old, and its age grows",
            "More records arrive than the workers handle.",
        ),
        Alert(
            "CarillonNoAssignment",
            "page",
            f"sum by ({BY}) (carillon_kafka_assigned_partitions) == 0",
            d("5m"),
            "No worker has a partition",
            "Kafka is away, the group does not settle, or the topics are missing.",
        ),
        Alert(
            "CarillonRebalanceStorm",
            "ticket",
            # Minutes before the first sample count as calm.
            f"sum_over_time((sum by ({BY}) (increase(carillon_kafka_rebalances_total[{d('2m')}])) > bool 0)"
            f"[{d('15m')}:{d('1m')}]) / {terms.steps('15m', '1m'):g} > 0.65",
            "",
            "The consumer group was rebalancing in {{ $value | humanizePercentage }} of the last 15 minutes",
            "Each rebalance stops partitions, and work that is not in flight starts again. A rollout takes less time.",
        ),
        Alert(
            "CarillonCommitsFailing",
            "ticket",
            f'increase(carillon_kafka_commits_total{{result="failed"}}[{d("10m")}])'
            f' > ignoring (result) increase(carillon_kafka_commits_total{{result="ok"}}[{d("10m")}])',
            "",
            "{{ $labels.instance }}: most commits of offsets fail",
            "Settled records would be read again after a restart; marks prevent repeats.",
        ),
        Alert(
            "CarillonRecordsRefused",
            "ticket",
            f"increase(carillon_record_failures_total[{d('10m')}]) > 0",
            "",
            "{{ $labels.instance }}: Kafka refuses the worker's records",
            "Outcomes are sent again until Kafka accepts them; until then their events are not settled.",
        ),
    ]


def apns_alerts(terms: Terms) -> list[Alert]:
    d, n = terms.d, terms.n
    of = f"{BY}, app, env, credential"
    where = "{{ $labels.app }}, {{ $labels.env }}, {{ $labels.credential }}"
    removed = f"sum by ({BY}, app) {gained('carillon_tokens_invalidated_total', terms, '15m')}"
    kept = f"sum by ({BY}, app) {gained('carillon_token_removals_withheld_total', terms, '15m')}"
    dead = f"({removed} + ({kept} or 0 * {removed}))"
    tried = f"sum by ({BY}, app) (increase(carillon_push_attempts_total[{d('15m')}]))"
    answers = f"sum by ({of}) (increase(carillon_push_attempts_total[{d('10m')}]))"
    unknown = f'sum by ({of}) (increase(carillon_push_attempts_total{{result="ambiguous"}}[{d("10m")}]))'
    asked = f"sum by ({of}) (increase(carillon_push_attempts_total[{d('5m')}]))"
    yes = f'sum by ({of}) (increase(carillon_push_attempts_total{{result="accepted"}}[{d("5m")}]))'
    goaways = f"sum by ({BY}, app, env) {gained('carillon_apns_goaway_total', terms, '10m')}"
    usual = f"sum by ({BY}, app, env) (increase(carillon_apns_goaway_total[{d('1d')}]))"
    return [
        Alert(
            "CarillonBreakerOpen",
            "page",
            # 1: it asks with one push, and is not over it.
            'carillon_breaker_state{scope="endpoint"} > 0',
            d("2m"),
            f"APNs reports that it is unavailable, for {where}",
            "Its pushes wait in carillon.parked until APNs accepts a test push. Other apps continue.",
        ),
        Alert(
            "CarillonApnsUnreachable",
            "page",
            f'sum by ({of}) (carillon_apns_connections{{state="ready"}}) == 0'
            f" and sum by ({of}) (increase(carillon_apns_connect_failures_total[{d('5m')}])) > 0",
            d("2m"),
            f"No connection to APNs is possible for {where}",
            "Its pushes wait in carillon.parked until a connection is open. Other apps continue.",
        ),
        Alert(
            "CarillonNoStreams",
            "page",
            f"sum by ({of}) (carillon_apns_streams_limit) == 0"
            f' and sum by ({of}) (carillon_apns_connections{{state="ready"}}) > 0',
            d("2m"),
            f"APNs, or what answers in its place, allows no stream on the connections of {where}",
            "Its pushes wait in carillon.parked. Connections are replaced until one allows streams. Other apps continue.",
        ),
        Alert(
            "CarillonAuthRejected",
            "page",
            "carillon_apns_credential_paused == 1",
            d("1m"),
            f"APNs refuses the credential of {where}",
            "Its pushes wait in carillon.parked; the credential is tried again every minute.",
        ),
        Alert(
            "CarillonNothingAccepted",
            "page",
            f"{asked} >= {n(20)} unless {yes} > 0",
            d("2m"),
            f"APNs has answered and accepted no push of {where} for five minutes",
            "Check key, topic, environment, and APNs' `reason` in the results.",
        ),
        Alert(
            "CarillonMisconfigured",
            "ticket",
            came_up("carillon_apns_alarms_total", terms, "15m"),
            "",
            f"APNs rejects pushes of {where}: {{{{ $labels.reason }}}}",
            "The cause is the configuration or the program, not a device.",
        ),
        Alert(
            "CarillonDeadConnections",
            "ticket",
            f"increase(carillon_apns_dead_connections_total[{d('10m')}]) > 3",
            "",
            f"Connections to APNs stop answering: {where}",
            "Each is replaced, and its pushes in flight are sent again. Possible cause: a firewall that forgets connections.",
        ),
        Alert(
            "CarillonGoawayStorm",
            "ticket",
            # The usual number is that of the day before, as far as it was watched, in windows of 10 minutes.
            f"{goaways} >= {n(20)} and {goaways} > 5 * {usual} / on ({BY}) group_left ()"
            f" count_over_time(({WATCHED})[{d('1d')}:{d('10m')}])",
            "",
            'APNs ends connections of {{ $labels.app }}, {{ $labels.env }}: {{ $value | printf "%.0f" }} in ten minutes',
            "carillon_apns_goaway_total has the reason.",
        ),
        Alert(
            "CarillonAmbiguousHigh",
            "ticket",
            f"{unknown} / {answers} > 0.005 and {answers} >= {n(100)}",
            d("5m"),
            f"{{{{ $value | humanizePercentage }}}} of the pushes of {where} end without an answer",
            "Each is sent again with the same apns-id: users may see it twice.",
        ),
        Alert(
            "CarillonRetryBudgetEmpty",
            "ticket",
            f"increase(carillon_retries_denied_total[{d('5m')}]) > 0",
            d("5m"),
            f"More pushes of {where} need another try than the budget allows",
            "They wait. APNs answers 429 or 5xx to many pushes.",
        ),
        Alert(
            "CarillonMassInvalidation",
            "page",
            f"{dead} / {tried} > 0.05 and {dead} >= {n(50)}",
            "",
            "APNs called {{ $value | humanizePercentage }} of the tried tokens of {{ $labels.app }} dead",
            "Usual cause: a wrong environment, topic or key. `carillon tokens restore` restores removed tokens.",
        ),
        Alert(
            "CarillonRemovalBrake",
            "page",
            "carillon_token_removal_brake == 1",
            "",
            "Too many tokens of {{ $labels.app }} are dead by {{ $labels.reason }}: the brake keeps them",
            "Usual cause of a spike: a wrong topic, environment or key.",
        ),
    ]


def redis_alerts(terms: Terms) -> list[Alert]:
    d = terms.d
    return [
        Alert(
            "CarillonRedisDown",
            "page",
            'carillon_ready{part="redis"} == 0',
            d("1m"),
            "{{ $labels.instance }} cannot use Redis",
            "It is away, refuses the login or a command, refuses writes, or lost its tokens: /readyz has the cause.",
        ),
        Alert(
            "CarillonRedisDegraded",
            "ticket",
            "carillon:redis_command_seconds:p99 > 0.1",
            d("5m"),
            "The slowest percent of Redis' replies takes {{ $value | humanizeDuration }}",
            "Every push waits for Redis three times (reads, claim and mark).",
        ),
        Alert(
            "CarillonRedisRefusesWrites",
            "page",
            f"increase(carillon_redis_unclaimed_total[{d('5m')}]) > 0",
            "",
            "{{ $labels.instance }}: Redis answers and refuses writes",
            "Pushes go without a badge and their claims are owed in carillon.parked. Binds, reads and acks wait.",
        ),
        Alert(
            "CarillonTokenLoss",
            "page",
            "carillon_token_loss == 1",
            "",
            "Redis seems to have lost its tokens",
            "Reading has stopped, so that no user with a lost token ends as no_token. Restore the keys, or accept the loss.",
        ),
        Alert(
            "CarillonRedisOlderData",
            "page",
            f"increase(carillon_redis_rollbacks_total[{d('5m')}]) > 0 or carillon_redis_older_data == 1",
            "",
            "Redis returned with older data",
            "A restored snapshot or a replica that was cut off. Workers apply user state since then again, then go on. Badges "
            "and duplicate marks since then are lost.",
        ),
    ]


def _rule(alert: Alert) -> Rule:
    rule: Rule = {"alert": alert.name, "expr": alert.expr}
    if alert.holds:
        rule["for"] = alert.holds
    rule["labels"] = {"severity": alert.severity}
    rule["annotations"] = {
        "summary": alert.summary,
        "description": alert.description,
        "runbook_url": alert.runbook,
    }
    return rule


def groups(terms: Terms) -> list[dict[str, Any]]:
    """As Prometheus' rule files have them."""
    interval = terms.interval
    return [
        {"name": "carillon-recorded", "interval": interval, "rules": recorded(terms)},
        {"name": "carillon-objectives", "interval": interval, "rules": objective_rules(terms)},
        {"name": "carillon-burn", "interval": interval, "rules": burn_rules(terms)},
        {"name": "carillon-causes", "interval": interval, "rules": [_rule(alert) for alert in alerts(terms)]},
    ]
