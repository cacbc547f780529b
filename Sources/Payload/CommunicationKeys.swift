// SPDX-License-Identifier: Apache-2.0
import JSON
import PushCore

/// `im`: sender and conversation, from which the service extension makes a communication notification (the app's
/// `communication`; Apple: "Implementing communication notifications").
enum CommunicationKeys {
    static let key = "im"

    /// Writes nothing for hidden details, for a silent push, for a call, and for an alert that may merge several
    /// senders.
    static func write(_ message: borrowing Message, _ variant: PayloadVariant, to writer: inout JSONWriter) {
        let mayHaveSenders = variant.mergedCount > 1 && message.conversation.type != .p2p
        guard !variant.isHidden, !message.push.silent, !message.push.voip, !mayHaveSenders, !message.from.uid.isEmpty
        else { return }
        writer.key("im")
        writer.beginObject()
        writer.key("sender")
        writer.beginObject()
        writer.member("id", message.from.uid)
        writer.member("name", ifPresent: Self.name(message.from.nick))
        writer.member("avatar", ifPresent: message.from.avatar)
        writer.endObject()
        writer.key("conv")
        writer.beginObject()
        writer.member("id", message.conversation.id)
        writer.member("name", ifPresent: Self.name(message.conversation.name))
        writer.member("group", message.conversation.type.hasMembers)
        writer.endObject()
        writer.member("msg_id", message.msgID)
        writer.endObject()
    }

    private static func name(_ text: String?) -> String? {
        text.map(PlainText.name).flatMap { $0.isEmpty ? nil : $0 }
    }
}
