// SPDX-License-Identifier: Apache-2.0
import APNs
import EventLoop
import Glibc
import Telemetry

/// Reads the files of credentials on a thread of its own: a disk that does not answer holds up no loop. One reading at a
/// time, so that such a disk costs one thread.
final class CredentialReading: Sendable {
    struct Question: Sendable {
        var credential: Configuration.Credential
        /// The files as they were last; nil: not known.
        var seen: [FileMark]?
        /// Its files are read whatever their marks say.
        var isMoved: Bool
    }

    struct Found: Sendable {
        var source: Configuration.Credential.Source
        var marks: [FileMark]
        /// Nil if unchanged.
        var loaded: Result<APNsCredential, Problem>?
    }

    private enum State {
        case idle, reading
        case done([Found])
    }

    private let state = Guarded(State.idle)

    var isBusy: Bool {
        state.withLock { if case .idle = $0 { false } else { true } }
    }

    /// - Returns: false where no thread can be had: nothing is read then.
    func begin(_ questions: [Question], on loop: Loop) -> Bool {
        state.withLock { $0 = .reading }
        let isBegun = loop.runApart { [self] in
            let found = questions.map(Self.answer)
            state.withLock { $0 = .done(found) }
        }
        if !isBegun { state.withLock { $0 = .idle } }
        return isBegun
    }

    /// - Returns: the results once, in the order of the questions; nil while the reading goes on.
    func takeFound() -> [Found]? {
        state.withLock { state in
            guard case .done(let found) = state else { return nil }
            state = .idle
            return found
        }
    }

    private static func answer(_ question: Question) -> Found {
        // The marks first: a change in the time of the reading shows at the next look.
        let marks = question.credential.source.files.map { FileMark($0) }
        var found = Found(source: question.credential.source, marks: marks)
        if question.isMoved || question.seen.map({ $0 != marks }) == true { found.loaded = question.credential.load() }
        return found
    }
}

/// What tells one content of a file from the next.
struct FileMark: Equatable, Sendable {
    var modifiedNanos: Int64 = 0
    var bytes: Int64 = -1
    var inode: UInt64 = 0

    /// Empty where there is no such file.
    init(_ path: String) {
        var facts = stat()
        guard stat(path, &facts) == 0 else { return }
        modifiedNanos = Int64(facts.st_mtim.tv_sec) &* 1_000_000_000 &+ Int64(facts.st_mtim.tv_nsec)
        bytes = Int64(facts.st_size)
        inode = UInt64(facts.st_ino)
    }
}
