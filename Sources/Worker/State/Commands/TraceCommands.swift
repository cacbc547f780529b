// SPDX-License-Identifier: Apache-2.0
import PushCore
import Redis

/// Finds traces: marks by key, and the keys of a user's marks.
extension StateStore {
    /// A page of the keys of a user's marks, from a scan of all keys on that user's server: `{cursor, keys}`.
    func scanMarks(app: String, uid: String, cursor: UInt64, count: Int, tag: UInt64) throws(RedisFault) {
        try client.command(tag, toNodeOf: StateKeys.tag(app, uid)) { command in
            command.arg(word: "SCAN")
            command.arg(String(cursor))
            command.arg(word: "MATCH")
            command.part(word: "c:d")
            command.part(Int64(uid.utf8.count))
            command.part(word: ":")
            command.part(Self.literal(StateKeys.tag(app, uid)))
            command.part(word: "*")
            command.end()
            command.arg(word: "COUNT")
            command.arg(count)
        }
    }

    /// Kind and id of a mark's key; nil if it is not a mark of this user.
    static func mark(ofKey key: UnsafeRawBufferPointer, app: String, uid: String) -> (kind: PairKind, id: String)? {
        let head = Array("c:d\(uid.utf8.count):\(StateKeys.tag(app, uid))".utf8)
        guard key.count > head.count, key.prefix(head.count).elementsEqual(head),
            let kind = PairKind(rawValue: String(decoding: key[head.count...head.count], as: UTF8.self))
        else { return nil }
        let id = UnsafeRawBufferPointer(rebasing: key[(head.count + 1)...])
        return CompactText.text(id, atMost: InputLimit.id).map { (kind, $0) }
    }

    /// A glob that matches only this text.
    static func literal(_ text: String) -> String {
        var glob = ""
        for scalar in text.unicodeScalars {
            if "*?[]^\\".unicodeScalars.contains(scalar) { glob += "\\" }
            glob.unicodeScalars.append(scalar)
        }
        return glob
    }
}
