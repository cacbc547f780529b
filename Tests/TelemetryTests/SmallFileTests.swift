// SPDX-License-Identifier: Apache-2.0
import Glibc
import Support
import Telemetry
import Testing

@Suite("Small files")
struct SmallFileTests {
    @Test func aFileIsReadWholeUpToItsLimitAndNeverInPart() throws {
        let folder = try TemporaryFolder()
        let bytes = (0..<40_000).map { UInt8(truncatingIfNeeded: $0) }
        let path = try folder.write(bytes, to: "file")
        #expect(SmallFile.read(path) == .bytes(bytes))
        #expect(SmallFile.read(path, limit: 40_000) == .bytes(bytes))
        #expect(SmallFile.read(path, limit: 39_999) == .unreadable("longer than 39999 bytes"))
    }

    @Test func unreadableInputIsReportedWithItsReason() throws {
        let folder = try TemporaryFolder()
        #expect(SmallFile.read(folder.file("none")) == .unreadable("No such file or directory"))
        #expect(SmallFile.read(folder.path) == .unreadable("Is a directory"))
    }

    @Test(arguments: [("pw\n", "pw"), ("pw\r\n\n", "pw"), (" pw ", " pw "), ("pw", "pw")])
    func aSecretIsReadWithoutTheEditorsNewline(text: String, secret: String) throws {
        let folder = try TemporaryFolder()
        #expect(SmallFile.readSecret(try folder.write(Array(text.utf8), to: "secret")) == .success(Secret(secret)))
    }

    @Test(arguments: [("", "empty"), ("\n", "empty"), ("a\0b", "holds a NUL byte")])
    func aSecretThatCannotBeOneIsRefused(text: String, why: String) throws {
        let folder = try TemporaryFolder()
        #expect(SmallFile.readSecret(try folder.write(Array(text.utf8), to: "secret")) == .failure(.init(why: why)))
    }

    /// With or without a writer, a pipe may never end; a test that hangs here shows a read that blocks.
    @Test(.timeLimit(.minutes(1))) func aPipeOrADeviceIsRefusedAndNotWaitedFor() throws {
        let folder = try TemporaryFolder()
        let pipe = folder.file("pipe")
        #expect(mkfifo(pipe, 0o600) == 0)
        let refused = SmallFile.SecretFault(why: "is not a regular file")
        for path in [pipe, "/dev/zero", "/dev/null"] {
            #expect(SmallFile.read(path) == .unreadable(refused.why), "\(path)")
            #expect(
                SmallFile.readSecret(path) == .failure(refused)
                    && SmallFile.readKey(path, limit: 9) == .failure(refused))
        }
        let writer = open(pipe, O_RDWR | O_NONBLOCK)
        #expect(writer >= 0 && SmallFile.read(pipe) == .unreadable(refused.why))
        close(writer)
        // A link to a regular file, as Kubernetes mounts secrets.
        let file = try folder.write([1], to: "file")
        #expect(symlink(file, folder.file("link")) == 0 && SmallFile.read(folder.file("link")) == .bytes([1]))
    }
}
