// SPDX-License-Identifier: Apache-2.0
import Digits
import JSON
import PushCore

/// The keys next to `aps` and `pid` (contract section 6).
struct ProfileKeys {
    private let profile: PayloadProfile
    private let lowersBadge: Bool
    /// With `badge: none`, outside profile `wps`: a revoke that adds 1, as a message does. There every other revoke takes one off.
    private let isCountedRevoke: Bool
    private let communication: Bool
    /// `push.image`; nil: there is none, or nothing is shown.
    private let image: String?

    private static let decreaseKey = "corner_mark_decrease"
    private static let revokeKey = "revoke_msg_id"
    private static let countsKey = "revoke_counts"
    private static let messageKey = "mid"
    private static let imageKey = "image"
    private static let textKey = "payload"

    init(_ message: borrowing Message, _ variant: borrowing PayloadVariant, _ rules: borrowing PayloadRules) {
        profile = rules.profile
        lowersBadge = variant.lowersBadge
        isCountedRevoke = message.kind == .revoke && rules.badge == .client && variant.addsToBadge && profile != .wps
        communication = rules.communication
        let isSeen =
            !message.push.silent && !message.push.voip && !variant.isHidden && variant.mergedCount <= 1
        image = isSeen ? message.push.image : nil
    }

    /// Writes the keys. Returns the place of the receiver's id, where the profile has one.
    func write(_ message: borrowing Message, receiver uid: String, to writer: inout JSONWriter) -> Int? {
        let custom = custom(message)
        var receiver: Int?
        switch profile {
        case .nim:
            writer.member(.init(Self.messageKey, .string(message.msgID)))
            writeNIM(message, custom, to: &writer)
        case .rc:
            receiver = writeRC(message, custom, receiver: uid, to: &writer)
        case .wps:
            writeWPS(message, custom, to: &writer)
        case .raw:
            writer.member(.init(Self.messageKey, .string(message.msgID)))
            write(custom, to: &writer)
        }
        if let image { writer.member(.init(Self.imageKey, .string(image))) }
        return receiver
    }

    /// The custom keys without those that are ours or lifted out. Of a revoke also its target's id, except in `rc`.
    private func custom(_ message: borrowing Message) -> [JSONValue.Member] {
        let target = message.kind == .revoke ? message.revoke?.targetMsgID : nil
        var members: [JSONValue.Member] = []
        if let given = message.push.payload?.members(in: profile) {
            func isOurs(_ member: JSONValue.Member) -> Bool {
                member.isNamed("aps") || member.isNamed("pid") || member.isNamed(CollapseID.payloadKey)
                    || (isAtTop && member.isNamed(Self.messageKey)) || LiftedKeys.isLifted(member, profile)
                    || (target != nil && (member.isNamed(Self.revokeKey) || member.isNamed(Self.countsKey)))
                    || (isAtTop && communication && member.isNamed(CommunicationKeys.key))
                    || (isAtTop && image != nil && member.isNamed(Self.imageKey))
            }
            members = given.contains(where: isOurs) ? given.filter { !isOurs($0) } : given
        } else if profile != .rc, let text = message.push.payload?.text(in: profile) {
            members = [.init(Self.textKey, .string(text))]
        }
        // Appending nothing would copy the members of every message.
        if profile != .rc, target != nil { members += revokeMembers(target) }
        return members
    }

    private func revokeMembers(_ target: String?) -> [JSONValue.Member] {
        guard let target else { return [] }
        return [.init(Self.revokeKey, .string(target))] + (isCountedRevoke ? [.init(Self.countsKey, .bool(true))] : [])
    }

    /// Custom keys are next to `aps`.
    private var isAtTop: Bool { profile == .nim || profile == .raw }

    private func write(_ members: [JSONValue.Member], to writer: inout JSONWriter) {
        for member in members { writer.member(member) }
    }

    /// The session if the sender gave none. Null counts as absent.
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
        if !givesID {
            writer.member("sessionid", message.conversation.type == .p2p ? message.from.uid : message.conversation.id)
        }
        if !givesType { writer.member("sessiontype", message.conversation.type.rawValue) }
    }

    /// RongCloud's clients read `appData` as a string: an object's JSON text.
    private func writeRC(
        _ message: borrowing Message, _ custom: [JSONValue.Member], receiver uid: String, to writer: inout JSONWriter
    ) -> Int {
        let type = Self.conversationType(message.conversation.type, custom)
        writer.key("rc")
        writer.beginObject()
        writer.member("cType", type)
        writer.member("fId", message.from.uid)
        writer.member("oName", ifPresent: message.typeName)
        writer.member("tId", Self.target(custom) ?? Self.target(of: message, type))
        writer.member("id", message.msgID)
        writer.key("rId")
        let receiver = writer.placedString(uid).lowerBound
        writer.endObject()
        if let text = message.push.payload?.text(in: profile) {
            writer.member("appData", text)
        } else if !custom.isEmpty {
            var appData = JSONWriter(reservingCapacity: 256)
            appData.value(.object(custom))
            writer.key("appData")
            writer.string(String(decoding: appData.bytes, as: UTF8.self))
        }
        if message.kind == .revoke { write(revokeMembers(message.revoke?.targetMsgID), to: &writer) }
        return receiver
    }

    /// The payload's own `tId`; nil: it gives none.
    private static func target(_ custom: [JSONValue.Member]) -> String? {
        switch custom.value(of: "tId") {
        case .string(let text) where !text.isEmpty: text
        case .number(let text): text
        default: nil
        }
    }

    /// An answer goes to the sender of a message to one person, else to the conversation.
    private static func target(of message: borrowing Message, _ type: String) -> String {
        ["GRP", "DS", "SYS"].containsSame(type) ? message.conversation.id : message.from.uid
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
        // The clients of WPS take one off the icon for it, so a sender cannot set it.
        let given = custom.filter { member in
            !member.isNamed(Self.decreaseKey) && !own.contains { $0.isNamed(member.key) }
        }
        writer.member(.init("message", .object([.init("params", .object(own + given))])))
    }
}
