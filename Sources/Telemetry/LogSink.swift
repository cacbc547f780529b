// SPDX-License-Identifier: Apache-2.0
internal import Glibc
internal import Synchronization

/// The descriptor of a log. It accepts whole lines or drops them, and never waits.
///
/// Other processes share standard error, so O_NONBLOCK must not be set on it. A pipe or terminal is therefore opened
/// again through `/proc/self/fd`, with separate flags. A socket is written with MSG_DONTWAIT. A regular file does not
/// wait for a reader.
final class LogSink: Sendable {
    private enum Way: Sendable {
        case nowhere
        /// Never blocks: a file, or our own non-blocking opening of a pipe.
        case plain(Int32, owned: Bool)
        case socket(Int32)
        /// A pipe that could not be opened again. Poll it first: it then accepts up to PIPE_BUF bytes.
        case asked(Int32)
        case called(@Sendable ([UInt8]) -> Void)
    }

    private let way: Way
    private let levelCell: Atomic<UInt8>
    private let droppedCell = Atomic<UInt64>(0)
    /// A line was written in part. The next one starts with a line feed, so that only one line is lost.
    private let torn = Atomic<Bool>(false)

    init(fd: Int32, level: Log.Level) {
        way = Self.way(to: fd)
        levelCell = Atomic(level.rawValue)
    }

    init(level: Log.Level, receive: @escaping @Sendable ([UInt8]) -> Void) {
        way = .called(receive)
        levelCell = Atomic(level.rawValue)
    }

    deinit {
        if case .plain(let fd, owned: true) = way { close(fd) }
    }

    var level: Log.Level {
        get { Log.Level(rawValue: levelCell.load(ordering: .relaxed)) ?? .info }
        set { levelCell.store(newValue.rawValue, ordering: .relaxed) }
    }

    var dropped: UInt64 { droppedCell.load(ordering: .relaxed) }

    func takes(_ level: Log.Level) -> Bool {
        if case .nowhere = way { return false }
        return level.rawValue >= levelCell.load(ordering: .relaxed)
    }

    func write(_ line: [UInt8]) {
        let bytes = torn.exchange(false, ordering: .relaxed) ? [UInt8(ascii: "\n")] + line : line
        let sent = attempt(bytes)
        guard sent != bytes.count else { return }
        droppedCell.wrappingAdd(1, ordering: .relaxed)
        if sent > 0 || bytes.count > line.count { torn.store(true, ordering: .relaxed) }
    }

    /// The number of bytes written; -1 for none.
    private func attempt(_ bytes: [UInt8]) -> Int {
        for _ in 0..<3 {
            let sent: Int
            switch way {
            case .nowhere: return bytes.count
            case .called(let receive):
                receive(bytes)
                return bytes.count
            case .plain(let fd, _): sent = Glibc.write(fd, bytes, bytes.count)
            case .socket(let fd):
                sent = send(fd, bytes, bytes.count, Int32(MSG_DONTWAIT | MSG_NOSIGNAL))
            case .asked(let fd):
                var ready = pollfd(fd: fd, events: Int16(POLLOUT), revents: 0)
                guard poll(&ready, 1, 0) == 1, ready.revents & Int16(POLLOUT) != 0 else { return -1 }
                sent = Glibc.write(fd, bytes, bytes.count)
            }
            if sent < 0 && errno == EINTR { continue }
            return sent
        }
        return -1
    }

    private static func way(to fd: Int32) -> Way {
        var info = stat()
        guard fd >= 0, fstat(fd, &info) == 0 else { return .nowhere }
        switch info.st_mode & S_IFMT {
        case S_IFREG: return .plain(fd, owned: false)
        case S_IFSOCK: return .socket(fd)
        default:
            let own = open("/proc/self/fd/\(fd)", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)
            return own >= 0 ? .plain(own, owned: true) : .asked(fd)
        }
    }
}
