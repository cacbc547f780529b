// SPDX-License-Identifier: Apache-2.0
/// Names of the metrics that `carillon top` and the operator's page read. A metric that a worker lacks is left out of
/// the view.
public enum FleetMetrics {
    public static let consumed = "carillon_events_consumed_total"
    public static let settled = "carillon_events_settled_total"
    public static let decisions = "carillon_decisions_total"
    public static let attempts = "carillon_push_attempts_total"
    public static let deliveries = "carillon_deliveries_total"
    public static let ackTimeouts = "carillon_delivery_ack_timeouts_total"
    public static let deadLetters = "carillon_dlq_records_total"
    public static let unusualKeys = "carillon_unusual_keys_total"
    public static let parked = "carillon_parked_total"
    public static let parkedSettled = "carillon_parked_settled_total"
    public static let pendingEvents = "carillon_pending_events"
    public static let pendingRecipients = "carillon_pending_recipients"
    public static let waitingForDevice = "carillon_device_lane_waiting"
    public static let endToEnd = "carillon_event_end_to_end_seconds"
    public static let pushLatency = "carillon_push_latency_seconds"
    public static let backpressure = "carillon_backpressure_seconds_total"
    public static let lagRecords = "carillon_kafka_lag_records"
    public static let lagSeconds = "carillon_kafka_lag_seconds"
    public static let watermarkAge = "carillon_watermark_age_seconds"
    public static let assigned = "carillon_kafka_assigned_partitions"
    public static let paused = "carillon_kafka_paused_partitions"
    public static let brokerUp = "carillon_kafka_broker_up"
    public static let connections = "carillon_apns_connections"
    public static let inFlight = "carillon_inflight_pushes"
    public static let limit = "carillon_concurrency_limit"
    public static let queued = "carillon_pending_pushes"
    public static let breaker = "carillon_breaker_state"
    public static let credentialPaused = "carillon_apns_credential_paused"
    public static let credentialRefused = "carillon_credential_replacement_refused"
    public static let credentialEnd = "carillon_credential_expiry_timestamp_seconds"
    public static let brake = "carillon_token_removal_brake"
    public static let redisSeconds = "carillon_redis_command_seconds"
    public static let redisErrors = "carillon_redis_errors_total"
    /// Only with a Redis Cluster.
    public static let redisRedirects = "carillon_redis_redirects_total"
    public static let redisDepth = "carillon_redis_pipeline_depth"
    public static let redisKeys = "carillon_redis_keys"
    public static let loopLag = "carillon_loop_lag_seconds"
    public static let cpu = "process_cpu_seconds_total"
    public static let memory = "process_resident_memory_bytes"
    public static let openFiles = "process_open_fds"
    public static let lostLogLines = "carillon_log_lines_dropped_total"
    public static let started = "process_start_time_seconds"
    public static let alarms = "carillon_apns_alarms_total"
    public static let retries = "carillon_retries_total"
    public static let retriesDenied = "carillon_retries_denied_total"
    public static let commits = "carillon_kafka_commits_total"
    public static let gap = "carillon_kafka_gap_records_total"
    public static let series = "carillon_metrics_series"
    public static let openFilesMax = "process_max_fds"

    public static let histograms = [endToEnd, pushLatency, redisSeconds]
    public static let all =
        [
            consumed, settled, decisions, attempts, deliveries, ackTimeouts, deadLetters, unusualKeys, parked,
            parkedSettled,
            pendingEvents, pendingRecipients, waitingForDevice, backpressure, lagRecords, lagSeconds, watermarkAge,
            assigned, paused, brokerUp, connections, inFlight, limit, queued, breaker, credentialPaused,
            credentialRefused,
            credentialEnd, brake, redisErrors, redisRedirects, redisDepth, redisKeys, loopLag, cpu, memory, openFiles,
            lostLogLines, started,
        ] + histograms

    /// The names in the lines of `/metrics`.
    public static let names = Set(all + histograms.flatMap { ["\($0)_bucket", "\($0)_count"] })
}
