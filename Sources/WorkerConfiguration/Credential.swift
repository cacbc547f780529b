// SPDX-License-Identifier: Apache-2.0
public import APNs
import EventLoop
public import YAML

extension Configuration {
    /// One set of credential files of an app. ``load()`` reads the files, not earlier.
    public struct Credential: Sendable {
        /// The value of a bind's `cert`; `default` if the app has one unnamed set.
        public var name: String
        public var source: Source
        /// Its position, for later problems with its files.
        public var mark: YAMLNode.Mark

        public enum Source: Sendable, Equatable {
            /// A provider key as Apple provides it.
            case token(keyFile: String, keyID: String, teamID: String)
            /// A certificate with its unencrypted key, both PEM.
            case certificate(chainFile: String, keyFile: String)
            /// PKCS #12, with a password file.
            case archive(file: String, passwordFile: String?)

            /// All its files.
            package var files: [String] {
                switch self {
                case .token(let keyFile, _, _): [keyFile]
                case .certificate(let chainFile, let keyFile): [chainFile, keyFile]
                case .archive(let file, let passwordFile): [file] + (passwordFile.map { [$0] } ?? [])
                }
            }

            /// Its files with secrets.
            var secretFiles: [String] {
                switch self {
                case .token(let keyFile, _, _), .certificate(_, let keyFile): [keyFile]
                case .archive(let file, let passwordFile): [file] + (passwordFile.map { [$0] } ?? [])
                }
            }
        }

        /// A `.p8`, not a certificate.
        public var isProviderKey: Bool {
            if case .token = source { return true }
            return false
        }

        public init(name: String, source: Source, mark: YAMLNode.Mark) {
            self.name = name
            self.source = source
            self.mark = mark
        }

        /// Reads and checks the files. The problem names file and cure, never a secret.
        ///
        /// An expired certificate is refused here, not in every handshake.
        public func load() -> Result<APNsCredential, Problem> {
            do throws(APNsFault) {
                let credential = try read()
                if let end = try credential.validUntilSeconds(), end <= Loop.wallMs() / 1000 {
                    return .failure(Problem(mark, "the certificate of credential set '\(name)' has ended"))
                }
                return .success(credential)
            } catch {
                return .failure(Problem(mark, error.description))
            }
        }

        private func read() throws(APNsFault) -> APNsCredential {
            switch source {
            case .token(let keyFile, let keyID, let teamID):
                try APNsCredential.token(keyFile: keyFile, keyID: keyID, teamID: teamID)
            case .certificate(let chainFile, let keyFile):
                try APNsCredential.certificate(chainFile: chainFile, keyFile: keyFile)
            case .archive(let file, let passwordFile):
                try APNsCredential.archive(file: file, passwordFile: passwordFile)
            }
        }
    }

    /// Whether some app has a credential that can be used. A worker starts with it; the others' pushes wait.
    public var hasUsableApp: Bool {
        apps.contains { app in app.credentials.contains { (try? $0.load().get()) != nil } }
    }

    /// The problems of credential files; empty if all are usable.
    public func credentialProblems() -> [Problem] {
        apps.flatMap(\.credentials).compactMap { credential in
            guard case .failure(let problem) = credential.load() else { return nil }
            return problem
        }
    }
}
