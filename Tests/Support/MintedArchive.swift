// SPDX-License-Identifier: Apache-2.0
public import Crypto

extension MintedCertificate {
    /// Writes certificate, chain and key into a PKCS #12 archive, by the `openssl` tool and not by what is under test.
    ///
    /// `isOld` is how Apple's keychain writes one: RC2 and triple DES.
    public func writeArchive(
        password: String, isOld: Bool = false, to name: String, in folder: TemporaryFolder
    ) throws(SetupFault) -> String {
        let chain = try folder.write(chainPEM, to: name + ".chain")
        let key = try folder.write(privateKeyPEM, to: name + ".key")
        let secret = try folder.write(Array("\(password)\n".utf8), to: name + ".password")
        let archive = folder.file(name)
        _ = try ServerProcess(
            "sh",
            [
                "-c",
                "openssl pkcs12 -export \(isOld ? "-legacy" : "") -in \(chain) -inkey \(key) "
                    + "-passout file:\(secret) -out \(archive) && echo written",
            ], readyLine: "written")
        return archive
    }
}

extension TemporaryFolder {
    /// Writes the archive of a certificate minted for it.
    public func writeArchive(password: String, to name: String) throws -> String {
        try MintedCertificate().writeArchive(password: password, to: name, in: self)
    }
}
