// SPDX-License-Identifier: Apache-2.0
import JSON
import Payload
import PushCore

extension EventReader {
    func message(
        _ record: FieldScope<RecordKey>, _ kind: Message.Kind, sentMs: Int64
    ) throws(BadRecord) -> Message {
        let conversation = try conversation(record)
        let expireAtMs = try record.time(.expireAtMs)
        var message = Message(
            kind: kind,
            msgID: try record.requiredIdentifier(.msgID, bytes: InputLimit.id),
            serverSeq: try record.int(.serverSeq),
            expireAtMs: expireAtMs ?? sentMs &+ InputLimit.dayMs,
            conversation: conversation,
            from: try sender(record),
            to: try audience(record, required: !conversation.type.hasMembers),
            mention: try mention(record),
            typeName: try record.string(.typeName),
            isCustomType: try record.bool(.custom) ?? false,
            push: try pushOptions(record, kind, sentMs: sentMs),
            revoke: try revoke(record, required: kind == .revoke))
        if let atMs = message.push.sendAtMs, expireAtMs == nil { message.expireAtMs = atMs &+ InputLimit.dayMs }
        return message
    }

    private func conversation(_ record: FieldScope<RecordKey>) throws(BadRecord) -> Conversation {
        guard let object = try record.object(.conv) else { throw record.missing(.conv) }
        let part = FieldScope(partKeys.fields(of: object), path: "$.conv")
        return Conversation(
            id: try part.requiredIdentifier(.id, bytes: InputLimit.user),
            type: try part.requiredWord(.type, Conversation.Kind.self, "p2p, group, ultra, system, custom"),
            name: try part.text(.label, limit: InputLimit.conversationName))
    }

    private func sender(_ record: FieldScope<RecordKey>) throws(BadRecord) -> Message.Sender {
        guard let object = try record.object(.from) else { throw record.missing(.from) }
        let part = FieldScope(partKeys.fields(of: object), path: "$.from")
        return Message.Sender(
            uid: try part.requiredIdentifier(.uid, bytes: InputLimit.user),
            nick: try part.text(.nick, limit: InputLimit.nick),
            device: try part.filled(.device, bytes: InputLimit.user),
            avatar: try part.filled(.avatar, bytes: InputLimit.url))
    }

    private func audience(
        _ record: FieldScope<RecordKey>, required: Bool
    ) throws(BadRecord) -> Message.Audience {
        guard let object = try record.object(.to) else {
            if required { throw record.missing(.to) }
            return Message.Audience()
        }
        let part = FieldScope(partKeys.fields(of: object), path: "$.to")
        let uids = try part.uids(.uids, atMost: InputLimit.recipients)
        let limit = try deviceLimit(part)
        if limit?.tokens == nil {
            if required, uids == nil { throw part.missing(.uids) }
        } else if uids != nil {
            throw part.outOfRange(.tokens, "cannot be given with uids")
        }
        return Message.Audience(uids: uids, exclude: try part.uids(.exclude, mayBeEmpty: true) ?? [], limit: limit)
    }

    private func deviceLimit(_ part: FieldScope<PartKey>) throws(BadRecord) -> DeviceLimit? {
        let devices = try part.identifiers(.devices, bytes: InputLimit.user, atMost: InputLimit.addressed)
        let tokens = try part.hexTokens(.tokens, atMost: InputLimit.addressed)
        return devices == nil && tokens == nil ? nil : DeviceLimit(devices: devices, tokens: tokens)
    }

    private func mention(_ record: FieldScope<RecordKey>) throws(BadRecord) -> Message.Mention? {
        guard let object = try record.object(.mention) else { return nil }
        let part = FieldScope(partKeys.fields(of: object), path: "$.mention")
        return Message.Mention(all: try part.bool(.all) ?? false, uids: try part.uids(.uids, mayBeEmpty: true) ?? [])
    }

    private func revoke(_ record: FieldScope<RecordKey>, required: Bool) throws(BadRecord) -> Message.Revoke? {
        // In an ordinary message the field has no meaning.
        guard required else { return nil }
        guard let object = try record.object(.revoke) else { throw record.missing(.revoke) }
        let part = FieldScope(partKeys.fields(of: object), path: "$.revoke")
        return Message.Revoke(
            targetMsgID: try part.requiredIdentifier(.targetMsgID, bytes: InputLimit.id),
            badge: try part.word(.badge, Message.Revoke.Badge.self, "decrease, keep, count") ?? .decrease)
    }

    private func pushOptions(
        _ record: FieldScope<RecordKey>, _ kind: Message.Kind, sentMs: Int64
    ) throws(BadRecord) -> PushOptions {
        guard let object = try record.object(.push) else { return PushOptions() }
        let push = FieldScope(pushKeys.fields(of: object), path: "$.push")
        return PushOptions(
            enabled: try push.bool(.enabled) ?? true,
            title: try push.text(.title, limit: InputLimit.title),
            content: try push.text(.content, limit: InputLimit.content),
            prefix: try push.bool(.prefix) ?? true,
            badge: try push.bool(.badge) ?? true,
            force: try force(push),
            forceDetail: try push.bool(.forceDetail) ?? false,
            payload: try payload(push),
            aps: try push.value(.aps),
            profile: try push.word(.profile, PayloadProfile.self, "nim, rc, wps, raw"),
            sound: try push.string(.sound),
            threadID: try push.string(.threadID),
            category: try push.string(.category),
            interruption: try interruption(push),
            collapseID: try push.string(.collapseID),
            silent: try push.bool(.silent) ?? false,
            voip: try push.bool(.voip) ?? false,
            priority: try push.word(.priority, PushOptions.Priority.self, "high, normal, low") ?? .high,
            strategy: try push.int(.strategy, in: 1...4).flatMap { Strategy(rawValue: $0) },
            sms: try push.bool(.sms) ?? false,
            subtitle: try push.text(.subtitle, limit: InputLimit.title),
            image: try push.filled(.image, bytes: InputLimit.url),
            template: try template(push),
            taskID: try push.filled(.taskID, bytes: InputLimit.task),
            isMutable: try push.bool(.mutable) ?? true,
            sendAtMs: try sendAtMs(push, kind, sentMs: sentMs))
    }

    /// - Returns: nil for a message that is decided when it comes: without the field, and with a time that is not after `sent_ms`.
    private func sendAtMs(
        _ push: FieldScope<PushKey>, _ kind: Message.Kind, sentMs: Int64
    ) throws(BadRecord) -> Int64? {
        guard let atMs = try push.time(.sendAtMs) else { return nil }
        let value = try push.required(.sendAtMs)
        if kind == .revoke { throw push.outOfRange(.sendAtMs, "cannot be given in a revoke") }
        guard atMs &- sentMs <= InputLimit.scheduleMs else {
            throw push.outOfRange(.sendAtMs, "must be at most 7 days after sent_ms")
        }
        guard value.documentCount <= InputLimit.parkedBytes else {
            throw push.fault(
                .tooLong, "a scheduled message has at most \(InputLimit.parkedBytes) bytes", .sendAtMs, value)
        }
        return atMs > sentMs ? atMs : nil
    }

    private func interruption(_ push: FieldScope<PushKey>) throws(BadRecord) -> String? {
        try push.word(
            .interruption, PushOptions.Interruption.self, "passive, active, time-sensitive, critical")?.rawValue
    }

    private func force(_ push: FieldScope<PushKey>) throws(BadRecord) -> PushOptions.Force {
        guard let object = try push.object(.force) else { return PushOptions.Force() }
        let part = FieldScope(partKeys.fields(of: object), path: "$.push.force")
        return PushOptions.Force(
            mode: try part.word(.mode, PushOptions.Force.Mode.self, "none, list, all") ?? .none,
            uids: try part.uids(.uids, atMost: InputLimit.forced, mayBeEmpty: true) ?? [],
            content: try part.text(.content, limit: InputLimit.content),
            liftsMute: try part.bool(.liftMute) ?? true)
    }

    private func template(_ push: FieldScope<PushKey>) throws(BadRecord) -> PushOptions.Template? {
        guard let object = try push.object(.template) else { return nil }
        let part = FieldScope(partKeys.fields(of: object), path: "$.push.template")
        return PushOptions.Template(
            id: try part.requiredIdentifier(.id), args: try part.texts(.args, limit: InputLimit.content))
    }

    private func payload(_ push: FieldScope<PushKey>) throws(BadRecord) -> CustomPayload? {
        guard let value = push.fields[.payload] else { return nil }
        if let utf8 = value.utf8 { return try payload(utf8, value, push) }
        guard value.isObject else { throw push.fault(.wrongType, "must be an object or a string", .payload, value) }
        guard case .object(let members) = try push.value(.payload, value) else { return nil }
        // The limit counts compact JSON with no more escapes than needed. Most records are shorter as a whole.
        if value.documentCount > InputLimit.payload, let source = value.sourceBytes, source.count > InputLimit.payload {
            var writer = JSONWriter()
            writer.value(.object(members))
            if Self.isLong(writer.count, { String(decoding: writer.bytes, as: UTF8.self) }) {
                throw Self.longPayload(push, value)
            }
        }
        return .object(members)
    }

    /// A payload that is a text; an empty one is absent.
    private func payload(
        _ utf8: UnsafeBufferPointer<UInt8>, _ value: JSONCursor, _ push: FieldScope<PushKey>
    ) throws(BadRecord) -> CustomPayload? {
        if utf8.isEmpty { return nil }
        guard !Self.isLong(utf8.count, { String(decoding: utf8, as: UTF8.self) }) else {
            throw Self.longPayload(push, value)
        }
        return .text(String(decoding: utf8, as: UTF8.self), members: members(spelledBy: utf8))
    }

    /// The members of this JSON text if it is an object; nil for every other text.
    private func members(spelledBy utf8: UnsafeBufferPointer<UInt8>) -> [JSONValue.Member]? {
        guard utf8.first(where: { ![0x20, 0x09, 0x0a, 0x0d].contains($0) }) == UInt8(ascii: "{") else { return nil }
        let parsed = payloadParser.parse(UnsafeRawBufferPointer(utf8)) { root in try? JSONValue(root) }
        guard case .read(.object(let members)) = parsed else { return nil }
        return members
    }

    private static func longPayload(_ push: FieldScope<PushKey>, _ value: JSONCursor) -> BadRecord {
        push.fault(.longPayload, "longer than \(InputLimit.payload) characters", .payload, value)
    }

    private static func isLong(_ bytes: Int, _ text: () -> String) -> Bool {
        if bytes <= InputLimit.payload { return false }
        return bytes > TextCut.bytes(ofCharacters: InputLimit.payload) || text().count > InputLimit.payload
    }
}
