// SPDX-License-Identifier: Apache-2.0
internal import Digits

/// The address of a cluster node, or of a master named by Sentinels.
struct NodeAddress: Hashable, CustomStringConvertible {
    let host: String
    let port: UInt16

    /// A host name has at most 253 bytes (RFC 1035 section 2.3.4 as text).
    static let hostBytesMax = 253

    init(host: String, port: UInt16) {
        self.host = host
        self.port = port
    }

    /// An address reported by a server; nil if no connection to it is possible.
    ///
    /// - Parameter asker: the host that answered. An empty or missing name means that host (Redis 7, "unknown
    ///   endpoint").
    init?(host bytes: UnsafeRawBufferPointer, port: Int64?, asker: String) {
        guard let port, let number = UInt16(exactly: port), number > 0, bytes.count <= Self.hostBytesMax else {
            return nil
        }
        // `?` is a node without a configured name. Spaces, slashes and control characters are in no name or address.
        let isName = bytes.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "-"), UInt8(ascii: "_"),
                UInt8(ascii: ":"), UInt8(ascii: "%"):
                true
            default: false
            }
        }
        guard isName else { return nil }
        self.init(host: bytes.isEmpty ? asker : String(decoding: bytes, as: UTF8.self), port: number)
    }

    /// A node in the answer of CLUSTER SLOTS: host, port, id, and since 7.0 names and values such as its `ip`.
    ///
    /// The host `?` is a node without the name that the cluster prefers: its `ip` counts, and without one the asker's host, for
    /// only a node's own entry may lack it.
    init?(slotsEntry node: borrowing RedisReply, asker: String) {
        guard node.kind == .array, node.count >= 2, node[0].kind == .string || node[0].isNull, node[1].kind == .integer
        else { return nil }
        if !node[0].isText("?") {
            self.init(host: node[0].bytes, port: node[1].int64, asker: asker)
            return
        }
        var found = NodeAddress(
            host: UnsafeRawBufferPointer(start: nil, count: 0), port: node[1].int64, asker: asker)
        node[3].forEachPair { name, value in
            if name.isText("ip") { found = NodeAddress(host: value.bytes, port: node[1].int64, asker: asker) }
        }
        guard let found else { return nil }
        self = found
    }

    /// Whether the text names this machine: `localhost`, 127.0.0.0/8 or ::1.
    var isLoopback: Bool {
        if host == "localhost" || host.hasSuffix(".localhost") || host == "::1" { return true }
        let parts = host.split(separator: ".", omittingEmptySubsequences: false)
        return parts.count == 4 && parts[0] == "127" && parts.allSatisfy { UInt8($0) != nil }
    }

    var description: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }
}
