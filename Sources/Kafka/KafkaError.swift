// SPDX-License-Identifier: Apache-2.0
import CRdkafka

/// One condition as librdkafka names it: a broker's answer or the client's own finding.
///
/// Most end by themselves (a broker restarts, a coordinator moves). Only `isFatal` needs an action: the client will
/// never work again and must be replaced, which means exit code 70 for the worker.
public struct KafkaError: Error, Equatable, Sendable, CustomStringConvertible {
    /// librdkafka's number: negative for the client's own conditions, positive for the broker's.
    public let code: Int32
    /// The client's text. Never contains record contents.
    public let text: String
    /// The client has failed permanently (fenced static member, broken idempotent sequence).
    public let isFatal: Bool

    init(_ code: rd_kafka_resp_err_t, text: String? = nil, isFatal: Bool = false) {
        self.code = code.rawValue
        self.text = text ?? String(cString: rd_kafka_err2str(code))
        self.isFatal = isFatal
    }

    /// By librdkafka's number.
    package init(code: Int32, text: String? = nil, isFatal: Bool = false) {
        self.init(rd_kafka_resp_err_t(rawValue: code), text: text, isFatal: isFatal)
    }

    /// The producer's bounded queue stayed full.
    public static var queueFull: KafkaError { KafkaError(RD_KAFKA_RESP_ERR__QUEUE_FULL) }

    /// The errors of a client while brokers are away or refuse it.
    public static var outages: [KafkaError] {
        [
            RD_KAFKA_RESP_ERR__TRANSPORT, RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN, RD_KAFKA_RESP_ERR__RESOLVE,
            RD_KAFKA_RESP_ERR__TIMED_OUT, RD_KAFKA_RESP_ERR__AUTHENTICATION, RD_KAFKA_RESP_ERR__SSL,
            RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED, RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED,
        ].map { KafkaError($0) }
    }

    /// The stable name of the code for a metric label: a closed set, for example `_QUEUE_FULL`.
    public var name: String { Self.name(of: code) }

    public var description: String { "\(text) (\(name))" }

    /// The stable name of any code; an unknown one becomes `UNKNOWN`.
    public static func name(of code: Int32) -> String {
        guard let name = rd_kafka_err2name(rd_kafka_resp_err_t(rawValue: code)) else { return "UNKNOWN" }
        let text = String(cString: name)
        return text.hasPrefix("ERR_") ? "UNKNOWN" : text
    }

    /// The broker refused our credentials or rights. The library retries, but an operator must act.
    public var isDenied: Bool {
        switch rd_kafka_resp_err_t(rawValue: code) {
        case RD_KAFKA_RESP_ERR__AUTHENTICATION, RD_KAFKA_RESP_ERR_SASL_AUTHENTICATION_FAILED,
            RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED, RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED,
            RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED:
            true
        default: false
        }
    }

    /// Each start and each rebalance of a group has it for a moment: a coordinator that still loads the group's offsets, or that
    /// does not know this member any more.
    public var isUsualInGroups: Bool {
        switch rd_kafka_resp_err_t(rawValue: code) {
        case RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS, RD_KAFKA_RESP_ERR_NOT_COORDINATOR,
            RD_KAFKA_RESP_ERR_REBALANCE_IN_PROGRESS, RD_KAFKA_RESP_ERR_ILLEGAL_GENERATION,
            RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID, RD_KAFKA_RESP_ERR__WAIT_COORD, RD_KAFKA_RESP_ERR__ASSIGNMENT_LOST:
            true
        default: false
        }
    }

    /// The topic or partition does not exist (yet): wait and report, never exit.
    public var isUnknownTopic: Bool {
        switch rd_kafka_resp_err_t(rawValue: code) {
        case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART, RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC,
            RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION:
            true
        default: false
        }
    }

    /// The record exceeds the limit of the client or the broker.
    public var isTooLarge: Bool {
        switch rd_kafka_resp_err_t(rawValue: code) {
        case RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE: true
        default: false
        }
    }

    /// A commit's metadata exceeds the broker's `offset.metadata.max.bytes`.
    var isMetadataTooLarge: Bool { code == RD_KAFKA_RESP_ERR_OFFSET_METADATA_TOO_LARGE.rawValue }

    /// The requested offset is gone (retention) and the policy is `error`: the partition stops.
    public var isOffsetLost: Bool {
        switch rd_kafka_resp_err_t(rawValue: code) {
        case RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET, RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE: true
        default: false
        }
    }
}
