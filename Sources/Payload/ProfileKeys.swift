import Digits
import JSON
import PushCore

/// The keys beside `aps` and `pid` (contract section 6).
struct ProfileKeys {
    private let profile: PayloadProfile
    private let lowersBadge: Bool
    private let communication: Bool

    private static let decreaseKey = "corner_mark_decrease"
    private static let revokeKey = "revoke_msg_id"

    /// - Parameters:
    ///   - lowersBadge: the recall lowered this receiver's badge.
    ///   - communication: `im` is ours.
    init(_ profile: PayloadProfile, lowersBadge: Bool, communication: Bool) {
        self.profile = profile
        self.lowersBadge = lowersBadge
        self.communication = communication
    }

    /// Writes the keys; the place for the receiver's id, where the profile has one.
    func write(_ message: borrowing Message, to writer: inout JSONWriter) -> Int? {
        let custom = custom(message)
        switch profile {
        case .nim:
            writeNIM(message, custom, to: &writer)
        case .rc:
            return writeRC(message, custom, to: &writer)
        case .wps:
            writeWPS(message, custom, to: &writer)
        case .raw:
            write(custom, to: &writer)
        }
        return nil
    }

    /// The custom keys without those that are ours or lifted out, and of a revoke its target's id.
    private func custom(_ message: borrowing Message) -> [JSONValue.Member] {
        let target = message.kind == .revoke ? message.revoke?.targetMsgID : nil
        var members: [JSONValue.Member] = []
        if case .object(let given) = message.push.payload {
            func isOurs(_ member: JSONValue.Member) -> Bool {
                member.isNamed("aps") || member.isNamed("pid") || member.isNamed(CollapseID.payloadKey)
                    || LiftedKeys.isLifted(member, profile) || (target != nil && member.isNamed(Self.revokeKey))
                    || (communication && member.isNamed(CommunicationKeys.key))
            }
            members = given.contains(where: isOurs) ? given.filter { !isOurs($0) } : given
        }
        if let target { members.append(.init(Self.revokeKey, .string(target))) }
        return members
    }

    private func write(_ members: [JSONValue.Member], to writer: inout JSONWriter) {
        for member in members { writer.member(member) }
    }

    /// The session where the sender gave none; null is the same as absent.
    private func writeNIM(_ message: borrowing Message, _ custom: [JSONValue.Member], to writer: inout JSONWriter) {
        var givesID = false
        var givesType = false
        for member in custom {
            let isID = member.isNamed("sessionid")
            let isType = member.isNamed("sessiontype")
            if isID || isType, member.value.isNull { continue }
            if isID { givesID = true }
            if isType { givesType = true }
            writer.member(member)
        }
        if !givesID { writer.member("sessionid", message.sessionID) }
        if !givesType { writer.member("sessiontype", message.conversation.type.rawValue) }
    }

    private func writeRC(
        _ message: borrowing Message, _ custom: [JSONValue.Member], to writer: inout JSONWriter
    ) -> Int {
        writer.key("rc")
        writer.beginObject()
        writer.member("cType", Self.conversationType(message.conversation.type, custom))
        writer.member("fId", message.from.uid)
        writer.member("oName", ifPresent: message.typeName)
        writer.member("tId", message.sessionID)
        writer.member("id", message.msgID)
        writer.key("rId")
        let receiver = writer.placedString("").lowerBound
        writer.endObject()
        if !custom.isEmpty { writer.member(.init("appData", .object(custom))) }
        return receiver
    }

    private static func conversationType(_ type: Conversation.Kind, _ custom: [JSONValue.Member]) -> String {
        let given = custom.first { $0.isNamed("cType") }?.value.string
        if let given, ["DS", "MC", "MP"].containsSame(given) {
            return given
        }
        return switch type {
        case .p2p: "PR"
        case .group, .ultra: "GRP"
        case .system: "SYS"
        case .custom: "CS"
        }
    }

    private func writeWPS(_ message: borrowing Message, _ custom: [JSONValue.Member], to writer: inout JSONWriter) {
        var own: [JSONValue.Member] = [
            .init("conv_id", .string(message.conversation.id)),
            .init("conv_type", .string(message.conversation.type.rawValue)),
            .init("from", .string(message.from.uid)),
            .init("msg_id", .string(message.msgID)),
        ]
        if message.decreasesBadge, lowersBadge { own.append(.init(Self.decreaseKey, .bool(true))) }
        // The clients of WPS take one off the icon for it: a sender must not make them.
        let given = custom.filter { member in
            !member.isNamed(Self.decreaseKey) && !own.contains { $0.isNamed(member.key) }
        }
        writer.member(.init("message", .object([.init("params", .object(own + given))])))
    }
}

extension Message {
    /// Whom an answer goes to: in p2p the sender, else the conversation.
    fileprivate var sessionID: String { conversation.type == .p2p ? from.uid : conversation.id }
}
