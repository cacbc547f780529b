// SPDX-License-Identifier: Apache-2.0
import JSON
import PushCore

/// The keys of a record's own object, for all kinds (contract section 2).
enum RecordKey: Int, JSONKey {
    case version, kind, app, eventID, sentMs
    case msgID, serverSeq, expireAtMs, conv, from, to, mention, typeName, custom, push, revoke
    case la
    case uid, token, dnd, showDetail, pushWhenDesktopOnline, holdS, lang, convID, level, untilMs, upToSeq, upToMs
    case device, value, clientMs, connEpoch, msgIDs, pid, openedMs, arrivedMs, phone
    case levels, snoozeUntilMs

    var name: StaticString {
        switch self {
        case .version: "v"
        case .kind: "kind"
        case .app: "app"
        case .eventID: "event_id"
        case .sentMs: "sent_ms"
        case .msgID: "msg_id"
        case .serverSeq: "server_seq"
        case .expireAtMs: "expire_at_ms"
        case .conv: "conv"
        case .from: "from"
        case .to: "to"
        case .mention: "mention"
        case .typeName: "type_name"
        case .custom: "custom"
        case .push: "push"
        case .revoke: "revoke"
        case .la: "la"
        case .uid: "uid"
        case .token: "token"
        case .dnd: "dnd"
        case .showDetail: "show_detail"
        case .pushWhenDesktopOnline: "push_when_desktop_online"
        case .holdS: "hold_s"
        case .lang: "lang"
        case .convID: "conv_id"
        case .level: "level"
        case .untilMs: "until_ms"
        case .upToSeq: "up_to_seq"
        case .upToMs: "up_to_ms"
        case .device: "device"
        case .value: "value"
        case .clientMs: "client_ms"
        case .connEpoch: "conn_epoch"
        case .msgIDs: "msg_ids"
        case .pid: "pid"
        case .openedMs: "opened_ms"
        case .arrivedMs: "arrived_ms"
        case .phone: "phone"
        case .levels: "levels"
        case .snoozeUntilMs: "snooze_until_ms"
        }
    }
}

/// The keys of the small objects of a message: `conv`, `from`, `to`, `mention`, `revoke`, `push.force`, `push.template`.
enum PartKey: Int, JSONKey {
    case id, type, uid, nick, device, uids, exclude, all, targetMsgID, badge, mode, content, liftMute, avatar, label
    case devices, tokens, args

    var name: StaticString {
        switch self {
        case .id: "id"
        case .type: "type"
        case .uid: "uid"
        case .nick: "nick"
        case .device: "device"
        case .uids: "uids"
        case .exclude: "exclude"
        case .all: "all"
        case .targetMsgID: "target_msg_id"
        case .badge: "badge"
        case .mode: "mode"
        case .content: "content"
        case .liftMute: "lift_mute"
        case .avatar: "avatar"
        case .label: "name"
        case .devices: "devices"
        case .tokens: "tokens"
        case .args: "args"
        }
    }
}

enum PushKey: Int, JSONKey {
    case enabled, title, content, prefix, badge, force, forceDetail, payload, aps, profile, sound, threadID, category
    case interruption, collapseID, silent, voip, priority, strategy, sms, subtitle, image, template, taskID, mutable,
        sendAtMs

    var name: StaticString {
        switch self {
        case .enabled: "enabled"
        case .title: "title"
        case .content: "content"
        case .prefix: "prefix"
        case .badge: "badge"
        case .force: "force"
        case .forceDetail: "force_detail"
        case .payload: "payload"
        case .aps: "aps"
        case .profile: "profile"
        case .sound: "sound"
        case .threadID: "thread_id"
        case .category: "category"
        case .interruption: "interruption"
        case .collapseID: "collapse_id"
        case .silent: "silent"
        case .voip: "voip"
        case .priority: "priority"
        case .strategy: "strategy"
        case .sms: "sms"
        case .subtitle: "subtitle"
        case .image: "image"
        case .template: "template"
        case .taskID: "task_id"
        case .mutable: "mutable"
        case .sendAtMs: "send_at_ms"
        }
    }
}

enum ActivityKey: Int, JSONKey {
    case activityID, event, state, attributesType, attributes, alert, staleMs, dismissalMs, relevance, priority
    case inputPushToken, inputPushChannel, channel

    var name: StaticString {
        switch self {
        case .activityID: "activity_id"
        case .event: "event"
        case .state: "state"
        case .attributesType: "attributes_type"
        case .attributes: "attributes"
        case .alert: "alert"
        case .staleMs: "stale_ms"
        case .dismissalMs: "dismissal_ms"
        case .relevance: "relevance"
        case .priority: "priority"
        case .inputPushToken: "input_push_token"
        case .inputPushChannel: "input_push_channel"
        case .channel: "channel"
        }
    }
}

enum TokenKey: Int, JSONKey {
    case device, token, env, topic, type, bindVer, cert, contentKey, lang, tz, activityID, attributesType
    case alerts

    var name: StaticString {
        switch self {
        case .device: "device"
        case .token: "token"
        case .env: "env"
        case .topic: "topic"
        case .type: "type"
        case .bindVer: "bind_ver"
        case .cert: "cert"
        case .contentKey: "content_key"
        case .lang: "lang"
        case .tz: "tz"
        case .activityID: "activity_id"
        case .attributesType: "attributes_type"
        case .alerts: "alerts"
        }
    }
}

/// The conversation types of `settings.levels`.
enum LevelKey: Int, JSONKey {
    case p2p, group, ultra, system, custom

    var name: StaticString {
        switch self {
        case .p2p: "p2p"
        case .group: "group"
        case .ultra: "ultra"
        case .system: "system"
        case .custom: "custom"
        }
    }

    var type: Conversation.Kind {
        switch self {
        case .p2p: .p2p
        case .group: .group
        case .ultra: .ultra
        case .system: .system
        case .custom: .custom
        }
    }
}

enum QuietKey: Int, JSONKey {
    case on, start, end, tz, level, days, windows

    var name: StaticString {
        switch self {
        case .on: "on"
        case .start: "start"
        case .end: "end"
        case .tz: "tz"
        case .level: "level"
        case .days: "days"
        case .windows: "windows"
        }
    }
}
