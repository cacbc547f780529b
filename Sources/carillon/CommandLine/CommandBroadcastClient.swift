// SPDX-License-Identifier: Apache-2.0
import APNs
import EventLoop

/// A broadcast client for commands: sends one request and waits for it. An actor on its own loop.
actor CommandBroadcastClient {
    private nonisolated let loop: Loop
    private var client: BroadcastClient?

    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    init() throws(LoopFault) {
        loop = try Loop(name: "broadcast")
        loop.start()
    }

    func perform(
        _ request: BroadcastRequest, bundleID: String, at endpoint: APNsEndpoint, _ credential: APNsCredential
    ) async -> Result<BroadcastAnswer, BroadcastFault> {
        let made: BroadcastClient
        do throws(APNsFault) {
            made = try BroadcastClient(loop: loop, endpoint: endpoint, credential: credential)
        } catch {
            return .failure(BroadcastFault(error.description))
        }
        client = made
        return await withCheckedContinuation { continuation in
            made.perform(request, bundleID: bundleID) { continuation.resume(returning: $0) }
        }
    }

    nonisolated func close() async {
        await closeClient()
        loop.stop()
    }

    private func closeClient() {
        client?.close()
        client = nil
    }
}
