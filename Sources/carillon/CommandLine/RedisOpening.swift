import Console
import EventLoop
import Processes
import Redis
import Worker

/// Connects a command to the configuration's Redis, or says why that cannot be.
enum RedisOpening {
    /// Nil: the reason stands on standard error.
    static func open(_ configuration: Configuration, for command: String) async -> RedisDesk? {
        do throws(RedisOpeningFault) {
            return try await open(configuration)
        } catch {
            Terminal.err("carillon \(command): \(error.message)\n")
            return nil
        }
    }

    static func open(_ configuration: Configuration) async throws(RedisOpeningFault) -> RedisDesk {
        guard case .single(let endpoint) = configuration.redis.topology else {
            throw RedisOpeningFault(message: "Redis Cluster and Sentinel are not supported yet: give one redis.url")
        }
        let desk: RedisDesk
        do throws(LoopFault) {
            desk = try RedisDesk(endpoint: endpoint, limits: configuration.redis.limits)
        } catch {
            throw RedisOpeningFault(message: error.description)
        }
        do throws(RedisFault) {
            try await desk.open()
            return desk
        } catch {
            await desk.close()
            throw RedisOpeningFault(message: "Redis at \(endpoint): \(error)\(cure(error))")
        }
    }

    private static func cure(_ fault: RedisFault) -> String {
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
