// SPDX-License-Identifier: Apache-2.0
/// What the contract allows after each kind of fault.
extension FaultKind {
    /// A record may be written twice after it, and a push sent twice whose answer was lost.
    var mayRepeat: Bool {
        switch self {
        case .crash, .pause, .restart, .join, .upgrade, .redisLink, .apnsLink: true
        case .kafkaBrokers, .kafkaGroup, .kafkaWrites, .kafkaSlowness, .kafkaProducer, .kafkaMirror: true
        case .redisRestart, .redisOlderData, .redisFailover, .redisFull, .redisRefusal, .redisSlowness: true
        case .apnsAnswers, .apnsTokens, .apnsGoAway, .clock, .clockJump, .reload, .redisSlots: false
        case .kafkaRefusal, .kafkaRetention, .kafkaRecreation: false
        }
    }

    /// Answers and requests may lie for long.
    var mayDelay: Bool {
        switch self {
        case .pause, .redisLink, .apnsLink: true
        case .kafkaBrokers, .kafkaGroup, .kafkaWrites, .kafkaSlowness, .kafkaProducer: true
        // A cut-off master answers with what it knows. A revoke that Redis does not take is known to nobody.
        case .redisFailover, .redisSlowness, .redisFull, .redisRefusal: true
        case .crash, .restart, .join, .upgrade, .apnsAnswers, .apnsTokens, .apnsGoAway, .clock: false
        case .clockJump, .reload: false
        case .kafkaRefusal, .kafkaRetention, .kafkaRecreation, .kafkaMirror: false
        case .redisRestart, .redisOlderData, .redisSlots: false
        }
    }

    /// A worker may stop reading: it does not run, or its clock is wrong.
    var mayStopReading: Bool { self == .pause || self == .clockJump }

    /// Redis loses counts, or events begin again in another topic.
    var mayMiscount: Bool {
        switch self {
        case .redisOlderData, .redisFailover, .kafkaRecreation, .kafkaMirror: true
        default: false
        }
    }

    /// Redis may not answer for more than a second, or takes no counts. Then commits and rebalances do not wait for the statistics.
    var mayHideRedis: Bool {
        switch self {
        case .redisLink, .redisRestart, .redisSlowness, .redisFull, .redisRefusal: true
        default: false
        }
    }

    /// A worker cannot know the number, or Redis did not take it.
    var mayLackNumbers: Bool {
        switch self {
        case .redisLink, .redisRestart, .redisOlderData, .redisFailover, .redisFull, .redisRefusal, .redisSlowness: true
        case .redisSlots, .pause, .crash, .kafkaMirror: true
        default: false
        }
    }

    /// Pushes may take long.
    var mayWait: Bool {
        switch self {
        case .clock, .reload, .apnsTokens: false
        default: true
        }
    }

    /// Partitions go to another worker, or come again.
    var mayMovePartitions: Bool {
        switch self {
        case .crash, .pause, .restart, .join, .upgrade, .kafkaBrokers, .kafkaGroup, .kafkaMirror: true
        default: false
        }
    }
}
