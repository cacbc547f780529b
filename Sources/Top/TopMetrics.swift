/// Names of the metrics and labels that `carillon top` reads; one that a worker does not have is absent from the picture.
enum TopMetrics {
    static let consumed = "carillon_events_consumed_total"
    static let settled = "carillon_events_settled_total"
    static let decisions = "carillon_decisions_total"
    static let attempts = "carillon_push_attempts_total"
    static let deliveries = "carillon_deliveries_total"
    static let ackTimeouts = "carillon_delivery_ack_timeouts_total"
    static let deadLetters = "carillon_dlq_records_total"
    static let parked = "carillon_parked_total"
    static let parkedSettled = "carillon_parked_settled_total"
    static let pendingEvents = "carillon_pending_events"
    static let pendingRecipients = "carillon_pending_recipients"
    static let waitingForDevice = "carillon_device_lane_waiting"
    static let endToEnd = "carillon_event_end_to_end_seconds"
    static let pushLatency = "carillon_push_latency_seconds"
    static let backpressure = "carillon_backpressure_seconds_total"
    static let lagRecords = "carillon_kafka_lag_records"
    static let lagSeconds = "carillon_kafka_lag_seconds"
    static let watermarkAge = "carillon_watermark_age_seconds"
    static let assigned = "carillon_kafka_assigned_partitions"
    static let paused = "carillon_kafka_paused_partitions"
    static let brokerUp = "carillon_kafka_broker_up"
    static let connections = "carillon_apns_connections"
    static let inFlight = "carillon_inflight_pushes"
    static let limit = "carillon_concurrency_limit"
    static let queued = "carillon_pending_pushes"
    static let breaker = "carillon_breaker_state"
    static let credentialPaused = "carillon_apns_credential_paused"
    static let credentialEnd = "carillon_credential_expiry_timestamp_seconds"
    static let brake = "carillon_token_removal_brake"
    static let redisSeconds = "carillon_redis_command_seconds"
    static let redisErrors = "carillon_redis_errors_total"
    static let redisDepth = "carillon_redis_pipeline_depth"
    static let redisKeys = "carillon_redis_keys"
    static let loopLag = "carillon_loop_lag_seconds"
    static let cpu = "process_cpu_seconds_total"
    static let memory = "process_resident_memory_bytes"
    static let openFiles = "process_open_fds"
    static let started = "process_start_time_seconds"

    /// Not exported by every worker yet.
    static let coming: Set = [lagSeconds, brokerUp]

    static let histograms = [endToEnd, pushLatency, redisSeconds]
    static let all =
        [
            consumed, settled, decisions, attempts, deliveries, ackTimeouts, deadLetters, parked, parkedSettled,
            pendingEvents, pendingRecipients, waitingForDevice, backpressure, lagRecords, lagSeconds, watermarkAge,
            assigned, paused, brokerUp, connections, inFlight, limit, queued, breaker, credentialPaused,
            credentialEnd, brake, redisErrors, redisDepth, redisKeys, loopLag, cpu, memory, openFiles, started,
        ] + histograms
}
