// SPDX-License-Identifier: Apache-2.0
import Support
import Testing

@testable import Worker

/// The row of workers on the operator's page, from what each tells the others by Redis.
@Suite(.timeLimit(.minutes(10)))
struct FleetNoteTests {
    private static func note(_ host: String, port: UInt16 = 1, url: String? = nil, health: String = "ok") -> FleetNote {
        FleetNote(
            group: "g", host: host, port: port, url: url, health: health, version: "1.0.0", pushRate: 12.5,
            lagRecords: 3, oldestSeconds: 2)
    }

    private static func entry(_ id: String, _ note: FleetNote, atMs: Int64 = 1_000_000) -> StateStore.FleetEntry {
        StateStore.FleetEntry(id: id, note: note.json, atMs: atMs)
    }

    private static func page(_ entries: [StateStore.FleetEntry]) -> String {
        var facts = PageFacts()
        facts.fleet = FleetWorkers(entries, this: "a", group: "g")
        return StatusPage(facts).fleet.html
    }

    @Test func aNoteIsReadAsItWasWritten() throws {
        let note = Self.note("h", url: "http://h:1/")
        #expect(FleetNote(note.json) == note)
        let bare = FleetNote(group: "g", host: "h", health: "starting")
        #expect(FleetNote(bare.json) == bare)
        // A later version adds members.
        #expect(FleetNote(Array(#"{"group":"g","host":"h","health":"ok","x":1}"#.utf8))?.host == "h")
        for text in ["", "{}", "7", #"{"group":"g","host":7,"health":"ok"}"#, "\u{0}"] {
            #expect(FleetNote(Array(text.utf8)) == nil, "\(text)")
        }
    }

    @Test func aLoneWorkerTakesNoRoom() {
        let hidden = "<div id=\"fleet\" data-live hidden></div>"
        #expect(Self.page([]) == hidden)
        #expect(Self.page([Self.entry("a", Self.note("h"))]) == hidden)
        #expect(Self.page([Self.entry("a", Self.note("h")), Self.entry("b", FleetNote(group: "other"))]) == hidden)
    }

    @Test func eachWorkerOfTheGroupHasItsFactsAndALink() {
        let page = Self.page([
            Self.entry("a", Self.note("one")), Self.entry("b", Self.note("two", url: "http://two:9464/")),
            Self.entry("c", Self.note("three", health: "down")),
        ])
        for words in [
            "2 of 3 are ok", "one <span class=\"quiet\">this one</span>", "<a href=\"http://two:9464/\">two</a>",
            "three",
            "down</span>", ">13</td>", ">3</td>", "1.0.0",
        ] {
            #expect(page.contains(words), "\(words): \(page)")
        }
        #expect(!page.contains("data-well"), "one is down")
    }

    @Test func aWorkerWithoutASignIsTold() {
        let page = Self.page([
            Self.entry("a", Self.note("one")), Self.entry("b", Self.note("two"), atMs: 1_000_000 - 40_000),
            Self.entry("c", Self.note("three"), atMs: 1_000_000 - 121_000),
        ])
        #expect(page.contains("no sign for 40 s") && page.contains("1 of 2 are ok"), "\(page)")
    }

    @Test func aLinkLeadsSomewhere() {
        func link(_ url: String, host: String) -> Bool {
            Self.page([Self.entry("a", Self.note("one")), Self.entry("b", Self.note(host, port: 2, url: url))])
                .contains("<a href")
        }
        #expect(link("http://two:1/", host: "two"))
        #expect(link("http://127.0.0.1:2/", host: "one") && !link("http://127.0.0.1:2/", host: "two"))
        #expect(!link("javascript:alert(1)", host: "two") && !link("http://x\"onclick=\"y", host: "two"))
        var http = Configuration.HTTPSection()
        #expect(PageAddress.url(of: http, port: 9) == "http://127.0.0.1:9/")
        http.host = "0.0.0.0"
        #expect(PageAddress.url(of: http, port: 9) == nil)
        http.host = "fd00::1"
        #expect(PageAddress.url(of: http, port: 9) == "http://[fd00::1]:9/")
        http.url = "https://w.example/"
        #expect(PageAddress.url(of: http, port: 9) == "https://w.example/")
    }

    @Test func workersOfOneMachineAreToldByTheirPorts() {
        let page = Self.page([Self.entry("a", Self.note("h", port: 1)), Self.entry("b", Self.note("h", port: 2))])
        #expect(page.contains("h:1 <span") && page.contains("h:2"))
    }

    @Test func hostileNotesAreText() {
        var note = Self.note(StatusPageTests.hostile)
        note.version = StatusPageTests.hostile
        note.health = StatusPageTests.hostile
        let page = Self.page([Self.entry("a", Self.note("one")), Self.entry("b", note)])
        #expect(!page.contains("<script") && page.contains("&lt;script&gt;"))
    }

    @Test func redisKeepsTheNotesOfThoseWhoWroteLately() async throws {
        let world = try StateWorld()
        try await world.connect()
        func tell(_ id: String, _ note: String?, reads: Bool = true, sweeps: Bool = false) async throws -> [String] {
            try await world.ask(
                {
                    try $0.tellFleet(
                        id, note.map { Array($0.utf8) }, readsAll: reads, sweeps: sweeps, nowMs: 1, tag: $1)
                },
                { StateStore.fleet($0).map { "\($0.id) \(String(decoding: $0.note, as: UTF8.self))" } })
        }
        #expect(try await tell("a", "one", reads: false) == [])
        #expect(try await tell("b", "two") == ["a one", "b two"])
        try await world.raw("HSET", "c:w:{fleet}", "wc", "old", "tc", "1000")
        #expect(try await tell("b", "three").count == 3)
        #expect(try await tell("b", "three", sweeps: true) == ["a one", "b three"])
        #expect(try await tell("a", nil) == ["b three"])
        await world.end()
    }
}
