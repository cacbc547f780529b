// SPDX-License-Identifier: Apache-2.0
import PushCore

/// Chunks of large groups: those that were read, and those that the broker refused.
extension Pipeline {
    func beginChunk(_ chunk: ChunkRecord, _ event: Event, _ origin: EventJob.Origin) {
        guard let app = apps[event.app], case .message(let message) = event.body else {
            return chunks.settle(origin.place)
        }
        var origin = origin
        origin.source = chunk.source
        fanOut.begin(EventJob(message, of: event, app: app, raw: chunk.raw, origin: origin, chunk: chunk))
    }

    func takeRefusedChunks() {
        planner.refused.takeAll { event, members in
            event.plan?.unackedCount -= 1
            if !event.isHandedBack { fanOut.start(members, of: event) }
            release(event)
        }
    }
}
