internal import Digits

/// `MOVED <slot> <host>:<port>` or `ASK <slot> <host>:<port>`: another node has the key.
struct Redirect: Equatable {
    enum Kind: Equatable {
        /// The slot is that node's from now on.
        case moved
        /// The slot is on its way there, and this key has arrived or is new: one command goes there, behind an ASKING.
        case ask
    }

    let kind: Kind
    let slot: UInt16
    let address: NodeAddress

    /// Nil: no redirect that could be followed.
    ///
    /// - Parameter asker: the host that answered, which an empty name stands for.
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
        // The port follows the last colon: an IPv6 address has colons of its own.
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

/// What becomes of a command that a node of a cluster did not carry out. Pure.
enum RedirectRule {
    enum Step: Equatable {
        /// To that node at once; `asking` behind an ASKING.
        case send(to: NodeAddress, asking: Bool)
        /// To whoever serves the slot then.
        case wait(nanos: UInt64)
        /// It is told to whoever sent it.
        case fail
    }

    /// Redirects followed at once, before a pause: two nodes may name each other while they do not agree.
    static let hopsMax: UInt8 = 5
    private static let waitNanos: UInt64 = 10_000_000
    private static let waitMaxNanos: UInt64 = 320_000_000

    /// Whether the code says that the command was not carried out for what the cluster is going through.
    static func isAbout(_ code: RedisFault.Code) -> Bool {
        switch code {
        case .moved, .ask, .tryAgain, .clusterDown, .loading, .masterDown, .readOnly: true
        default: false
        }
    }

    /// Whether the map of the slots is out of date, or may soon be.
    static func asksForMap(_ code: RedisFault.Code) -> Bool {
        switch code {
        case .moved, .clusterDown, .readOnly, .masterDown, .loading: true
        default: false
        }
    }

    /// - Parameters:
    ///   - code: one that `isAbout` names.
    ///   - redirect: where the error leads; nil: nowhere, or it could not be read.
    ///   - head: of the command, `tries` not yet counting this one.
    ///   - limitNanos: how old a command may get here.
    static func step(
        _ code: RedisFault.Code, _ redirect: Redirect?, _ head: CommandHead, nowNanos: UInt64, limitNanos: UInt64
    ) -> Step {
        // What must not run behind later commands is told instead: whoever sent it begins anew.
        guard head.order == .free, nowNanos &- head.startNanos < limitNanos else { return .fail }
        if let redirect, redirect.slot == head.slot, head.tries < hopsMax {
            return .send(to: redirect.address, asking: redirect.kind == .ask)
        }
        return .wait(nanos: min(waitNanos << UInt64(min(head.tries, 5)), waitMaxNanos))
    }
}
