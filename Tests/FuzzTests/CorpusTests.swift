// SPDX-License-Identifier: Apache-2.0
import Support
import Testing

/// Every input that is kept runs through the entry that the fuzzer has: hand-made ones, and what once failed.
@Suite(.timeLimit(.minutes(10))) struct CorpusTests {
    @Test(arguments: FuzzTarget.allCases) func keptInputsKeepTheirPromises(target: FuzzTarget) async throws {
        let files = try Corpus.files(of: target.rawValue)
        try #require(!files.isEmpty)
        let loop = try TestLoop("corpus")
        for (name, bytes) in files {
            let complaints = await loop.run { test in bytes.withUnsafeBytes { target.run($0, on: test.loop) } }
            #expect(complaints.isEmpty, "\(target.rawValue)/\(name)")
        }
        await loop.end()
    }
}
