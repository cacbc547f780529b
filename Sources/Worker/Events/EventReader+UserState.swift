import JSON
import PushCore

extension EventReader {
    func userState(
        _ record: FieldScope<RecordKey>, kind: String, sentMs: Int64
    ) throws(BadRecord) -> UserState {
        let uid = try record.requiredIdentifier(.uid, bytes: Limit.user)
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
            let conversation = try record.requiredIdentifier(.convID, bytes: Limit.user)
            return .mute(conversation: conversation, level: try muteLevel(record), untilMs: try record.time(.untilMs))
        case "read":
            let conversation = try record.requiredIdentifier(.convID, bytes: Limit.user)
            let mark = UserState.ReadMark(seq: try record.int(.upToSeq), ms: try record.time(.upToMs))
            guard mark.seq != nil || mark.ms != nil else {
                throw BadRecord(
                    .missing, "one of up_to_seq and up_to_ms is required", at: "$.up_to_seq",
                    byte: record.fields.object.offset)
            }
            return .read(conversation: conversation, upTo: mark)
        case "badge_report":
            return .badgeReport(
                device: try record.requiredIdentifier(.device, bytes: Limit.user),
                // What a badge can be, so that sums with it never overflow.
                value: min(max(try record.requiredInt(.value), 0), Int64(Int32.max)),
                clientMs: try record.requiredTime(.clientMs))
        case "ack":
            let device = try record.requiredIdentifier(.device, bytes: Limit.user)
            let msgIDs = try record.identifiers(.msgIDs, bytes: Limit.id, atMost: Limit.acknowledged)
            guard let msgIDs else { throw record.missing(.msgIDs) }
            return .ack(device: device, connectionEpoch: try record.int(.connEpoch), msgIDs: msgIDs)
        case "arrived_report": return .arrivedReport(try report(record, at: .arrivedMs))
        default: return .openReport(try report(record, at: .openedMs))
        }
    }

    /// The pid in lower case: some systems print a UUID in capitals.
    private func report(
        _ record: FieldScope<RecordKey>, at time: RecordKey
    ) throws(BadRecord) -> UserState.PushReport {
        UserState.PushReport(
            device: try record.requiredIdentifier(.device, bytes: Limit.user),
            pid: try record.requiredIdentifier(.pid).lowercased(),
            msgID: try record.filled(.msgID, bytes: Limit.id),
            atMs: try record.time(time))
    }

    private func muteLevel(_ record: FieldScope<RecordKey>) throws(BadRecord) -> MuteLevel {
        let number = try record.requiredInt(.level)
        guard let level = Int(exactly: number).flatMap({ MuteLevel(rawValue: $0) }) else {
            throw record.outOfRange(.level, "must be one of -1, 0, 1, 2, 4, 5")
        }
        return level
    }

    private func token(_ record: FieldScope<RecordKey>) throws(BadRecord) -> FieldScope<TokenKey> {
        guard let object = try record.object(.token) else { throw record.missing(.token) }
        return FieldScope(tokenKeys.fields(of: object), path: "$.token")
    }

    private func binding(
        _ record: FieldScope<RecordKey>, sentMs: Int64
    ) throws(BadRecord) -> UserState.Binding {
        let token = try token(record)
        let device = try token.requiredIdentifier(.device, bytes: Limit.user)
        let bound = TokenRecord(
            hex: try token.hexToken(.token),
            environment: try token.requiredWord(.env, APNsEnvironment.self, "production, sandbox"),
            topic: try topic(token),
            type: try token.requiredWord(.type, TokenRecord.Kind.self, "alert, voip, activity, start"),
            credential: try token.string(.cert, bytes: Limit.word),
            contentKey: try token.string(.contentKey, bytes: Limit.word),
            language: try token.string(.lang, bytes: Limit.word),
            zone: try token.string(.tz, bytes: Limit.word),
            activityID: try token.filled(.activityID),
            attributesType: try token.filled(.attributesType),
            boundMs: sentMs)
        return UserState.Binding(device: device, token: bound, version: try token.requiredInt(.bindVer))
    }

    /// A bundle id: it becomes a header of every push, on a connection that others share.
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
            device: try token.requiredIdentifier(.device, bytes: Limit.user),
            token: try token.hexToken(.token),
            version: try token.requiredInt(.bindVer))
    }

    private func settings(_ record: FieldScope<RecordKey>) throws(BadRecord) -> UserState.SettingsChange {
        var change = UserState.SettingsChange()
        if let object = try record.object(.dnd) {
            let dnd = FieldScope(quietKeys.fields(of: object), path: "$.dnd")
            change.dndOn = try dnd.bool(.on)
            change.dndStart = try minuteOfDay(dnd, .start)
            change.dndEnd = try minuteOfDay(dnd, .end)
            change.dndZone = try dnd.string(.tz, bytes: Limit.word)
            change.dndLevel = try dnd.int(.level).map { Int(truncatingIfNeeded: $0) }
            if let level = change.dndLevel, level != 1, level != 5 {
                throw dnd.outOfRange(.level, "must be 1 or 5")
            }
            if let start = change.dndStart, start == change.dndEnd {
                throw dnd.outOfRange(.end, "start and end must differ")
            }
        }
        change.showDetail = try record.bool(.showDetail)
        change.pushWhenDesktopOnline = try record.bool(.pushWhenDesktopOnline)
        change.holdSeconds = try record.int(.holdS, in: 0...600)
        change.language = try record.string(.lang, bytes: Limit.word)
        change.phone = try record.string(.phone, bytes: Limit.phone)
        return change
    }

    /// `22:00` as minutes of the day.
    private func minuteOfDay(_ dnd: FieldScope<QuietKey>, _ key: QuietKey) throws(BadRecord) -> Int? {
        guard let text = try dnd.string(key) else { return nil }
        let digits = Array(text.utf8)
        guard digits.count == 5, digits[2] == UInt8(ascii: ":"),
            let hour = Self.twoDigits(digits[0], digits[1]), hour < 24,
            let minute = Self.twoDigits(digits[3], digits[4]), minute < 60
        else { throw dnd.outOfRange(key, "must be a time of day like 22:00") }
        return hour * 60 + minute
    }

    private static func twoDigits(_ tens: UInt8, _ ones: UInt8) -> Int? {
        let zero = UInt8(ascii: "0")
        guard tens >= zero, tens <= zero + 9, ones >= zero, ones <= zero + 9 else { return nil }
        return Int(tens - zero) * 10 + Int(ones - zero)
    }
}
