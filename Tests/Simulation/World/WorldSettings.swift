import Crypto
import Glibc
import Worker

/// What all worlds of a process share: the provider key and the configuration's files.
struct WorldSettings {
    let key: PrivateKey
    private let keyPath: String

    /// A key for these tests only: signatures, and so all bytes, are the same in each process.
    private static let keyPEM = """
        -----BEGIN PRIVATE KEY-----
        MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgB9l98e2aY40Ue/Tu
        5SQhNKhN+TEgNvqu930lD5o3P6ihRANCAARqu/0dFd0IpFnxp49FUKed5kiBnoM4
        j9JHW4+18s0bH1lyeUZC35mT+p7r3OZ7ZCJ0vX5KBJycGsXybtI5lyFJ
        -----END PRIVATE KEY-----

        """

    /// - Parameter folder: receives the key's file.
    init(folder: String) throws {
        key = try PrivateKey(pem: Array(Self.keyPEM.utf8))
        keyPath = folder + "/AuthKey_ABC123DEFG.p8"
        let file = open(keyPath, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
        guard file >= 0 else { throw SimulationFault("cannot write \(keyPath)") }
        _ = write(file, Self.keyPEM, Self.keyPEM.utf8.count)
        close(file)
    }

    func configuration(_ plan: Plan) throws -> Configuration {
        var text = """
            kafka: {brokers: "127.0.0.6:9092", group: carillon}
            redis: {url: "redis://\(RedisSeat.address)"}
            state_results: true
            shards: 1
            apps:

            """
        for app in plan.apps {
            text += """
                  - id: \(app)
                    topic: com.example.\(app)
                    environment: production
                    endpoint: https://apns.test
                    ca_file: /etc/ssl/certs/ca-certificates.crt
                    credentials: {key_file: \(keyPath), key_id: ABC123DEFG, team_id: DEF123GHIJ}
                    profile: nim

                """
        }
        switch Configuration.read(Array(text.utf8), source: "simulation") {
        case .success(let configuration): return configuration
        case .failure(let problems): throw SimulationFault("\(problems)")
        }
    }
}

/// A run cannot begin.
public struct SimulationFault: Error, CustomStringConvertible {
    public let description: String

    init(_ description: String) { self.description = description }
}
