// SPDX-License-Identifier: Apache-2.0
internal import EventLoop

/// One connection from greeting to end. A lost connection is replaced, never revived.
///
/// Its pipeline ends with it, so that no reply of an old connection can meet a command of a new one.
final class RedisConnection: LinkOwner {
    /// Bytes given to the reader at one time; see `ReplyReader.feed`.
    private static let feedBytes = 4096

    let link: Link
    /// Logged in, right database, and the server answers.
    private(set) var isReady = false
    private(set) var readyNanos: UInt64 = 0
    private(set) var pipeline = Pipeline()
    /// Scripts that this connection has sent, by index in the client's table.
    private(set) var loadedScripts: UInt64 = 0

    private(set) var greeting: Greeting

    private let role: RedisRole
    private unowned let client: RedisClient
    private let loop: Loop
    private var reader: ReplyReader
    private var kept = ByteQueue()
    private var timer: LoopTimer?
    private var forwarder: LinkForwarder?
    /// Runs since the first READONLY.
    private var readOnlyTimer: LoopTimer?
    private var writtenBytes: UInt64 = 0
    private var isLive = true
    /// An error reply showed that this connection is unusable. It ends after the available replies are delivered.
    private var endingFault: RedisFault?
    private let replyBytesMax: Int
    /// Monotonic time of the last received bytes.
    private var receivedNanos: UInt64 = 0
    /// Commands since the last check.
    private var uncheckedCount = 0
    private var lastCheck: UInt32
    /// Commands between two checks. An extra reply would give each later command the answer to another one, so a check asks for a
    /// number that no other reply has. It costs less than a hundredth of the work of Redis.
    static let checkEvery = 128
    /// Factor of a command's timeout for a large reply, while bytes arrive.
    private static let patience: UInt64 = 10

    init(
        client: RedisClient, loop: Loop, link: Link, role: RedisRole, replyBytesMax: Int
    ) throws(RedisFault) {
        reader = try ReplyReader(replyBytesMax: replyBytesMax)
        greeting = Greeting(role)
        self.role = role
        self.replyBytesMax = replyBytesMax
        self.client = client
        self.loop = loop
        self.link = link
        lastCheck = UInt32(truncatingIfNeeded: loop.makeSeed()) & 0x3FFF_FFFF | 0x4000_0000
    }

    func open() {
        timer = LoopTimer(loop: loop) { [unowned self] in timerFired() }
        let forwarder = LinkForwarder(self)
        self.forwarder = forwarder
        link.delegate = forwarder
        link.open()
    }

    // MARK: Sending

    /// Writes one command. Its reply will be reported as `tag`.
    func send(
        _ command: borrowing RedisCommand, _ purpose: Pipeline.Purpose, _ operation: UInt8, _ tag: UInt64,
        timeoutNanos: UInt64
    ) {
        append(command, Pipeline.Entry(purpose: purpose, operation: operation, tag: tag), timeoutNanos)
    }

    /// Writes an EVALSHA. Its encoded arguments from `keptFrom` on are kept until its reply.
    func sendScript(
        _ command: borrowing RedisCommand, index: Int, keptFrom: Int, _ operation: UInt8, _ tag: UInt64,
        timeoutNanos: UInt64
    ) {
        let keptBytes = command.withArguments(from: keptFrom) { bytes in
            kept.append(bytes)
            return bytes.count
        }
        append(
            command,
            Pipeline.Entry(
                purpose: .script(index: UInt8(truncatingIfNeeded: index)), operation: operation, tag: tag,
                // Without the command's name and the digest.
                argumentCount: Int32(truncatingIfNeeded: command.count - 2), keptBytes: keptBytes), timeoutNanos)
    }

    /// Writes a cluster command, which is kept whole until its reply.
    func send(
        _ command: borrowing RedisCommand, keeping encoded: UnsafeRawBufferPointer, _ call: NodeCall,
        _ purpose: Pipeline.Purpose, timeoutNanos: UInt64
    ) {
        withUnsafeBytes(of: call.head) { kept.append($0) }
        kept.append(encoded)
        append(
            command,
            Pipeline.Entry(
                purpose: purpose, operation: call.operation, tag: call.tag,
                argumentCount: Int32(truncatingIfNeeded: call.argumentCount),
                keptBytes: CommandHead.byteCount + encoded.count), timeoutNanos)
    }

    /// The head of a kept cluster command, and the command.
    static func unpack(_ kept: UnsafeRawBufferPointer) -> (head: CommandHead, encoded: UnsafeRawBufferPointer)? {
        guard kept.count >= CommandHead.byteCount else { return nil }
        return (
            kept.loadUnaligned(as: CommandHead.self),
            UnsafeRawBufferPointer(rebasing: kept.dropFirst(CommandHead.byteCount))
        )
    }

    func markLoaded(_ index: Int) { loadedScripts |= 1 << UInt64(index) }

    private func append(_ command: borrowing RedisCommand, _ unfinished: Pipeline.Entry, _ timeoutNanos: UInt64) {
        let length = command.withWire { wire in
            link.write(wire)
            return wire.count
        }
        writtenBytes &+= UInt64(length)
        let now = loop.turnTimeNanos
        var entry = unfinished
        entry.sentNanos = now
        entry.deadlineNanos = now &+ timeoutNanos
        entry.endOffset = writtenBytes
        pipeline.append(entry)
        if let timer, !timer.isArmed { timer.arm(afterNanos: timeoutNanos) }
        uncheckedCount &+= 1
        // Nothing comes between ASKING and its command.
        if uncheckedCount >= Self.checkEvery, unfinished.purpose != .asking { check(timeoutNanos) }
    }

    private func check(_ timeoutNanos: UInt64) {
        // A Sentinel runs no scripts.
        guard isReady, role != .sentinel else { return }
        uncheckedCount = -1
        lastCheck &+= 1
        var command = RedisCommand()
        command.arg(word: "EVAL")
        command.arg(Self.checkScript)
        command.arg(word: "0")
        command.arg(Int64(lastCheck))
        _ = command.finish()
        append(command, Pipeline.Entry(purpose: .check, tag: UInt64(lastCheck)), timeoutNanos)
    }

    private static let checkScript = "#!lua flags=no-writes\nreturn ARGV[1]"

    // MARK: The link's events

    func linkDidOpen() {
        guard isLive else { return }
        client.greet(self)
    }

    func received(_ bytes: UnsafeRawBufferPointer) {
        withExtendedLifetime(self) {
            // Loaded once per batch, because each access is reference-counted.
            let client = client
            let delegate = client.delegate
            let nowNanos = loop.nowNanos
            receivedNanos = nowNanos
            var rest = bytes[...]
            while isLive, !rest.isEmpty {
                reader.feed(UnsafeRawBufferPointer(rebasing: rest.prefix(Self.feedBytes)))
                rest = rest.dropFirst(Self.feedBytes)
                takeReplies(client, delegate, nowNanos)
            }
            client.observe(depth: pipeline.count)
            delegate?.redisDidDeliverReplies(client)
            if isLive, let endingFault { end(endingFault) }
        }
    }

    func linkClosed(_ reason: LinkFault) {
        end(RedisFault(isReady ? .connectionLost(wasSent: true) : .unreachable, reason.description))
    }

    private func takeReplies(_ client: RedisClient, _ delegate: (any RedisClientDelegate)?, _ nowNanos: UInt64) {
        while isLive {
            let next = reader.next()
            switch next {
            case .needsBytes:
                if reader.isPassingOver { tellTooLarge(client) }
                return
            case .broken: return end(RedisFault(.protocolViolation, reader.brokenText))
            case .reply, .tooLarge:
                guard let entry = pipeline.popFirst() else {
                    return end(RedisFault(.protocolViolation, "a reply without a request"))
                }
                if next == .reply {
                    let reply = RedisReply(reader.arena, 0)
                    let fault = reply.kind == .error ? RedisFault(errorReply: reply.bytes) : nil
                    answer(entry, reply, fault, client, delegate, nowNanos)
                } else {
                    answer(
                        entry, RedisReply(none: reader.arena),
                        RedisFault(.tooLarge, "the reply is over \(replyBytesMax) bytes"), client, delegate, nowNanos)
                }
                reader.release()
            }
        }
    }

    private func answer(
        _ entry: Pipeline.Entry, _ reply: borrowing RedisReply, _ fault: RedisFault?, _ client: RedisClient,
        _ delegate: (any RedisClientDelegate)?, _ nowNanos: UInt64
    ) {
        if entry.isTold { return kept.drop(entry.keptBytes) }
        switch entry.purpose {
        case .check:
            if let fault, fault.scope == .server {
                endingFault = endingFault ?? fault
                return
            }
            if reply.int64 == Int64(entry.tag) { return }
            return end(RedisFault(.protocolViolation, "the server's replies are out of step with its commands"))
        case .handshake: return greeted(entry.tag, reply.bytes, fault)
        // Whatever answers ASKING, the next command's reply decides.
        case .asking: return
        case .inquiry: return inquiryAnswered(entry, reply, fault, client)
        case .script(let index):
            if fault?.code == .noScript { return resend(entry, index: Int(index)) }
            if let fault, turnedAway(entry, reply.bytes, fault, client) { return }
            kept.drop(entry.keptBytes)
        case .command:
            guard entry.keptBytes > 0 else { break }
            if let fault, turnedAway(entry, reply.bytes, fault, client) { return }
            kept.drop(entry.keptBytes)
        }
        guard let fault else {
            client.observe(entry, nowNanos: nowNanos)
            delegate?.redis(client, didReply: entry.tag, reply: reply)
            return
        }
        // A new connection may reach another server, log in again, or get a clear error at its greeting.
        if fault.scope == .server, endingFault == nil { endingFault = fault }
        if fault.code == .readOnly { endSoon(client) }
        client.failed(entry.tag, fault)
    }

    /// The next reply is over the limit: its command fails now, not at the end of the reply.
    private func tellTooLarge(_ client: RedisClient) {
        guard let entry = pipeline.first, !entry.isTold else { return }
        switch entry.purpose {
        case .command, .script: break
        case .handshake, .asking, .inquiry, .check: return
        }
        pipeline.noteTold()
        client.failed(entry.tag, RedisFault(.tooLarge, "the reply is over \(replyBytesMax) bytes"))
    }

    private func inquiryAnswered(
        _ entry: Pipeline.Entry, _ reply: borrowing RedisReply, _ fault: RedisFault?, _ client: RedisClient
    ) {
        if let fault {
            client.inquirer?.didFail(entry.tag, fault)
        } else {
            client.inquirer?.didAnswer(entry.tag, reply)
        }
    }

    /// - Returns: true if the cluster node did not execute the command because of the cluster's state, and the
    ///   cluster's client has it again.
    private func turnedAway(
        _ entry: Pipeline.Entry, _ bytes: UnsafeRawBufferPointer, _ fault: RedisFault, _ client: RedisClient
    ) -> Bool {
        guard let node = client.node, RedirectRule.isAbout(fault.code) else { return false }
        // A copy, because resending it on this link adds to the kept bytes.
        let copy = kept.withPrefix(entry.keptBytes) { [UInt8]($0) }
        kept.drop(entry.keptBytes)
        let script: RedisScript?
        if case .script(let index) = entry.purpose { script = client.script(Int(index)) } else { script = nil }
        copy.withUnsafeBytes { copy in
            guard let (head, encoded) = Self.unpack(copy) else { return }
            node.didTurnAway(
                KeptCommand(
                    call: NodeCall(
                        head: head, tag: entry.tag, operation: entry.operation, script: script,
                        argumentCount: Int(entry.argumentCount)), encoded: [UInt8](encoded)), fault, bytes)
        }
        return true
    }

    /// The server does not know the script: sends the same call again with the full source.
    ///
    /// EVALSHA of an unknown script does nothing, so nothing runs twice. The call is now after the commands sent since,
    /// and has the full timeout again.
    private func resend(_ entry: Pipeline.Entry, index: Int) {
        markLoaded(index)
        // A copy, because resending for a cluster node adds to the kept bytes.
        let copy = kept.withPrefix(entry.keptBytes) { [UInt8]($0) }
        kept.drop(entry.keptBytes)
        let isKnown = copy.withUnsafeBytes { arguments in
            client.sendFull(
                script: index, arguments: arguments, count: Int(entry.argumentCount), of: entry, on: self)
        }
        if !isKnown { client.failed(entry.tag, RedisFault(.noScript)) }
    }

    private func greeted(_ tag: UInt64, _ bytes: UnsafeRawBufferPointer, _ fault: RedisFault?) {
        guard let step = Greeting.Step(rawValue: tag) else { return }
        switch greeting.answered(step, bytes, fault, nowMs: loop.wallMs) {
        case .waiting: return
        case .refused(let fault): return end(fault)
        case .ready: break
        }
        // Commands have a different timeout from the greeting, so the timer restarts with the first of them.
        timer?.cancel()
        isReady = true
        readyNanos = loop.nowNanos
        // For a cluster node the map decides its role.
        if greeting.facts.isReplica ?? false, client.node == nil { endSoon(client) }
        client.becameReady(self)
    }

    /// A replica refuses only writes: reads continue for a while, then a new connection may reach the new master.
    private func endSoon(_ client: RedisClient) {
        guard readOnlyTimer == nil else { return }
        readOnlyTimer = LoopTimer(loop: loop) { [unowned self] in
            end(RedisFault(.readOnly, "the server is a replica"))
        }
        readOnlyTimer?.arm(afterNanos: client.limits.readOnlyNanos)
    }

    // MARK: The end

    private func timerFired() {
        switch pipeline.timerFired(nowNanos: loop.nowNanos) {
        case .idle: break
        case .rearm(let atNanos): timer?.arm(afterNanos: atNanos &- loop.nowNanos)
        case .expired:
            if let atNanos = extendedDeadline {
                timer?.arm(afterNanos: atNanos &- loop.nowNanos)
            } else {
                end(RedisFault(.timeout, "no reply within the command's time"))
            }
        }
    }

    /// The oldest command waits longer while bytes arrive. Returns nil if it has waited long enough.
    private var extendedDeadline: UInt64? {
        guard let first = pipeline.first, isReady else { return nil }
        let span = first.deadlineNanos &- first.sentNanos
        let deadline = receivedNanos &+ span
        let last = first.sentNanos &+ span &* Self.patience
        return receivedNanos > first.sentNanos && deadline > loop.nowNanos && last > loop.nowNanos
            ? min(deadline, last) : nil
    }

    /// Closes the link and reports every waiting tag. The first cause counts.
    func end(_ fault: RedisFault) {
        guard isLive else { return }
        isLive = false
        timer = nil
        readOnlyTimer = nil
        link.close()
        client.ended(self, fault)
    }

    /// Removes the next command that the end of this connection leaves without a reply.
    func takeLost(_ cause: RedisFault, isFirst: Bool) -> (entry: Pipeline.Entry, fault: RedisFault)? {
        let flushed = writtenBytes &- min(writtenBytes, UInt64(link.pendingOutputBytes))
        while let entry = pipeline.popFirst() {
            guard entry.purpose != .handshake, entry.purpose != .asking, entry.purpose != .check, !entry.isTold else {
                continue
            }
            if isFirst, cause.code == .protocolViolation { return (entry, cause) }
            let code = Pipeline.lossCode(
                of: entry, flushedOffset: flushed, nowNanos: loop.nowNanos, timedOut: cause.code == .timeout)
            return (entry, RedisFault(code, because: cause))
        }
        return nil
    }
}
