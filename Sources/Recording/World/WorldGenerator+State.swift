// SPDX-License-Identifier: Apache-2.0
internal import JSON

/// Records of `im.user-state`.
extension WorldGenerator {
    func line(_ step: WorldStart.Step) -> [UInt8] {
        switch step {
        case .bind(let user, let isPad, let atMs):
            return bind(user, isPad: isPad, version: WorldStorms.version(after: nil), atMs: atMs)
        case .settings(let user, let atMs):
            beginState("settings", user, atMs: atMs)
            if people.hasDND(user) {
                writer.key("dnd")
                writer.beginObject()
                writer.member("on", true)
                writer.member("start", "22:00")
                writer.member("end", "08:00")
                writer.member("level", user % 2 == 0 ? 5 : 1)
                writer.endObject()
            }
            if people.hidesDetail(user) { writer.member("show_detail", false) }
            return end(atMs: atMs)
        }
    }

    func line(_ act: WorldAct, atMs: Int64) -> [UInt8] {
        switch act {
        case .read(let user, let conversation, let number):
            beginState("read", user, atMs: atMs)
            writer.member("conv_id", name(conversation))
            writer.member("up_to_seq", Int64(number + 1))
        case .acknowledge(let user, let message, let connection):
            beginState("ack", user, atMs: atMs)
            writer.member("device", people.device(user, isPad: false))
            writer.member("conn_epoch", Int64(connection))
            writer.key("msg_ids")
            writer.beginArray()
            writer.string(messageID(message))
            writer.endArray()
        case .unbind(let user, let storm):
            let version = WorldStorms.version(after: WorldStorms.before(storm))
            beginState("unbind", user, atMs: atMs)
            writer.key("token")
            writer.beginObject()
            writer.member("device", people.device(user, isPad: false))
            writer.member("token", people.token(user, isPad: false, version: version))
            writer.member("bind_ver", Int64(version))
            writer.endObject()
        case .bind(let user, let storm):
            return bind(user, isPad: false, version: WorldStorms.version(after: storm), atMs: atMs)
        case .mute(let user, let group, let level):
            beginState("mute", user, atMs: atMs)
            writer.member("conv_id", groups.name(group))
            writer.member("level", Int64(level))
        }
        return end(atMs: atMs)
    }

    private func bind(_ user: Int, isPad: Bool, version: Int, atMs: Int64) -> [UInt8] {
        beginState("bind", user, atMs: atMs)
        writer.key("token")
        writer.beginObject()
        writer.member("device", people.device(user, isPad: isPad))
        writer.member("token", people.token(user, isPad: isPad, version: version))
        writer.member("env", settings.environment)
        writer.member("topic", settings.bundle)
        writer.member("type", "alert")
        writer.member("bind_ver", Int64(version))
        writer.member("lang", people.language(user))
        writer.member("tz", people.zone(user))
        writer.endObject()
        return end(atMs: atMs)
    }
}
