// SPDX-License-Identifier: Apache-2.0
import JSON
import PushCore

extension EventReader {
    func userState(
        _ record: FieldScope<RecordKey>, kind: String, sentMs: Int64
    ) throws(BadRecord) -> UserState {
        let uid = try record.requiredIdentifier(.uid, bytes: InputLimit.user)
        return UserState(uid: uid, change: try change(record, kind: kind, sentMs: sentMs))
    }

    private func change(
        _ record: FieldScope<RecordKey>, kind: String, sentMs: Int64
    ) throws(BadRecord) -> UserState.Change {
        switch kind {
        case "bind": return .bind(try binding(record, sentMs: sentMs))
        case "unbind": return .unbind(try unbinding(record))
        case "settings": return .settings(try settings(record))
        case "mute":
            let conversation = try record.requiredIdentifier(.convID, bytes: InputLimit.user)
            let untilMs = try record.time(.untilMs, mayBeZero: true)
            return .mute(conversation: conversation, level: try muteLevel(record), untilMs: untilMs)
        case "read":
            let conversation = try record.requiredIdentifier(.convID, bytes: InputLimit.user)
            // The client's clock made it, as those of a report.
            let upToMs = try record.time(.upToMs, mayBeZero: true).map { min($0, sentMs) }
            let mark = UserState.ReadMark(seq: try record.int(.upToSeq), ms: upToMs)
            guard mark.seq != nil || mark.ms != nil else {
                throw BadRecord(
                    .missing, "one of up_to_seq and up_to_ms is required", at: "$.up_to_seq",
                    byte: record.fields.object.offset)
            }
            return .read(conversation: conversation, upTo: mark)
        case "badge_report":
            return .badgeReport(
                device: try record.requiredIdentifier(.device, bytes: InputLimit.user),
                // The range of a badge, so that sums never overflow.
                value: min(max(try record.requiredInt(.value), 0), Int64(Int32.max)),
                clientMs: min(try record.requiredTime(.clientMs), sentMs))
        case "ack":
            let device = try record.requiredIdentifier(.device, bytes: InputLimit.user)
            let msgIDs = try record.identifiers(.msgIDs, bytes: InputLimit.id, atMost: InputLimit.acknowledged)
            guard let msgIDs else { throw record.missing(.msgIDs) }
            return .ack(device: device, connectionEpoch: try record.int(.connEpoch), msgIDs: msgIDs)
        case "forget": return .forget
        case "arrived_report": return .arrivedReport(try report(record, at: .arrivedMs, sentMs: sentMs))
        default: return .openReport(try report(record, at: .openedMs, sentMs: sentMs))
        }
    }

    /// The pid in lower case, because some systems print a UUID in capitals.
    private func report(
        _ record: FieldScope<RecordKey>, at time: RecordKey, sentMs: Int64
    ) throws(BadRecord) -> UserState.PushReport {
        UserState.PushReport(
            device: try record.requiredIdentifier(.device, bytes: InputLimit.user),
            pid: try record.requiredIdentifier(.pid).lowercased(),
            msgID: try record.filled(.msgID, bytes: InputLimit.id),
            atMs: try record.time(time).map { min($0, sentMs) })
    }

    private func muteLevel(_ record: FieldScope<RecordKey>) throws(BadRecord) -> MuteLevel {
        guard let level = try muteLevel(record, .level) else { throw record.missing(.level) }
        return level
    }

    private func muteLevel<Key>(_ scope: FieldScope<Key>, _ key: Key) throws(BadRecord) -> MuteLevel? {
        guard let number = try scope.int(key) else { return nil }
        guard let level = Int(exactly: number).flatMap({ MuteLevel(rawValue: $0) }) else {
            throw scope.outOfRange(key, "must be one of -1, 0, 1, 2, 4, 5")
        }
        return level
    }

    /// The levels of the types that the record names.
    private func levels(_ record: FieldScope<RecordKey>) throws(BadRecord) -> TypeLevels {
        guard let object = try record.object(.levels) else { return [:] }
        let part = FieldScope(levelKeys.fields(of: object), path: "$.levels")
        var levels: TypeLevels = [:]
        for key in LevelKey.allCases {
            if let level = try muteLevel(part, key) { levels[key.type] = level }
        }
        return levels
    }

    private func token(_ record: FieldScope<RecordKey>) throws(BadRecord) -> FieldScope<TokenKey> {
        guard let object = try record.object(.token) else { throw record.missing(.token) }
        return FieldScope(tokenKeys.fields(of: object), path: "$.token")
    }

    private func binding(
        _ record: FieldScope<RecordKey>, sentMs: Int64
    ) throws(BadRecord) -> UserState.Binding {
        let token = try token(record)
        let device = try token.requiredIdentifier(.device, bytes: InputLimit.user)
        let bound = TokenRecord(
            hex: try token.hexToken(.token),
            environment: try token.requiredWord(.env, APNsEnvironment.self, "production, sandbox"),
            topic: try topic(token),
            type: try token.requiredWord(.type, TokenRecord.Kind.self, "alert, voip, activity, start"),
            credential: try token.string(.cert, bytes: InputLimit.word),
            contentKey: try token.string(.contentKey, bytes: InputLimit.word),
            language: try token.string(.lang, bytes: InputLimit.word),
            zone: try zone(token, .tz),
            activityID: try token.filled(.activityID),
            attributesType: try token.filled(.attributesType),
            boundMs: sentMs, showsAlerts: try token.bool(.alerts) ?? true)
        if bound.type == .activity, bound.activityID == nil { throw token.missing(.activityID) }
        return UserState.Binding(device: device, token: bound, version: try token.requiredInt(.bindVer))
    }

    /// A bundle id. It becomes a header of every push on a shared connection.
    private func topic(_ token: FieldScope<TokenKey>) throws(BadRecord) -> String {
        let topic = try token.requiredIdentifier(.topic)
        guard AppPolicy.isTopic(topic) else {
            throw token.outOfRange(.topic, "must be a bundle id: letters, digits, dots and hyphens")
        }
        return topic
    }

    private func unbinding(_ record: FieldScope<RecordKey>) throws(BadRecord) -> UserState.Unbinding {
        let token = try token(record)
        return UserState.Unbinding(
            device: try token.requiredIdentifier(.device, bytes: InputLimit.user),
            token: try token.hexToken(.token),
            version: try token.requiredInt(.bindVer))
    }

    private func settings(_ record: FieldScope<RecordKey>) throws(BadRecord) -> UserState.SettingsChange {
        var change = UserState.SettingsChange()
        if let object = try record.object(.dnd) { try readDND(object, into: &change) }
        change.showDetail = try record.bool(.showDetail)
        change.pushWhenDesktopOnline = try record.bool(.pushWhenDesktopOnline)
        change.holdSeconds = try record.int(.holdS, in: 0...600)
        change.language = try record.string(.lang, bytes: InputLimit.word)
        change.phone = try record.string(.phone, bytes: InputLimit.phone)
        change.levels = try levels(record)
        change.snoozeUntilMs = try record.time(.snoozeUntilMs, mayBeZero: true)
        return change
    }
}
