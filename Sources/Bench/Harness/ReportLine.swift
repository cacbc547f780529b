// SPDX-License-Identifier: Apache-2.0
import JSON

extension JSONWriter {
    /// The load of the bench, as members of each report.
    mutating func load(_ settings: BenchSettings) {
        count("events", settings.events)
        count("users", settings.users)
        count("shards", settings.shards)
        if let group = settings.group { count("group", group) }
        member("muted", settings.isMuted)
    }

    /// A report: one object as a line.
    static func line(_ members: (inout JSONWriter) -> Void) -> String {
        var writer = JSONWriter(reservingCapacity: 2048)
        writer.object(members)
        return String(decoding: writer.bytes, as: UTF8.self) + "\n"
    }

    mutating func object(_ members: (inout JSONWriter) -> Void) {
        beginObject()
        members(&self)
        endObject()
    }

    mutating func object(_ name: StaticString, _ members: (inout JSONWriter) -> Void) {
        key(name)
        object(members)
    }

    /// An array of objects.
    mutating func objects<Item>(
        _ name: StaticString, _ items: some Sequence<Item>, _ members: (inout JSONWriter, Item) -> Void
    ) {
        key(name)
        beginArray()
        for item in items { object { members(&$0, item) } }
        endArray()
    }

    mutating func count(_ name: StaticString, _ value: Int) { member(name, Int64(value)) }

    /// Nothing for nil.
    mutating func figure(_ name: StaticString, _ value: Double?) {
        guard let value else { return }
        key(name)
        figure(value)
    }

    mutating func figure(_ value: Double) { double((value * 1000).rounded() / 1000) }

    mutating func figures(_ members: [(StaticString, Double?)]) {
        for (name, value) in members { figure(name, value) }
    }
}
