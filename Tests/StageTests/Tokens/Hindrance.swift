// SPDX-License-Identifier: Apache-2.0
import JSON
import Simulator
import VirtualStage

/// Why a push cannot go now, although everything about it is decided.
enum Hindrance: String, CaseIterable, Sendable {
    /// APNs refuses connections.
    case away
    case unavailable
    case tooMany

    private var answer: ScenarioAnswer? {
        switch self {
        case .away: nil
        case .unavailable: .unavailable
        case .tooMany: .tooMany
        }
    }

    /// Runs a closure while APNs takes nothing; gives everything that came to it before and meanwhile.
    func during(_ stage: Stage, _ body: () throws -> Void) throws -> Seen {
        var gone: [LedgerEntry] = []
        if let answer {
            stage.answerPushes(answer)
        } else {
            gone = stage.takeAPNsDown()
        }
        do {
            try body()
        } catch {
            try end(stage)
            throw error
        }
        try end(stage)
        try stage.settle()
        var seen = try stage.look()
        seen.pushes = gone + seen.pushes
        return seen
    }

    private func end(_ stage: Stage) throws {
        if answer == nil { stage.bringAPNsUp() } else { stage.answerPushes(nil) }
    }

    /// Writes messages of one conversation to one device and waits until the first is on its way to APNs and held up.
    func hold(_ messages: [Line], token: String, conv: String, _ stage: Stage) throws {
        try stage.writeEvents(messages)
        if answer != nil {
            try until("the push was refused once") {
                stage.apns.requests.contains { $0.token == token && $0.status != 200 }
            }
        }
        // Behind them in their conversation, so when it has ended they were decided too.
        let last = "\(conv)-behind"
        try stage.writeEvents([.message(last, to: ["nobody-\(conv)"], conv: conv)])
        _ = try stage.look(until: "\(last) is decided") { !$0.outcomes(of: last).isEmpty }
    }
}
