// SPDX-License-Identifier: Apache-2.0
import PushCore
import Redis

/// The commands of `UserStateTask`.
extension StateStore {
    func bindOwner(_ app: String, _ uid: String, _ binding: UserState.Binding, _ tag: UInt64) throws(RedisFault) {
        try changeOwner(
            OwnerScripts.bindOwner, looksAtUnbinds: true, app, uid, binding.token.hex, binding.version,
            boundMs: binding.token.boundMs, tag)
    }

    func settleOwner(
        _ app: String, _ uid: String, _ token: String, _ version: Int64, _ tag: UInt64
    ) throws(RedisFault) {
        try changeOwner(OwnerScripts.settleOwner, looksAtUnbinds: false, app, uid, token, version, tag)
    }

    func unbindOwner(
        _ app: String, _ uid: String, _ token: String, _ version: Int64, _ tag: UInt64
    ) throws(RedisFault) {
        try changeOwner(OwnerScripts.unbindOwner, looksAtUnbinds: true, app, uid, token, version, tag)
    }

    /// - Parameter looksAtUnbinds: the script's second key is that of early unbinds.
    private func changeOwner(
        _ script: RedisScript, looksAtUnbinds: Bool, _ app: String, _ uid: String, _ token: String, _ version: Int64,
        boundMs: Int64? = nil, _ tag: UInt64
    ) throws(RedisFault) {
        try change(tag, script, keyCount: looksAtUnbinds ? 2 : 1) { command in
            command.key("c:o", app, token)
            if looksAtUnbinds { command.key("c:n", app, token) }
            command.arg(StateKeys.version(version))
            command.arg(uid)
            if let boundMs { command.arg(StateKeys.time(boundMs)) }
        }
    }

    func addToken(
        _ app: String, _ uid: String, _ binding: UserState.Binding, nowMs: Int64, _ tag: UInt64
    ) throws(RedisFault) {
        try change(tag, OwnerScripts.addToken, keyCount: 4) { command in
            command.key("c:u", app, uid)
            command.key("c:s", app, uid)
            command.key("c:a", app, uid)
            command.key("c:b", app, uid)
            command.arg(TokenText.field(device: binding.device, binding.token))
            command.arg(TokenText.head(binding.token, version: binding.version))
            command.arg(StateKeys.version(binding.version))
            command.arg(StateKeys.time(binding.token.boundMs))
            command.arg(binding.token.hex)
            command.arg(binding.boundActivity ?? "")
            for word in TokenText.words(binding.token) { command.arg(word) }
            command.arg(StateKeys.time(nowMs))
            command.arg(TokenText.tail(binding.token))
        }
    }

    /// Adds the user to those who bound an activity. The reply is 1, or 0 if there are too many.
    func listActivityUser(
        _ app: String, _ uid: String, activityID: String, _ tag: UInt64
    ) throws(RedisFault) {
        try change(tag, OwnerScripts.listActivityUser, keyCount: 1) { command in
            command.key("c:v", app, activityID)
            command.arg(uid)
            command.arg(LiveActivity.boundUsersMax)
            command.arg(StateKeys.activitySeconds)
        }
    }

    /// - Parameter isDryRun: only answers what would change.
    func setSettings(
        _ app: String, _ uid: String, _ settings: UserState.SettingsChange, atMs: Int64, nowMs: Int64, _ tag: UInt64,
        isDryRun: Bool = false
    ) throws(RedisFault) {
        try change(tag, isDryRun ? SettingsScripts.settingsDryRun : SettingsScripts.settings, keyCount: 2) { command in
            command.key("c:u", app, uid)
            command.key("c:s", app, uid)
            command.arg(StateKeys.time(atMs))
            command.arg(StateKeys.time(nowMs))
            for (field, value) in SettingsText.pairs(settings) {
                command.arg(field)
                command.arg(value)
            }
        }
    }

    func mute(
        _ app: String, _ uid: String, _ mute: (conversation: String, level: MuteLevel, untilMs: Int64?), atMs: Int64,
        nowMs: Int64, _ tag: UInt64
    ) throws(RedisFault) {
        try change(tag, SettingsScripts.mute, keyCount: 2) { command in
            command.key("c:s", app, uid)
            command.key("c:u", app, uid)
            command.field("m", mute.conversation)
            command.arg(mute.level.rawValue)
            if let untilMs = mute.untilMs { command.arg(untilMs) } else { command.arg(word: "-") }
            command.arg(StateKeys.time(atMs))
            command.arg(StateKeys.time(nowMs))
        }
    }

    func read(
        _ app: String, _ uid: String, _ conversation: String, _ mark: UserState.ReadMark, atMs: Int64, nowMs: Int64,
        clears: Bool, _ tag: UInt64
    ) throws(RedisFault) {
        try change(tag, ReadScripts.read, keyCount: 4) { command in
            command.key("c:s", app, uid)
            command.key("c:l", app, uid)
            command.key("c:x", app, uid)
            command.key("c:u", app, uid)
            command.field("r", conversation)
            command.digestPart(StateKeys.digest(conversation))
            command.end()
            command.optional(mark.seq.flatMap { $0 < 0 ? nil : $0 })
            command.optional(mark.ms.flatMap { $0 < 0 ? nil : StateKeys.time($0) })
            command.arg(StateKeys.time(atMs))
            command.arg(StateKeys.time(nowMs))
            if clears { command.arg(word: "1") }
        }
    }

    func report(
        _ app: String, _ uid: String, value: Int64, clientMs: Int64, nowMs: Int64, _ tag: UInt64
    ) throws(RedisFault) {
        try change(tag, ReadScripts.report, keyCount: 4) { command in
            command.key("c:s", app, uid)
            command.key("c:l", app, uid)
            command.key("c:x", app, uid)
            command.key("c:u", app, uid)
            command.arg(StateKeys.time(clientMs))
            command.arg(min(max(0, value), 1_000_000_000))
            command.arg(StateKeys.time(nowMs))
        }
    }

    /// The device has these messages. The reply is an integer.
    func acknowledge(
        _ app: String, _ uid: String, device: String, _ msgIDs: ArraySlice<String>, nowMs: Int64, _ tag: UInt64
    ) throws(RedisFault) {
        try change(tag, ReportScripts.acknowledge, keyCount: 1) { command in
            command.key("c:k", app, uid)
            command.part(byte: UInt8(ascii: "a"))
            command.part(Int64(device.utf8.count))
            command.part(byte: UInt8(ascii: ":"))
            command.part(device)
            command.end()
            command.arg(StateKeys.time(nowMs))
            command.arg(StateKeys.acknowledgementSeconds)
            command.arg(StateKeys.acknowledgementsMax)
            command.arg(StateKeys.acknowledgementBytesMax)
            for msgID in msgIDs { command.arg(msgID) }
        }
    }

    /// The reply is 1 for the first report of this device about the push, 2 for the same record once more.
    func reportPush(
        _ app: String, _ uid: String, _ report: UserState.PushReport, opened: Bool, record: String, nowMs: Int64,
        _ tag: UInt64
    ) throws(RedisFault) {
        try change(tag, ReportScripts.reportPush, keyCount: 1) { command in
            command.key(opened ? "c:p" : "c:r", app, uid)
            // The length keeps two pairs of push and device apart that read the same in a row.
            command.part(Int64(report.pid.utf8.count))
            command.part(byte: UInt8(ascii: ":"))
            command.part(report.pid)
            command.part(report.device)
            command.end()
            command.arg(StateKeys.time(nowMs))
            command.arg(StateKeys.reportSeconds)
            command.arg(StateKeys.reportsMax)
            command.arg(record)
        }
    }
}
