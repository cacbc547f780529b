// SPDX-License-Identifier: Apache-2.0
import Glibc
import Processes
import Redis
import Testing

@testable import Worker

/// The box when Redis is not there; what it answers otherwise is told by `OneWorld.Operator`.
@Suite(.timeLimit(.minutes(5))) struct TraceDeskTests {
    private static let question = TraceQuestion(app: "im", uid: "u", message: "m")

    private static func desk(port: UInt16) throws -> TraceDesk {
        var configuration = try Configuration.read(Array(ConfigurationProblemTests.good.utf8), source: "t").get()
        configuration.redis.topology = .single(try RedisEndpoint(url: "redis://127.0.0.1:\(port)"))
        return TraceDesk(configuration: configuration)
    }

    private static func whyAway(_ answer: TraceAnswer) -> String? {
        if case .away(let why) = answer { why } else { nil }
    }

    @Test func anUnreachableRedisIsReported() async throws {
        let port = try Ports.free()
        let answer = await (try Self.desk(port: port)).answer(Self.question)
        #expect(Self.whyAway(answer)?.hasPrefix("Redis at redis://127.0.0.1:\(port)") ?? false, "\(answer)")
        #expect(answer.status == 503)
    }

    @Test func aRedisThatIsSilentIsGivenUp() async throws {
        let silent = try Ports.silentListener(backlog: 5)
        defer { close(silent.fd) }
        let answer = await (try Self.desk(port: silent.port)).answer(Self.question)
        #expect(Self.whyAway(answer) != nil, "\(answer)")
    }

    @Test func anAppThatIsNotConfiguredIsNotAskedFor() async throws {
        let desk = try Self.desk(port: try Ports.free())
        guard case .wrong(let why) = await desk.answer(TraceQuestion(app: "other", uid: "u")) else {
            Issue.record("it is answered")
            return
        }
        #expect(why == "no app other in the configuration; there is im")
    }
}
