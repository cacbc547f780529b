// SPDX-License-Identifier: Apache-2.0
internal import EventLoop

/// The connection to one Sentinel, and its answers. The client below makes a lost connection again.
///
/// Bound to its loop's thread. The watch owns it.
final class SentinelLink: RedisClientDelegate, RedisInquirer {
    private enum Question: UInt64 {
        /// The configuration epoch, from all that the Sentinel knows of the master.
        case epoch
        case address
    }

    private let number: Int
    private let client: RedisClient
    private unowned let watch: SentinelWatch
    private var isAsking = false
    private var epoch: Int64 = 0

    init(_ number: Int, _ client: RedisClient, _ watch: SentinelWatch) {
        self.number = number
        self.client = client
        self.watch = watch
        client.delegate = self
        client.inquirer = self
    }

    func start() { client.start() }

    func close() { client.close() }

    /// Asks if no question is open.
    func ask(_ masterName: String) {
        guard client.isReady, !isAsking else { return }
        epoch = 0
        do throws(RedisFault) {
            // The epoch first: an address that is newer than it only looks older.
            try send(.epoch, "MASTER", masterName)
            try send(.address, "GET-MASTER-ADDR-BY-NAME", masterName)
            isAsking = true
        } catch {
            watch.failed(number, named(error))
        }
    }

    private func send(_ question: Question, _ word: StaticString, _ masterName: String) throws(RedisFault) {
        try client.inquire(question.rawValue) { command in
            command.arg(word: "SENTINEL")
            command.arg(word: word)
            command.arg(masterName)
        }
    }

    private func named(_ fault: RedisFault) -> RedisFault {
        RedisFault(fault.code, "Sentinel \(client.endpoint): \(fault.publicText)")
    }

    // MARK: Events of the client

    func didAnswer(_ id: UInt64, _ reply: borrowing RedisReply) {
        switch Question(rawValue: id) {
        case .epoch:
            var found: Int64?
            reply.forEachPair { name, value in if name.isText("config-epoch") { found = value.int64 } }
            epoch = found ?? 0
        case .address:
            isAsking = false
            let host = client.endpoint.nodeAddress?.host ?? ""
            let isPair = reply.count == 2 && reply[0].kind == .string
            watch.answered(
                number, isPair ? NodeAddress(host: reply[0].bytes, port: reply[1].int64, asker: host) : nil,
                epoch: epoch, named)
        case nil: break
        }
    }

    /// A user without the right to read the epoch still gets the address.
    func didFail(_ id: UInt64, _ fault: RedisFault) {
        guard Question(rawValue: id) == .address else { return }
        isAsking = false
        watch.failed(number, named(fault))
    }

    func redis(_ client: RedisClient, didReply tag: UInt64, reply: borrowing RedisReply) {}

    func redis(_ client: RedisClient, didFail tag: UInt64, fault: RedisFault) {}

    func redis(_ client: RedisClient, didChange state: RedisClient.State) {
        switch state {
        case .ready: watch.ask(self)
        case .waiting(let fault): watch.failed(number, named(fault))
        case .idle, .connecting, .closed: break
        }
    }
}
