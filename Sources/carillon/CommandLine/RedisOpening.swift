// SPDX-License-Identifier: Apache-2.0
import Console
import EventLoop
import Processes
import Redis
import Worker

/// Connects a command to the configuration's Redis, or reports why it cannot.
enum RedisOpening {
    /// - Returns: nil after printing the reason to standard error.
    static func open(_ configuration: Configuration, for command: String) async -> StateReader? {
        do throws(RedisOpeningFault) {
            return try await open(configuration)
        } catch {
            Terminal.err("carillon \(command): \(error.message)\n")
            return nil
        }
    }

    static func open(_ configuration: Configuration) async throws(RedisOpeningFault) -> StateReader {
        let store: StateReader
        do throws(LoopFault) {
            store = try StateReader(configuration.redis.topology, limits: configuration.redis.limits)
        } catch {
            throw RedisOpeningFault(message: error.description)
        }
        do throws(RedisFault) {
            try await store.open()
            return store
        } catch {
            await store.close()
            throw RedisOpeningFault(message: "Redis at \(configuration.redis.place): \(error)\(cure(error))")
        }
    }

    static func cure(_ fault: RedisFault) -> String {
        switch fault.code {
        case .unreachable, .notConnected, .connectionLost: "; is it running, and is redis.url right?"
        case .authentication: "; see redis.user and redis.password_file"
        case .timeout: "; it does not answer within redis.timeout_ms"
        default: ""
        }
    }
}

struct RedisOpeningFault: Error {
    var message: String
}
