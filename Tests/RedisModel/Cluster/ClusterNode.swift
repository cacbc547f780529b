// SPDX-License-Identifier: Apache-2.0
/// A server's place in its cluster, as it sees it.
final class ClusterNode {
    /// An address and id of a node.
    struct Peer {
        let id: String
        let host: String
        let port: UInt16

        var address: String { "\(host):\(port)" }
    }

    let index: Int
    let peers: [Peer]
    var map: ClusterMap
    /// Slots that leave, each with the node that gets them.
    var leaving: [Int: Int] = [:]
    /// Slots that arrive, each with the node that has them.
    var arriving: [Int: Int] = [:]

    init(_ index: Int, _ peers: [Peer], _ map: ClusterMap) {
        self.index = index
        self.peers = peers
        self.map = map
    }

    var own: Peer { peers[index] }
}
