import JSON
import PushCore

extension EventReader {
    func liveActivity(_ record: FieldScope<RecordKey>) throws(BadRecord) -> LiveActivity {
        guard let to = try record.object(.to) else { throw record.missing(.to) }
        let audience = FieldScope(partKeys.fields(of: to), path: "$.to")
        guard let uids = try audience.strings(.uids) else { throw audience.missing(.uids) }
        guard let object = try record.object(.la) else { throw record.missing(.la) }
        let la = FieldScope(activityKeys.fields(of: object), path: "$.la")
        guard let state = try la.value(.state) else { throw la.missing(.state) }
        return LiveActivity(
            msgID: try record.identifier(.msgID, limit: Limit.id),
            uids: uids,
            activityID: try la.requiredIdentifier(.activityID, limit: Limit.conversation),
            action: try la.requiredWord(.event, LiveActivity.Action.self, "start, update, end"),
            state: state,
            attributesType: try la.string(.attributesType),
            attributes: try la.value(.attributes),
            alert: try alert(la),
            staleMs: try la.time(.staleMs),
            dismissalMs: try la.time(.dismissalMs),
            relevance: try relevance(la),
            priority: try la.word(.priority, PushOptions.Priority.self, "high, normal, low") ?? .high)
    }

    /// An alert is an object or, as everywhere in `aps`, a plain string.
    private func alert(_ la: FieldScope<ActivityKey>) throws(BadRecord) -> JSONValue? {
        guard let value = la.fields[.alert] else { return nil }
        guard value.isObject || value.kind == .string else {
            throw la.fault(.wrongType, "must be an object or a string", .alert, value)
        }
        return JSONValue(value)
    }

    private func relevance(_ la: FieldScope<ActivityKey>) throws(BadRecord) -> String? {
        guard let value = la.fields[.relevance] else { return nil }
        guard let number = value.numberText else { throw la.fault(.wrongType, "must be a number", .relevance, value) }
        return number
    }
}
