// SPDX-License-Identifier: Apache-2.0
package import APNs
import EventLoop
import Simulator
import Telemetry

/// The pushes of a load on the APNs client alone, the same ones in each run.
package struct BenchPushes {
    package static let topic = "com.example.im"

    private let tokens: [DeviceToken]
    private let headers: PushHeaders
    private let payload: [UInt8]

    package init(
        users: Int, nowMs: Int64, payload: [UInt8] = Array(BenchTraffic.samplePayload.utf8),
        without prefix: String? = nil
    ) throws {
        let traffic = BenchTraffic(users: users, app: "im", topic: Self.topic)
        let texts = (0..<traffic.users).map { traffic.token($0) }
        tokens = texts.filter { text in prefix.map { !text.hasPrefix($0) } ?? true }.compactMap { DeviceToken($0) }
        headers = try PushHeaders(
            topic: Self.topic, pushType: .alert, expirationSeconds: nowMs / 1000 + 86_400,
            collapseID: Array("3b0c44298fc1c149afbf4c8996fb9242".utf8))
        self.payload = payload
    }

    /// - Parameter token: nil for a token of the users.
    package func push(
        _ number: Int, tag: UInt64, to token: DeviceToken? = nil, isSuspect: Bool = false
    ) -> Push {
        Push(
            tag: tag, token: token ?? tokens[number % tokens.count], headers: headers,
            id: PushID(
                high: 0x5F0C_1E9A_8F65_4C3E, low: 0x9D3E_0000_0000_0000 &+ UInt64(number) &* 0x9E37_79B9_7F4A),
            payload: payload, isSuspect: isSuspect)
    }
}

extension APNsClient {
    /// A client with the credentials of a folder, as `carillon simulate` writes it.
    static func forBench(
        loop: Loop, endpoint: String, credentials: String, limits: APNsLimits, delegate: any APNsClientDelegate
    ) throws -> APNsClient {
        try APNsClient(
            loop: loop, endpoint: try APNsEndpoint(url: endpoint, caFile: credentials + "/ca.pem"),
            credential: try .token(
                keyFile: credentials + "/AuthKey_\(DemoCredentials.keyID).p8", keyID: DemoCredentials.keyID,
                teamID: DemoCredentials.teamID), limits: limits,
            metrics: APNsMetrics(registry: MetricsRegistry(), app: "im"), log: Log(level: .error), delegate: delegate)
    }
}
