// SPDX-License-Identifier: Apache-2.0
internal import Digits

/// `MOVED <slot> <host>:<port>` or `ASK <slot> <host>:<port>`: another node has the key.
struct Redirect: Equatable {
    enum Kind: Equatable {
        /// The slot belongs to that node from now on.
        case moved
        /// The slot is moving there, and this key has arrived or is new. One command goes there after an ASKING.
        case ask
    }

    let kind: Kind
    let slot: UInt16
    let address: NodeAddress

    /// - Returns: nil for an invalid redirect.
    ///
    /// - Parameter asker: the host that answered, used for an empty name.
    init?(errorReply bytes: UnsafeRawBufferPointer, asker: String) {
        let words = bytes.prefix(512).split(separator: UInt8(ascii: " "), maxSplits: 3)
        guard words.count >= 3 else { return nil }
        if words[0].elementsEqual("MOVED".utf8) {
            kind = .moved
        } else if words[0].elementsEqual("ASK".utf8) {
            kind = .ask
        } else {
            return nil
        }
        // The port follows the last colon, because an IPv6 address contains colons.
        guard let slot = Decimal.unsigned(UnsafeRawBufferPointer(rebasing: words[1])), slot < UInt64(KeySlot.count),
            let colon = words[2].lastIndex(of: UInt8(ascii: ":")),
            let port = Decimal.unsigned(UnsafeRawBufferPointer(rebasing: words[2][(colon + 1)...])),
            let address = NodeAddress(
                host: UnsafeRawBufferPointer(rebasing: words[2][..<colon]), port: Int64(exactly: port), asker: asker)
        else { return nil }
        self.slot = UInt16(slot)
        self.address = address
    }
}

/// The next step for a command that a cluster node did not execute. Pure.
enum RedirectRule {
    enum Step: Equatable {
        /// To that node at once; `asking` after an ASKING.
        case send(to: NodeAddress, asking: Bool)
        /// To the slot's owner after a pause.
        case wait(nanos: UInt64)
        /// The error is reported to the sender.
        case fail
    }

    /// Redirects followed at once before a pause, because two nodes may name each other while they disagree.
    static let hopsMax: UInt8 = 5
    private static let waitNanos: UInt64 = 10_000_000
    private static let waitMaxNanos: UInt64 = 320_000_000

    /// - Returns: whether the code means that the command was not executed because of a state of the cluster.
    static func isAbout(_ code: RedisFault.Code) -> Bool {
        switch code {
        case .moved, .ask, .tryAgain, .clusterDown, .loading, .masterDown, .readOnly: true
        default: false
        }
    }

    /// - Returns: whether the slot map is outdated, or may be soon.
    static func asksForMap(_ code: RedisFault.Code) -> Bool {
        switch code {
        case .moved, .clusterDown, .readOnly, .masterDown, .loading: true
        default: false
        }
    }

    /// - Parameters:
    ///   - code: must satisfy `isAbout`.
    ///   - redirect: the target of the error; nil for none, or an unreadable one.
    ///   - head: of the command; `tries` does not count this one yet.
    ///   - limitNanos: the maximum age of a command.
    static func step(
        _ code: RedisFault.Code, _ redirect: Redirect?, _ head: CommandHead, nowNanos: UInt64, limitNanos: UInt64
    ) -> Step {
        // A command that must not run after later ones is reported instead, and its sender starts over.
        guard head.order == .free, nowNanos &- head.startNanos < limitNanos else { return .fail }
        if let redirect, redirect.slot == head.slot, head.tries < hopsMax {
            return .send(to: redirect.address, asking: redirect.kind == .ask)
        }
        return .wait(nanos: min(waitNanos << UInt64(min(head.tries, 5)), waitMaxNanos))
    }
}
