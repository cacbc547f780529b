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

    @Test func whatCannotBeReadIsToldWithItsReason() throws {
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
}
