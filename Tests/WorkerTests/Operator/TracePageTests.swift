// SPDX-License-Identifier: Apache-2.0
import EventLoop
import Foundation
import JSON
import PushCore
import Support
import Testing

@testable import Worker

@Suite struct TracePageTests {
    @Test(
        arguments: [
            (nil, .empty), ("", .empty), ("other=1", .empty),
            ("app=im&user=u%201&msg=m-1", .question(TraceQuestion(app: "im", uid: "u 1", message: "m-1"))),
            ("app=im&user=u&msg=", .question(TraceQuestion(app: "im", uid: "u", message: nil))),
            ("app=im&msg=m", .wrong("the user is missing")), ("user=u", .wrong("the app is missing")),
            ("app=%zz", .wrong("the address cannot be read")),
            (
                "app=im&user=" + String(repeating: "u", count: 129),
                .wrong("an id is longer than the contract allows: app and message 64 bytes, user 128")
            ),
        ] as [(String?, TraceQuestion.Reading)])
    func aQuestionIsReadOrRefused(query: String?, reading: TraceQuestion.Reading) {
        #expect(TraceQuestion.read(query) == reading)
    }

    private static func page(_ answer: TraceAnswer?, _ question: TraceQuestion? = nil) -> String {
        TracePage(form: TraceForm(apps: ["im", "other"], question: question), answer: answer).markup.html
    }

    @Test func theFormKeepsWhatWasAskedAndEveryFieldHasALabel() {
        let page = Self.page(nil, TraceQuestion(app: "other", uid: "\"u\"", message: "m<1"))
        #expect(page.contains("<option selected>other</option>") && page.contains("value=\"&quot;u&quot;\""))
        #expect(page.contains("value=\"m&lt;1\""))
        for field in ["app", "user", "msg"] {
            #expect(
                page.contains("<label for=\"ask-\(field)\">") && page.contains("id=\"ask-\(field)\" name=\"\(field)\""))
        }
        #expect(!page.contains("data-live"))
    }

    @Test func hostileTextsOfATraceAreText() {
        let hostile = StatusPageTests.hostile
        var record = TraceRecord(
            atMs: .max, sentMs: .min, kind: .message, msgID: hostile, eventID: hostile + "2",
            facts: DecisionFacts(rawValue: .max))
        record.devices = [
            TraceRecord.Device(
                device: hostile, verdict: .rejected, reason: hostile, status: 400, badge: .max, attempts: 1,
                latencyMs: .min, atMs: 0)
        ]
        let explanation = Explanation(
            uid: hostile, device: hostile, route: .apns, verdict: hostile, reason: hostile,
            steps: [Explanation.Step(1, hostile, input: hostile, outcome: hostile, passes: false)],
            payload: Array("PAYLOAD".utf8), headers: [])
        let question = TraceQuestion(app: "im", uid: hostile, message: hostile)
        for answer: TraceAnswer in [
            .found(.records([record], waiting: []), now: [explanation]), .found(.absent(hostile), now: []),
            .wrong(hostile),
            .away(hostile),
        ] {
            let page = Self.page(answer, question)
            #expect(page.components(separatedBy: "<script").count == 2 && !page.contains("alert(\""))
            #expect(page.contains("&lt;script&gt;") && !page.contains("PAYLOAD"))
        }
    }

    @Test func theBoxAsksWithAMessageThatTheReaderAccepts() throws {
        let reader = EventReader(apps: ["im"])
        for uid in ["u", "operator-page", "\"\\\u{1}汉"] {
            let event = try reader.read(
                TraceDesk.plainMessage(TraceQuestion(app: "im", uid: uid), nowMs: 1_700_000_000_000), of: .events)
            guard case .message(let message) = event.body else {
                Issue.record("no message")
                return
            }
            #expect(message.value.isMeant(for: uid))
        }
    }

    @Test func theBoxTakesOneQuestionAtATimeAndEndsOneThatTakesTooLong() async throws {
        let test = try TestLoop("box")
        let bench = BoxBench()
        // Nobody answers: it is told so after its time.
        let late = await withCheckedContinuation { told in
            test.loop.post {
                let box = TraceBox(loop: test.loop, limitNanos: 50_000_000)
                bench.box = box
                #expect(box.begin { told.resume(returning: BoxBench.words($0)) })
                #expect(!box.begin { bench.told.append(BoxBench.words($0)) })
            }
        }
        #expect(late == "Redis did not answer in time")
        await test.run { _ in
            let busy = "another question is in progress: ask again in a moment"
            #expect(bench.told == [busy])
            #expect(bench.ask() == false && bench.told == [busy, busy])
            // Its answer reaches nobody, and frees the place.
            bench.box?.end(.wrong("late"))
            #expect(bench.ask() == true && bench.told.count == 2)
            bench.box?.end(.wrong("found"))
            #expect(bench.told.last == "found" && bench.told.count == 3)
            bench.box = nil
        }
        await test.end()
    }
}

/// Touched on the loop only.
private final class BoxBench: @unchecked Sendable {
    var box: TraceBox?
    var told: [String] = []

    func ask() -> Bool? {
        box?.begin { [unowned self] in told.append(Self.words($0)) }
    }

    static func words(_ answer: TraceAnswer) -> String {
        switch answer {
        case .found: "found"
        case .wrong(let why), .away(let why): why
        }
    }
}
