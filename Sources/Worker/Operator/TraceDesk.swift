import Digits
import EventLoop
import JSON
import PushCore
import Redis

/// Answers the box of the operator's page. It asks Redis on a connection and a thread of its own, which it opens for a
/// question and closes after it: shards know nothing of it, and a Redis that is slow costs nobody else.
///
/// It reads only. Bounded: one message by its id and one user are looked up, never all keys.
struct TraceDesk: Sendable {
    let configuration: Configuration

    /// For one step of Redis; the whole answer has `OperatorPages.answerNanos`.
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
                report = try await store.traceReport(
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

    /// A message of one to one that nobody sent: of a sender and a conversation that there are not, with a new id.
    static func plainMessage(_ question: TraceQuestion, nowMs: Int64) -> [UInt8] {
        let id = "operator-page-\(nowMs)"
        // The sender gets no push himself.
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
