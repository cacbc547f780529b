// SPDX-License-Identifier: Apache-2.0
import Console
import EventLoop
import Glibc
import JSON
import Payload
import PushCore
import Worker

/// `carillon bench --decide`: the cost of decision and rendering alone, on one thread, without any server.
///
/// The events are those of the throughput phase, parsed beforehand. A 1:1 event has a payload encoded for its only
/// receiver; members of a group share the payload by language. CPU is the thread's own; the figures are medians of the
/// rounds.
struct DecideBench {
    let settings: BenchSettings

    /// Microseconds of CPU per recipient. Each stage includes the stages before it.
    struct Stages {
        var decide: Double
        var payload: Double
        var headers: Double
    }

    func run() throws -> ExitCode {
        let parts = try Parts(settings)
        let direct = median { measure(parts, parts.direct) }
        let group = median { measure(parts, parts.group) }
        Terminal.out(
            asJSON: settings.printsJSON, json: json(direct, group),
            text: TerminalText(lines: text(direct, group)))
        return .done
    }

    /// Events, receivers and rules in the form in which the worker keeps them.
    private struct Parts {
        var policy: AppPolicy
        var templates: Templates
        let zones = SystemZones()
        var recipients: [Recipient] = []
        /// Each event with its one receiver.
        var direct: [(event: Event, recipients: Range<Int>)] = []
        /// Each event with all members.
        var group: [(event: Event, recipients: Range<Int>)] = []
        let nowMs = Loop.wallMs()

        /// Few enough to fit the processor's caches, like the events that a worker processes at one time.
        private static let eventsMax = 1_000

        init(_ settings: BenchSettings) throws {
            policy = AppPolicy(id: "im", topic: BenchPushes.topic)
            policy.badgeCap = 99
            templates = Templates(languages: [
                "zh-Hans": .init(generic: "你收到一条新消息"), "en": .init(generic: "You have a new message"),
            ])
            let members = max(2, settings.group ?? 1_000)
            let traffic = BenchTraffic(users: max(Self.eventsMax, members), app: policy.id, topic: policy.topic)
            let reader = EventReader(apps: [policy.id])
            for user in 0..<traffic.users {
                let bind = try reader.read(Array(traffic.bind(user, atMs: nowMs - 1_000).value.utf8), of: .userState)
                guard case .userState(let state) = bind.body, case .bind(let binding) = state.change else { continue }
                var recipient = Recipient(uid: state.uid)
                recipient.tokens = [
                    BoundToken(device: binding.device, record: binding.token, version: binding.version)
                ]
                recipients.append(recipient)
            }
            for number in 0..<Self.eventsMax {
                let record = traffic.message(number, series: "d", atMs: nowMs)
                direct.append((try reader.read(Array(record.value.utf8), of: .events), number..<number + 1))
            }
            for number in 0..<10 {
                let record = traffic.groupMessage(number, group: members, series: "d", atMs: nowMs)
                group.append((try reader.read(Array(record.value.utf8), of: .events), 0..<members))
            }
        }
    }

    private enum Stage { case decide, payload, headers }

    private func measure(_ parts: Parts, _ events: [(event: Event, recipients: Range<Int>)]) -> Stages {
        Stages(
            decide: micros(parts, events, .decide), payload: micros(parts, events, .payload),
            headers: micros(parts, events, .headers))
    }

    /// Repeats the events until `--events` recipients were processed.
    private func micros(_ parts: Parts, _ events: [(event: Event, recipients: Range<Int>)], _ stage: Stage) -> Double {
        var served = 0
        var bytes = 0
        let start = Loop.threadNanos()
        while served < settings.events {
            for (event, recipients) in events {
                guard case .message(let message) = event.body else { continue }
                bytes += Self.serve(message.value, event.sentMs, recipients, parts, stage)
                served += recipients.count
            }
        }
        let nanos = Loop.threadNanos() - start
        precondition(bytes > 0, "nothing was made")
        return Double(nanos) / 1000 / Double(served)
    }

    private static func serve(
        _ message: borrowing Message, _ sentMs: Int64, _ recipients: Range<Int>, _ parts: borrowing Parts,
        _ stage: Stage
    ) -> Int {
        var bytes = 0
        var payloads = EventPayloads(message, policy: parts.policy)
        if stage == .headers { bytes += EventHeaders(message, profile: parts.policy.profile).collapseID?.count ?? 0 }
        for index in recipients {
            let decision = PushCore.decide(
                message, sentMs: sentMs, for: parts.recipients[index], policy: parts.policy, zones: parts.zones,
                now: parts.nowMs)
            bytes += decision.routes.count
            if stage == .decide { continue }
            for route in decision.routes {
                guard case .apns(let token, _) = route.way else { continue }
                bytes += push(message, parts.recipients[index], token, decision, &payloads, parts)
            }
        }
        return bytes
    }

    private static func push(
        _ message: borrowing Message, _ recipient: borrowing Recipient, _ token: Int, _ decision: borrowing Decision,
        _ payloads: inout EventPayloads, _ parts: borrowing Parts
    ) -> Int {
        let record = recipient.tokens[token].record
        let id = PushID.make(
            app: parts.policy.id, uid: recipient.uid, msgID: message.msgID, kind: message.kind.rawValue,
            tokenHex: record.hex)
        let variant = PayloadVariant(
            message, token: record, settings: recipient.settings, isForced: decision.alert == .allow(forced: true),
            defaultLanguage: parts.policy.defaultLanguage)
        let badge = BadgeRule.besideAlert(3, cap: parts.policy.badgeCap)
        return payloads.template(variant, of: message, templates: parts.templates)?
            .render(badge: badge, pid: id, receiver: recipient.uid)?.count ?? 0
    }

    private func median(_ measure: () -> Stages) -> Stages {
        _ = measure()
        let rounds = (0..<settings.rounds).map { _ in measure() }
        func median(_ part: KeyPath<Stages, Double>) -> Double {
            BenchReport.median(rounds.map { $0[keyPath: part] }) ?? 0
        }
        return Stages(
            decide: median(\.decide), payload: median(\.payload), headers: median(\.headers))
    }

    // MARK: - Report

    private func text(_ direct: Stages, _ group: Stages) -> String {
        func row(_ name: String, _ stages: Stages) -> String {
            let fields = [stages.decide, stages.payload, stages.headers].map {
                BenchText.column(BenchText.tenths($0), 12)
            }
            return BenchText.name(name, 22) + fields.joined() + "\n"
        }
        return """
            µs of CPU per recipient, medians of \(settings.rounds) rounds of \(settings.events)
                                        decide   + payload   + headers

            """ + row("1:1", direct) + row("group of \(max(2, settings.group ?? 1_000))", group)
    }

    private func json(_ direct: Stages, _ group: Stages) -> String {
        JSONWriter.line { writer in
            writer.count("recipients", settings.events)
            writer.count("rounds", settings.rounds)
            writer.count("members", max(2, settings.group ?? 1_000))
            for (name, stages) in [("direct", direct), ("group", group)] as [(StaticString, Stages)] {
                writer.object(name) {
                    $0.figures([
                        ("decide_cpu_us", stages.decide), ("with_payload_cpu_us", stages.payload),
                        ("with_headers_cpu_us", stages.headers),
                    ])
                }
            }
        }
    }
}
