// SPDX-License-Identifier: Apache-2.0
public import Crypto
import Glibc
import Telemetry

/// Credentials for tests, demo and bench in place of an Apple account: a provider key, and a certificate authority with
/// a server certificate.
///
/// They are kept in a folder, so that a worker or simulator started later uses the same set: `AuthKey_CARILLON01.p8`,
/// `ca.pem` (the client's `ca_file`), `server.pem`, `server-key.pem`, and `hosts` (the names in the certificate). Only
/// the owner can read the keys. They have no use outside this machine.
public struct DemoCredentials: Sendable {
    /// Key and team identifiers for a configuration.
    public static let keyID = "CARILLON01"
    public static let teamID = "CARILLONTM"

    /// Path of the `.p8` file.
    public let keyFile: String
    /// Path of the authority's certificate.
    public let authorityFile: String
    /// The simulator's server certificate.
    public let certificate: MintedCertificate
    /// The key that signs provider tokens.
    public let key: PrivateKey
    /// The key by which the simulator verifies provider tokens.
    public let providerKey: ProviderKey

    /// Uses the set in `folder`. Creates a new set if a file is missing, unreadable or older than twenty days, or if
    /// the certificate does not cover all `hosts`.
    ///
    /// - Parameter hosts: names and addresses of the simulator.
    public init(
        folder: String, hosts: [String] = ["localhost", "127.0.0.1", "::1"]
    ) throws(SimulatorFault) {
        keyFile = folder + "/AuthKey_\(Self.keyID).p8"
        authorityFile = folder + "/ca.pem"
        if mkdir(folder, 0o700) != 0, errno != EEXIST {
            throw SimulatorFault("cannot make the folder \(folder): \(String(cString: strerror(errno)))")
        }
        let kept = Self.kept(folder: folder, keyFile: keyFile, authorityFile: authorityFile, hosts: hosts)
        do {
            key = try kept?.key ?? PrivateKey.generate()
            certificate = try kept?.certificate ?? MintedCertificate(hosts: hosts)
            providerKey = ProviderKey(keyID: Self.keyID, teamID: Self.teamID, publicKey: try key.publicKey())
            guard kept == nil else { return }
            try Self.write(try key.pem(), to: keyFile)
        } catch let fault as CryptoFault {
            throw SimulatorFault("cannot make credentials: \(fault)")
        } catch {
            throw SimulatorFault("\(error)")
        }
        try Self.write(certificate.authorityPEM, to: authorityFile, mode: 0o644)
        try Self.write(certificate.chainPEM, to: folder + "/server.pem", mode: 0o644)
        try Self.write(certificate.privateKeyPEM, to: folder + "/server-key.pem")
        try Self.write(Array(hosts.joined(separator: "\n").utf8), to: folder + "/hosts", mode: 0o644)
    }

    private static func kept(
        folder: String, keyFile: String, authorityFile: String, hosts: [String]
    ) -> (key: PrivateKey, certificate: MintedCertificate)? {
        // Certificates are valid for thirty days.
        guard isCertified(hosts, folder: folder), let age = age(folder + "/server.pem"), age < 20 * 86_400,
            let keyPEM = read(keyFile), let key = try? PrivateKey(pem: keyPEM),
            let authority = read(authorityFile), let chain = read(folder + "/server.pem"),
            let serverKey = read(folder + "/server-key.pem"), (try? PrivateKey(pem: serverKey)) != nil
        else { return nil }
        return (key, MintedCertificate(authorityPEM: authority, chainPEM: chain, privateKeyPEM: serverKey))
    }

    /// The names are kept in a separate file, so that the certificate need not be parsed.
    private static func isCertified(_ hosts: [String], folder: String) -> Bool {
        guard let bytes = read(folder + "/hosts") else { return false }
        let known = String(decoding: bytes, as: UTF8.self).split(separator: "\n").map(String.init)
        return hosts.allSatisfy(known.contains)
    }

    private static func age(_ path: String) -> Int? {
        var facts = stat()
        guard stat(path, &facts) == 0 else { return nil }
        return time(nil) - facts.st_mtim.tv_sec
    }

    private static func read(_ path: String) -> [UInt8]? {
        // Every file of the set is much smaller.
        guard case .bytes(let bytes) = SmallFile.read(path, limit: 65_536), !bytes.isEmpty else { return nil }
        return bytes
    }

    /// Writes a temporary file and renames it, so that no reader sees half a file.
    private static func write(_ bytes: [UInt8], to path: String, mode: mode_t = 0o600) throws(SimulatorFault) {
        let draft = path + ".new"
        unlink(draft)
        let fd = Glibc.open(draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode)
        let written = fd >= 0 && Glibc.write(fd, bytes, bytes.count) == bytes.count
        let code = errno
        if fd >= 0 { Glibc.close(fd) }
        guard written, rename(draft, path) == 0 else {
            throw SimulatorFault("cannot write \(path): \(String(cString: strerror(code)))")
        }
    }
}
