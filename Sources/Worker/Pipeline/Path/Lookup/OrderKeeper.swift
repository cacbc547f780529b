// SPDX-License-Identifier: Apache-2.0
import PushCore

/// Keeps one user's candidates of one conversation in the order of their records after some left it: those without an
/// answer from Redis, those read a second time, and those that waited for such ones.
///
/// A machine without a clock: nothing is looked up while all are in order. Candidates out of order pass the steps one
/// behind another, so that many answers of Redis are outstanding at the same time.
struct OrderKeeper {
    /// The hash of (app, user, conversation). After a collision two would only wait for each other.
    typealias Key = UInt64

    /// The progress of a candidate.
    enum Step: Int, Comparable {
        /// It waits: for Redis, for an operator, or behind another.
        case waiting
        /// Its reads are outstanding.
        case reading
        /// Its claim is outstanding.
        case claiming
        /// It continues to its devices.
        case passing

        static func < (one: Step, other: Step) -> Bool { one.rawValue < other.rawValue }
    }

    private struct Late {
        let order: UInt64
        let ref: WorkRef
        var step: Step
    }

    /// Each list by `Candidate.order`, earliest first.
    private struct Line {
        /// Candidates out of order that have not passed.
        var late: [Late] = []
        /// Candidates to read again once one of `late` has passed.
        var behind: [(order: UInt64, ref: WorkRef)] = []
    }

    private var lines: [Key: Line] = [:]

    var isEmpty: Bool { lines.isEmpty }
    var count: Int { lines.count }

    static func key(app: String, uid: String, conversation: String) -> Key {
        var hash = SipHash128(key0: 0x6361_7269_6c6c_6f6e, key1: 0x6f72_6465_7230_3031)
        hash.update(lengthThen: app)
        hash.update(lengthThen: uid)
        hash.update(lengthThen: conversation)
        return hash.finish().0
    }

    /// The candidate is out of order from now on. Later ones of its key stay behind it.
    mutating func stepOut(_ ref: WorkRef, order: UInt64, key: Key, to step: Step) {
        var line = lines[key] ?? Line()
        let place = line.late.lastIndex { $0.order <= order }
        if let place, line.late[place].ref == ref {
            line.late[place].step = step
        } else {
            line.late.insert(Late(order: order, ref: ref, step: step), at: place.map { $0 + 1 } ?? 0)
        }
        lines[key] = line
    }

    /// A candidate in order is not recorded.
    private mutating func take(_ step: Step, _ ref: WorkRef, order: UInt64, key: Key) {
        guard let place = lines[key]?.late.lastIndex(where: { $0.order <= order }), lines[key]?.late[place].ref == ref
        else { return }
        lines[key]?.late[place].step = step
    }

    /// A candidate takes a step. If an earlier one of its key has not taken it, the candidate waits behind that one until `goOn`
    /// returns it.
    mutating func pass(_ ref: WorkRef, order: UInt64, key: Key, to step: Step) -> Passage {
        guard let line = lines[key], line.late.contains(where: { $0.order < order && $0.step < step }) else {
            take(step, ref, order: order, key: key)
            return .goesOn
        }
        take(.waiting, ref, order: order, key: key)
        let place = line.behind.lastIndex { $0.order <= order }
        if let place, line.behind[place].ref == ref { return .kept }
        lines[key]?.behind.insert((order, ref), at: place.map { $0 + 1 } ?? 0)
        return .kept
    }

    /// The candidate has passed, or has ended. Returns those that waited behind it, earliest first: they are out of
    /// order, and must be read again.
    mutating func goOn(_ ref: WorkRef, key: Key) -> [WorkRef] {
        guard var line = lines[key], let place = line.late.firstIndex(where: { $0.ref == ref }) else { return [] }
        line.late.remove(at: place)
        var released: [WorkRef] = []
        // All of them would only wait again behind an earlier waiting one.
        if let first = line.behind.first, line.late.first.map({ $0.order >= first.order || $0.step > .waiting }) ?? true
        {
            released = line.behind.map(\.ref)
            line.behind = []
        }
        lines[key] = line.late.isEmpty && line.behind.isEmpty ? nil : line
        return released
    }
}
