// SPDX-License-Identifier: Apache-2.0
import Digits
import PushCore

/// The app, the name (template or `type_name`) and the task that outcomes are counted for. One for all their events.
final class CountedSubject {
    let app: String
    let nameText: String
    let taskText: String
    /// The hash of the name, as Redis and marks have it; 0: none.
    let name: UInt32
    let task: UInt32

    init(app: String, name: String, task: String) {
        self.app = app
        nameText = name
        taskText = task
        self.name = Self.hash(name)
        self.task = Self.hash(task)
    }

    /// As a mark has it: the texts are with Redis.
    init(app: String, name: UInt32, task: UInt32) {
        self.app = app
        nameText = ""
        taskText = ""
        self.name = name
        self.task = task
    }

    /// 0 for an empty text only.
    static func hash(_ text: String) -> UInt32 { text.isEmpty ? 0 : max(1, FNV1a.hash(text)) }
}

/// The subjects of a shard's events, each made once.
struct SubjectTable {
    private struct Key: Hashable {
        var app: ObjectIdentifier
        var name: UInt32
        var task: UInt32
    }

    private var subjects: [Key: CountedSubject] = [:]
    /// The subjects of reports. Redis has their texts.
    private var reported: [Key: CountedSubject] = [:]
    private var last: CountedSubject?
    private var lastApp: ObjectIdentifier?

    /// So many names and tasks are known at once; then they are forgotten and made again.
    private static let subjectsMax = 4_096

    mutating func subject(of app: AppContext, name: String, task: String?) -> CountedSubject {
        let id = ObjectIdentifier(app)
        // The next message usually is of the same kind.
        if let last, lastApp == id, last.nameText == name, last.taskText == task ?? "" { return last }
        let key = Key(app: id, name: CountedSubject.hash(name), task: CountedSubject.hash(task ?? ""))
        let subject = subjects[key] ?? make(key, app, name, task ?? "")
        last = subject
        lastApp = id
        return subject
    }

    mutating func subject(of app: AppContext, _ counts: MarkCounts) -> CountedSubject {
        let key = Key(app: ObjectIdentifier(app), name: counts.name, task: counts.task)
        if let known = reported[key] { return known }
        if reported.count >= Self.subjectsMax { reported.removeAll(keepingCapacity: true) }
        let subject = CountedSubject(app: app.id, name: counts.name, task: counts.task)
        reported[key] = subject
        return subject
    }

    private mutating func make(_ key: Key, _ app: AppContext, _ name: String, _ task: String) -> CountedSubject {
        if subjects.count >= Self.subjectsMax { subjects.removeAll(keepingCapacity: true) }
        let subject = CountedSubject(app: app.id, name: name, task: task)
        subjects[key] = subject
        return subject
    }
}
