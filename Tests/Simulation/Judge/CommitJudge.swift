// SPDX-License-Identifier: Apache-2.0
/// Judges a commit at its moment: each record below the committed offset has its outcomes in the topics already, or its
/// work was handed on by a record that is written.
///
/// A record is judged once, at the first commit that passes it.
struct CommitJudge {
    private var events: [Int32: [Sent]] = [:]
    private var states: [Int32: [StateSent]] = [:]
    private var taken = (events: 0, states: 0, outcomes: 0, handedOn: 0)
    /// The number of judged records, by topic and partition.
    private var judged: [String: Int] = [:]
    /// Users with a final outcome, by event.
    private var ended: [String: Set<String>] = [:]
    /// Events that were handed on whole.
    private var wholes: Set<String> = []
    /// Members that were handed on, by event.
    private var members: [String: Set<String>] = [:]
    private(set) var violations: [Violation] = []

    mutating func didCommit(
        _ topic: String, _ partition: Int32, _ offset: Int64, sent: [Sent], states: [StateSent], _ observed: Observed,
        lost: Set<String> = []
    ) {
        take(sent, states, observed)
        switch topic {
        case "im.events": judgeEvents(partition, below: offset, lost)
        case "im.user-state": judgeStates(partition, below: offset, observed)
        default: break
        }
    }

    /// The records have other offsets from now on, in the same order.
    mutating func didMove() {
        (events, states) = ([:], [:])
        (taken.events, taken.states) = (0, 0)
    }

    private mutating func take(_ sent: [Sent], _ states: [StateSent], _ observed: Observed) {
        for event in sent[min(taken.events, sent.count)...] { events[event.partition, default: []].append(event) }
        for state in states[min(taken.states, states.count)...] {
            self.states[state.partition, default: []].append(state)
        }
        for outcome in observed.outcomes[taken.outcomes...] where outcome.isFinal {
            ended[outcome.eventID, default: []].insert(outcome.uid)
        }
        for record in observed.handedOn[taken.handedOn...] {
            if let uids = record.uids {
                members[record.eventID, default: []].formUnion(uids)
            } else {
                wholes.insert(record.eventID)
            }
        }
        taken = (sent.count, states.count, observed.outcomes.count, observed.handedOn.count)
    }

    private mutating func judgeEvents(_ partition: Int32, below offset: Int64, _ lost: Set<String>) {
        let all = events[partition] ?? []
        let place = "events \(partition)"
        while let event = all.dropFirst(judged[place, default: 0]).first,
            event.offset < offset || lost.contains(event.eventID)
        {
            judged[place, default: 0] += 1
            if lost.contains(event.eventID) { continue }
            let (done, handedOn) = (ended[event.eventID] ?? [], members[event.eventID] ?? [])
            // Of the whole event: nobody is left, or all of it was handed on.
            if done.contains("") || wholes.contains(event.eventID) { continue }
            for uid in event.recipients where !done.contains(uid) && !handedOn.contains(uid) {
                violations.append(
                    Violation(
                        rule: "no commit before its outcomes",
                        text:
                            "im.events \(partition) is committed to \(offset), and \(event.eventID) has no outcome for \(uid)",
                        message: event.messageID))
            }
        }
    }

    private mutating func judgeStates(_ partition: Int32, below offset: Int64, _ observed: Observed) {
        let all = states[partition] ?? []
        let place = "states \(partition)"
        while let state = all.dropFirst(judged[place, default: 0]).first, state.offset < offset {
            judged[place, default: 0] += 1
            guard observed.results[state.eventID] == nil else { continue }
            violations.append(
                Violation(
                    rule: "no commit before its outcomes",
                    text: "im.user-state \(partition) is committed to \(offset), and \(state.eventID) has no result",
                    message: state.eventID))
        }
    }
}
