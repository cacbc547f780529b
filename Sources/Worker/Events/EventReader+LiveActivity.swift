// SPDX-License-Identifier: Apache-2.0
import JSON
import Payload
import PushCore

extension EventReader {
    func liveActivity(_ record: FieldScope<RecordKey>) throws(BadRecord) -> LiveActivity {
        guard let object = try record.object(.la) else { throw record.missing(.la) }
        let la = FieldScope(activityKeys.fields(of: object), path: "$.la")
        let action = try la.requiredWord(.event, LiveActivity.Action.self, "start, update, end")
        let channel = try channel(la, action, record)
        let uids = channel == nil ? try recipients(record, of: action) : nil
        guard let state = try la.value(.state) else { throw la.missing(.state) }
        let alert = try alert(la)
        let attributes = try la.value(.attributes)
        let attributesType = try la.filled(.attributesType)
        if action == .start, attributesType == nil || attributes == nil || !hasTitleOrBody(alert) {
            throw incompleteStart(la, attributesType == nil, attributes == nil, !hasTitleOrBody(alert))
        }
        return LiveActivity(
            msgID: try record.filled(.msgID, bytes: InputLimit.id),
            uids: uids ?? [],
            activityID: try la.requiredIdentifier(.activityID),
            action: action,
            state: state,
            attributesType: attributesType,
            attributes: attributes,
            alert: alert,
            staleMs: try la.time(.staleMs, mayBeZero: true),
            dismissalMs: try la.time(.dismissalMs, mayBeZero: true),
            relevance: try relevance(la),
            priority: try la.word(.priority, PushOptions.Priority.self, "high, normal, low") ?? .high,
            // For a start only; other events ignore it.
            input: action == .start ? try input(la) : .unsaid,
            isForAllBound: uids == nil && channel == nil,
            channel: channel)
    }

    /// - Returns: nil for all users who bound the activity. A start must name its recipients, because nobody has bound
    ///   it yet.
    private func recipients(
        _ record: FieldScope<RecordKey>, of action: LiveActivity.Action
    ) throws(BadRecord) -> [String]? {
        guard let to = try record.object(.to) else {
            if action == .start { throw record.missing(.to) }
            return nil
        }
        let audience = FieldScope(partKeys.fields(of: to), path: "$.to")
        for key in [PartKey.devices, .tokens] where audience.fields[key] != nil {
            throw audience.outOfRange(key, "cannot be given in a live_activity")
        }
        let uids = try audience.uids(.uids, atMost: InputLimit.recipients)
        if uids == nil, action == .start { throw audience.missing(.uids) }
        return uids
    }

    /// A broadcast reaches who subscribed to the channel: it names no users, and starts nothing.
    private func channel(
        _ la: FieldScope<ActivityKey>, _ action: LiveActivity.Action, _ record: FieldScope<RecordKey>
    ) throws(BadRecord) -> String? {
        guard let channel = try channelID(la, .channel, bytes: InputLimit.user) else { return nil }
        if action == .start { throw la.outOfRange(.channel, "cannot be given in a start") }
        if record.fields[.to] != nil { throw la.outOfRange(.channel, "cannot be given together with to") }
        return channel
    }

    /// A channel's id is base64, as APNs returned it ("Sending channel management requests").
    private func channelID(
        _ la: FieldScope<ActivityKey>, _ key: ActivityKey, bytes: Int = InputLimit.name
    ) throws(BadRecord) -> String? {
        guard let channel = try la.filled(key, bytes: bytes) else { return nil }
        guard channel.utf8.allSatisfy(Self.isBase64) else {
            throw la.outOfRange(key, "must be a channel id in base64")
        }
        return channel
    }

    /// At most one of both.
    private func input(_ la: FieldScope<ActivityKey>) throws(BadRecord) -> LiveActivity.Input {
        let takesToken = try la.bool(.inputPushToken) ?? false
        guard let channel = try channelID(la, .inputPushChannel) else { return takesToken ? .token : .unsaid }
        if takesToken { throw la.outOfRange(.inputPushChannel, "cannot be given together with input_push_token") }
        return .channel(channel)
    }

    private static func isBase64(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "+"), UInt8(ascii: "/"), UInt8(ascii: "="):
            true
        default: false
        }
    }

    /// An alert is an object or, as everywhere in `aps`, a plain string.
    private func alert(_ la: FieldScope<ActivityKey>) throws(BadRecord) -> JSONValue? {
        guard let value = la.fields[.alert] else { return nil }
        guard value.isObject || value.kind == .string else {
            throw la.fault(.wrongType, "must be an object or a string", .alert, value)
        }
        let alert = try la.value(.alert, value)
        return BlankText.showsNothing(alert: alert) ? nil : alert
    }

    /// A plain string is the body. A subtitle alone is neither.
    private func hasTitleOrBody(_ alert: JSONValue?) -> Bool {
        guard case .object(let members)? = alert else { return alert != nil }
        let parts = members.filter { !$0.isNamed("subtitle") && !$0.isNamed("subtitle-loc-key") }
        return !BlankText.showsNothing(alert: .object(parts))
    }

    /// iOS shows no activity without them. The error names all that are missing, at the first of them.
    private func incompleteStart(
        _ la: FieldScope<ActivityKey>, _ lacksType: Bool, _ lacksAttributes: Bool, _ lacksAlert: Bool
    ) -> BadRecord {
        let lacking: [(ActivityKey, String)] = [
            lacksType ? (.attributesType, "attributes_type") : nil,
            lacksAttributes ? (.attributes, "attributes") : nil,
            lacksAlert ? (.alert, "an alert with a title or a body") : nil,
        ].compactMap(\.self)
        let names = lacking.map(\.1).joined(separator: ", ")
        let key = lacking.first?.0 ?? .alert
        return la.fault(.missing, "a start needs \(names)", key, la.fields[key] ?? la.fields.object)
    }

    private func relevance(_ la: FieldScope<ActivityKey>) throws(BadRecord) -> String? {
        guard let value = la.fields[.relevance] else { return nil }
        guard let number = value.numberText else { throw la.fault(.wrongType, "must be a number", .relevance, value) }
        return number
    }
}
