// SPDX-License-Identifier: Apache-2.0
import Kafka

/// A descriptor of the world's loop: readable or not.
package protocol KafkaModelWake: AnyObject {
    var descriptor: Int32 { get }
    func signal()
    func drain()
}

/// How a process of another version writes and reads records.
package protocol RecordTranslation: AnyObject {
    func written(_ value: [UInt8], to topic: String) -> [UInt8]
    func read(_ value: [UInt8], of topic: String) -> [UInt8]
}

/// A process with Kafka clients: its clocks, and whether it runs.
///
/// A paused process takes no answer and sends nothing; what came meanwhile is taken when it runs again. A dead one never does.
package final class ModelHost {
    package let name: String
    let model: KafkaModel
    let makeWake: () -> any KafkaModelWake
    let steadyNanos: () -> UInt64
    let wallMs: () -> Int64
    /// Nil: a process of this version.
    package var translation: (any RecordTranslation)?
    private var isPaused = false
    private(set) var isDead = false
    private var backlog: [() -> Void] = []
    /// What a dead process had sent arrives until then.
    private var lastArrivalNanos: UInt64 = .max

    /// - Parameters:
    ///   - steadyNanos: the process's monotonic clock.
    ///   - wallMs: its Unix time.
    package init(
        _ name: String, _ model: KafkaModel, steadyNanos: @escaping () -> UInt64, wallMs: @escaping () -> Int64,
        makeWake: @escaping () -> any KafkaModelWake
    ) {
        self.name = name
        self.model = model
        self.steadyNanos = steadyNanos
        self.wallMs = wallMs
        self.makeWake = makeWake
    }

    /// The process ends at once: its members do not leave, and what it had not sent is lost. Of its requests on their way some
    /// still arrive.
    package func crash() {
        isDead = true
        backlog = []
        lastArrivalNanos = model.now() &+ model.pick(0...model.settings.delayNanos.upperBound)
    }

    /// Whether a request of the process arrives now.
    var isHeard: Bool { model.now() < lastArrivalNanos }

    package func pause() { isPaused = true }

    package func goOn() {
        isPaused = false
        while !isPaused, !isDead, !backlog.isEmpty { backlog.removeFirst()() }
    }

    /// Runs work of the process's threads, now or when the process goes on.
    func run(_ body: @escaping () -> Void) {
        if isDead { return }
        if isPaused { backlog.append(body) } else { body() }
    }

    func after(_ nanos: UInt64, _ body: @escaping () -> Void) { model.after(nanos) { [self] in run(body) } }
}

/// A connection of a client to a broker: requests arrive in their order, and so do answers.
final class ModelConnection {
    private let host: ModelHost
    private var lastRequest: UInt64 = 0
    private var lastAnswer: UInt64 = 0
    private var model: KafkaModel { host.model }

    init(_ host: ModelHost) { self.host = host }

    /// Asks a broker.
    ///
    /// - Parameters:
    ///   - broker: looked up when the request arrives; nil: none can serve it.
    ///   - serve: at the broker; gives its answer at once or later.
    ///   - take: at the client; nil if the broker was not reached, or its answer was lost.
    func ask<Answer>(
        broker: @escaping () -> Int?, losing share: Double = 0,
        _ serve: @escaping (_ reply: @escaping (Answer) -> Void) -> Void, _ take: @escaping (Answer?) -> Void
    ) {
        let isLost = model.chance(share)
        lastRequest = max(lastRequest + 1, model.now() &+ model.pick(model.settings.delayNanos))
        model.at(lastRequest) { [self] in
            guard host.isHeard else { return }
            guard !isLost, let broker = broker(), model.isUp(broker) else { return answer(nil, take) }
            serve { [self] reply in
                answer(model.isUp(broker) ? reply : nil, take)
            }
        }
    }

    private func answer<Answer>(_ reply: Answer?, _ take: @escaping (Answer?) -> Void) {
        lastAnswer = max(lastAnswer + 1, model.now() &+ model.pick(model.settings.delayNanos))
        model.at(lastAnswer) { [self] in host.run { take(reply) } }
    }
}
