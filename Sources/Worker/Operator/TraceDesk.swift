// SPDX-License-Identifier: Apache-2.0
import Digits
import EventLoop
import JSON
import PushCore
import Redis

/// Answers the trace box of the operator's page. For each question it opens its own Redis connection and thread, and
/// closes them after it. So shards are not involved, and a slow Redis affects nobody else.
///
/// Read-only and bounded: it looks up one message by its id and one user, and never scans all keys.
struct TraceDesk: Sendable {
    let configuration: Configuration

    /// For one Redis command. The whole answer has `OperatorPages.answerNanos`.
    private static let stepNanos: UInt64 = 2_000_000_000
    static let shownMax = 20

    func answer(_ question: TraceQuestion) async -> TraceAnswer {
        guard configuration.apps.contains(where: { $0.policy.id.isSame(as: question.app) }) else {
            let known = configuration.apps.prefix(Self.shownMax).map(\.policy.id).joined(separator: ", ")
            return .wrong("no app \(question.app) in the configuration; there is \(known)")
        }
        var limits = configuration.redis.limits
        limits.commandTimeoutNanos = min(limits.commandTimeoutNanos, Self.stepNanos)
        limits.connectTimeoutNanos = min(limits.connectTimeoutNanos, Self.stepNanos)
        let store: StateReader
        do throws(LoopFault) {
            store = try StateReader(configuration.redis.topology, limits: limits)
        } catch {
            return .away(error.description)
        }
        let answer = await ask(store, question)
        await store.close()
        return answer
    }

    private func ask(_ store: StateReader, _ question: TraceQuestion) async -> TraceAnswer {
        do throws(RedisFault) {
            try await store.open()
            var report: TraceReport?
            if let message = question.message {
                report = try await TraceReads(store).report(
                    app: question.app, uid: question.uid, message: message, settings: configuration.trace,
                    nowMs: Loop.wallMs())
            }
            let explainer = Explainer(configuration, store: store, membersMax: 1)
            let explained = try await explainer.explain(
                Self.plainMessage(question, nowMs: Loop.wallMs()), place: "a plain message")
            return .found(report, now: Array(explained.explanations.prefix(Self.shownMax)))
        } catch {
            return .away("Redis at \(configuration.redis.place): \(error.publicText)")
        }
    }

    /// A hypothetical 1:1 message from a non-existent sender and conversation, with a new id.
    static func plainMessage(_ question: TraceQuestion, nowMs: Int64) -> [UInt8] {
        let id = "operator-page-\(nowMs)"
        // The sender of a message gets no push.
        let sender = question.uid.isSame(as: "operator-page") ? "operator-page-2" : "operator-page"
        var writer = JSONWriter(reservingCapacity: 512)
        writer.beginObject()
        writer.member("v", Int64(1))
        writer.member("kind", "message")
        writer.member("app", question.app)
        writer.member("event_id", id)
        writer.member("msg_id", id)
        writer.member("sent_ms", nowMs)
        writer.key("conv")
        writer.beginObject()
        writer.member("id", "operator-page")
        writer.member("type", "p2p")
        writer.endObject()
        writer.key("from")
        writer.beginObject()
        writer.member("uid", sender)
        writer.endObject()
        writer.key("to")
        writer.beginObject()
        writer.key("uids")
        writer.beginArray()
        writer.string(question.uid)
        writer.endArray()
        writer.endObject()
        writer.key("push")
        writer.beginObject()
        writer.member("content", "a message")
        writer.endObject()
        writer.endObject()
        return writer.bytes
    }
}
