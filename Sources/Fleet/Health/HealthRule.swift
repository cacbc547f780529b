// SPDX-License-Identifier: Apache-2.0
/// A condition in which a worker works and needs attention. The one list for `/readyz`, the operator's page and
/// `carillon top`; docs/operations.md has the same table. All look at the last minutes.
public enum HealthRule: String, CaseIterable, Sendable {
    case notAccepted, nothingAccepted, unanswered, misconfigured, noRetries, certificate
    case deadLetters, expired, behind, stuck
    case commits, gap
    case slowRedis
    case logLost, series, descriptors

    static let answersMin = 20.0
    static let notAcceptedMax = 0.05
    static let unansweredMin = 100.0
    static let unansweredMax = 0.005
    /// A single bad record needs no action.
    static let deadLettersMin = 5.0
    static let deadLettersMax = 0.01
    static let expiredMin = 5.0
    static let expiredMax = 0.01
    static let behindSecondsMax = 60.0
    static let stuckSecondsMax = 120.0
    static let redisSecondsMax = 0.1
    static let daysMin = 14.0
    static let seriesMax = 2700.0
    static let descriptorsMax = 0.8

    /// In words, as in the documentation.
    public var condition: String {
        switch self {
        case .notAccepted: "APNs accepts less than 95 % of at least 20 pushes of an app"
        case .nothingAccepted: "the same, and APNs accepts none of them or asks to wait"
        case .unanswered: "more than 0.5 % of at least 100 pushes of an app end without an answer"
        case .misconfigured: "APNs rejects pushes for a reason that only the configuration can cause"
        case .noRetries: "more pushes of an app need another try than the budget allows"
        case .certificate: "a certificate ends within 14 days"
        case .deadLetters: "at least 5, and at least 1 % of the records read, are dead letters"
        case .expired: "at least 5, and at least 1 % of the outcomes, are `expired`"
        case .behind: "the oldest record that waits in Kafka is older than 60 s"
        case .stuck: "the oldest unsettled record is older than 120 s"
        case .commits: "most commits of offsets fail"
        case .gap: "Kafka deleted records before they were read"
        case .slowRedis: "1 % of Redis' replies take longer than 0.1 s"
        case .logLost: "log lines are lost"
        case .series: "more than 2700 of the 3000 time series are in use"
        case .descriptors: "more than 80 % of the file descriptors are open"
        }
    }

    /// The rule over the same figures. Of these two, one note is enough.
    var figures: HealthRule { self == .nothingAccepted ? .notAccepted : self }

    /// The alert of the same cause, which names its runbook.
    public var alert: String {
        switch self {
        case .notAccepted: "CarillonMassInvalidation"
        case .nothingAccepted: "CarillonNothingAccepted"
        case .unanswered: "CarillonAmbiguousHigh"
        case .misconfigured: "CarillonMisconfigured"
        case .noRetries: "CarillonRetryBudgetEmpty"
        case .certificate: "CarillonCredentialExpiry"
        case .deadLetters: "CarillonDeadLetters"
        case .expired: "CarillonLossBurn"
        case .behind: "CarillonLagGrowing"
        case .stuck: "CarillonWatermarkStuck"
        case .commits: "CarillonCommitsFailing"
        case .gap: "CarillonDataGap"
        case .slowRedis: "CarillonRedisDegraded"
        case .logLost: "CarillonLogLost"
        case .series: "CarillonSeriesBudget"
        case .descriptors: "CarillonDescriptorsLow"
        }
    }
}

/// A rule that holds now.
public struct HealthNote: Equatable, Sendable {
    /// The part that needs attention.
    public enum Subject: Hashable, Sendable {
        case kafka, redis
        /// Records and outcomes.
        case events
        /// The process and its machine.
        case system
        case app(String, environment: String)
    }

    public var subject: Subject
    public var rule: HealthRule
    /// The present figures.
    public var text: String
    /// The alert with the runbook for it.
    public var alert: String
    /// Unix ms: the condition has ended, and the rule holds only by the minutes before; nil while it lasts.
    public var endedMs: Int64?

    /// Whether both are of one condition, whatever their figures.
    public func isSameCondition(as other: HealthNote) -> Bool {
        subject == other.subject && rule.figures == other.rule.figures
    }

    init(_ subject: Subject, _ rule: HealthRule, _ text: String, alert: String? = nil) {
        self.subject = subject
        self.rule = rule
        self.text = text
        self.alert = alert ?? rule.alert
    }
}
